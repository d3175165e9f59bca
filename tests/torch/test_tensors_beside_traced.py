"""Tensors of PyTorch and arrays of JAX beside traced values are constants, or named in an error."""

import operator

import numpy as np
import pytest

import symad

torch = pytest.importorskip("torch")
A, X = np.array([1.0, 2.0]), np.array([3.0, 5.0])
OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul),
    *(operator.lt, operator.ge, np.multiply, np.hypot),
)


def makers():
    jnp = pytest.importorskip("jax.numpy")
    return torch.tensor, jnp.asarray


@pytest.mark.parametrize("act", OPERATORS)
def test_arrays_of_other_libraries_are_constants_on_either_side(act):
    for make in makers():
        foreign = make(A)
        graph = symad.trace(lambda x, foreign=foreign: (1.0 * act(foreign, x), 1.0 * act(x, foreign)), [(2,)])
        for found, expected in zip(graph(X), (act(A, X), act(X, A)), strict=True):
            np.testing.assert_allclose(found, 1.0 * expected, rtol=1e-7)


def test_tensors_that_are_no_constants_are_named():
    weight = torch.nn.Parameter(torch.ones(2))
    for act in (lambda x: weight * x, lambda x: np.dot(x, weight)):
        with pytest.raises(symad.errors.TraceError, match=r"torch's Parameter of shape \(2,\).*as an input"):
            symad.trace(act, [(2,)])
    with pytest.raises(symad.errors.TraceError, match=r"torch's Tensor of shape.*BFloat16"):
        symad.trace(lambda x: torch.ones(2, dtype=torch.bfloat16) + x, [(2,)])
    with pytest.raises(symad.errors.ShapeError, match=r"\(3,\), x \(2,\) do not broadcast together"):
        symad.trace(lambda x: torch.ones(3) * x, [(2,)])


def test_jax_with_traced_values_is_named():
    jax = pytest.importorskip("jax")

    def inside(w):
        return symad.trace(lambda x: w * x, [(2,)])(X)

    with pytest.raises(symad.errors.TraceError, match="DynamicJaxprTracer of shape"):
        jax.jit(inside)(A)
    for act in (jax.numpy.exp, lambda x: jax.numpy.stack([x, x])):
        with pytest.raises(symad.errors.TraceError, match="calls a function of JAX with a traced value"):
            symad.trace(act, [(2,)])
