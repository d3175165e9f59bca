"""Sums of slices as slices of a sum, and biases that are added before they are repeated."""

from typing import Any

import numpy as np
import pytest

import symad
from symad.models.layers.parameters import trace_model
from symad.models.sequences.recurrent import Recurrent
from symad.numeric import lower
from symad.numeric.passes.memory_layout.pads import broadcast_sums, sum_before_slicing
from symad.ops.basic.arithmetic import Add

torch = pytest.importorskip("torch")


def sums(graph: symad.Graph) -> list[tuple[int, ...]]:
    return sorted(node.shape for node in graph.nodes if isinstance(node.op, Add))


HALVES, UNEQUAL = (slice(0, 2), slice(2, 4)), (slice(0, 2), slice(2, 6))
PARTS = {
    "all parts": (lambda a, b: np.tanh(a[:, :3] + b[:, :3]) * np.sin(a[:, 3:] + b[:, 3:]), [(4, 6)]),
    "differences": (lambda a, b: np.tanh(a[:, :3] - b[:, :3]) * np.sin(a[:, 3:] - b[:, 3:]), [(4, 6)]),
    "rows and columns": (
        lambda a, b: sum(np.tanh(a[r, c] + b[r, c]).sum() for r in HALVES for c in UNEQUAL),
        [(4, 6)],
    ),
    "a part is missing": (lambda a, b: np.tanh(a[:, :3] + b[:, :3]) * np.sin(a[:, 3:]), [(4, 3)]),
    "parts overlap": (
        lambda a, b: np.tanh(a[:, :4] + b[:, :4])[:, :2] * np.sin(a[:, 2:] + b[:, 2:])[:, 2:],
        [(4, 4), (4, 4)],
    ),
    "other places": (lambda a, b: np.tanh(a[:, :3] + b[:, 3:]) * np.sin(a[:, 3:] + b[:, :3]), [(4, 3)] * 2),
}


@pytest.mark.parametrize("name", PARTS)
def test_sums_of_slices(name: str) -> None:
    f, left = PARTS[name]
    graph = symad.trace(f, inputs=[(4, 6), (4, 6)])
    made = sum_before_slicing(graph)
    assert [shape for shape in sums(made) if shape] == left
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 6))
    assert np.array_equal(made(a, b), f(a, b)) or np.allclose(made(a, b), f(a, b), rtol=1e-15)


def test_biases_are_added_before_they_are_repeated() -> None:
    def f(x: Any, b: Any, c: Any, r: Any) -> Any:
        return x + b - c + r[:, None] + b * 2, (x - r[:, None]) - (b[None, :] - c), b + c + 0 * x

    graph = symad.trace(f, inputs=[(50, 7), (7,), (7,), (50,)])
    made = broadcast_sums(graph)
    assert len([s for s in sums(made) if s == (50, 7)]) < len([s for s in sums(graph) if s == (50, 7)])
    rng = np.random.default_rng(1)
    values = [rng.normal(size=s) for s in ((50, 7), (7,), (7,), (50,))]
    for one, other in zip(made(*values), f(*values), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", ["lstm", "rnn", "gru"])
def test_layers_of_pytorch_have_one_product_in_a_step(kind: str) -> None:
    """W h, U x, their pullback and the gradients of W and U are one product each for all gates."""
    model = Recurrent(kind, 4, 9)
    graph = trace_model(lambda p, x: (model.apply(p, x)[0] ** 2).sum(), model.shapes, (6, 8, 4))
    names = list(model.shapes)
    kernel = lower(symad.value_and_gradient(graph, wrt=names))
    lines = [line for line in kernel.source.splitlines() if "ones_" not in line]  # those are sums
    assert sum(" @ " in line or ".dot(" in line for line in lines) == 5
    layer = getattr(torch.nn, kind.upper())(4, 9, dtype=torch.float64)
    x = torch.randn(6, 8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    loss = (layer(x)[0] ** 2).sum()
    loss.backward()
    value, *slopes = kernel(*(getattr(layer, n).detach().numpy() for n in names), x.numpy())
    assert value == pytest.approx(loss.item(), rel=1e-13)
    for name, slope in zip(names, slopes, strict=True):
        np.testing.assert_allclose(slope, getattr(layer, name).grad.numpy(), rtol=1e-10, atol=1e-12)
