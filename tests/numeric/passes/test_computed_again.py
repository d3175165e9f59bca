"""Values that kernels recompute instead of reading them: one array less in memory, and the same values."""

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

N = 100


def kernels(kernel):
    """The types of the kernels of a module, by their names."""
    lines = kernel.source.split("compiled(KERNELS, [")[1].splitlines()
    found = (line.split("'") for line in lines if line.strip().startswith("('kernel"))
    return {name: types for _, name, _, types, *_ in found}


def test_what_the_forward_pass_computed():
    def loss(W, V, x):
        return np.sum(functions.silu(functions.silu(x @ W) @ V) ** 2)

    rng = np.random.default_rng(0)
    values = [rng.normal(size=(N, N)) / 5 for _ in range(3)]
    graph = symad.value_and_gradient(symad.trace(loss, [(N, N)] * 3), wrt=[0, 1, 2])
    kernel = lower(graph, backend="c")
    types = set(kernels(kernel).values())
    assert "d->d" in types  # z -> z sigma(z); sigma(z) is not kept
    assert "dd->d" in types  # z, cotangent of z sigma(z) -> cotangent of z
    given = [torch.tensor(v, requires_grad=True) for v in values]
    W, V, x = given
    silu = torch.nn.functional.silu
    wanted = (silu(silu(x @ W) @ V) ** 2).sum()
    wanted.backward()
    for got, reference in zip(kernel(*values), (wanted, *(g.grad for g in given)), strict=True):
        np.testing.assert_allclose(got, reference.detach().numpy(), rtol=1e-10, atol=1e-10)


def test_results_are_kept():
    def values_and_cotangent(x, w):
        s = functions.sigmoid(x)
        return s, np.exp(s @ w) * s * x

    graph = symad.trace(values_and_cotangent, [(N, N)] * 2)
    kernel = lower(graph, backend="c")
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, N, N)) / 5
    s = torch.sigmoid(torch.tensor(x))
    np.testing.assert_allclose(kernel(x, w)[0], s, rtol=1e-13)
    wanted = torch.exp(s @ torch.tensor(w)) * s * torch.tensor(x)
    np.testing.assert_allclose(kernel(x, w)[1], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "size", "again"),
    [(functions.sigmoid, N, True), (functions.sigmoid, 4, True), (np.arctan, N, False)],
)
def test_what_takes_longer_than_to_read_it_is_read(function, size, again):
    graph = symad.trace(lambda x, w: np.exp((function(x) - 1) @ w) * x * function(x), [(size, size)] * 2)
    kernel = lower(graph, backend="c")
    last = list(kernels(kernel).values())[-1]
    assert last == ("dd->d" if again else "ddd->d")  # x, the product, and the function's values
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(2, size, size)) / 5
    y = torch.sigmoid(torch.tensor(x)) if function is functions.sigmoid else torch.arctan(torch.tensor(x))
    wanted = torch.exp((y - 1) @ torch.tensor(w)) * torch.tensor(x) * y
    np.testing.assert_allclose(kernel(x, w), wanted, rtol=1e-12)
