"""Loops over gates with the batch as the last axis: values and gradients of PyTorch and of the graph."""

from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.passes.loops.feature_major import feature_major

STEPS, INPUTS = 6, 3


def lstm(z: Any, c: Any, width: int, space: Any) -> tuple[Any, Any]:
    i, f, g, o = (z[:, k * width : (k + 1) * width] for k in range(4))
    c = space.sigmoid(f) * c + space.sigmoid(i) * space.tanh(g)
    return space.sigmoid(o) * space.tanh(c), c


class Symad:
    sigmoid, tanh = staticmethod(functions.sigmoid), staticmethod(np.tanh)


def lstm_loss(width: int) -> Any:
    def loss(W: Any, U: Any, b: Any, h: Any, c: Any, x: Any, y: Any) -> Any:
        def step(state: Any, x_t: Any) -> Any:
            return lstm(state[0] @ W + x_t @ U + b, state[1], width, Symad)

        states, _ = functions.scan(step, (h, c), x)
        return np.sum((states - y) ** 2)

    return loss


def lstm_values(batch: int, width: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(batch)
    shapes = [(width, 4 * width), (INPUTS, 4 * width), (4 * width,), (batch, width), (batch, width)]
    shapes += [(STEPS, batch, INPUTS), (STEPS, batch, width)]
    return [rng.normal(size=s) for s in shapes]


@pytest.mark.parametrize(("batch", "width"), [(4, 5), (8, 8), (5, 16)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lstm_against_torch(batch: int, width: int, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = lstm_values(batch, width)
    given = [torch.tensor(v, requires_grad=True) for v in values]
    W, U, b, h, c, x, y = given
    expected = 0.0
    for t in range(STEPS):
        h, c = lstm(h @ W + x[t] @ U + b, c, width, torch)
        expected = expected + torch.sum((h - y[t]) ** 2)
    gradients = torch.autograd.grad(expected, given)
    graph = symad.trace(lstm_loss(width), inputs=[v.shape for v in values])
    kernel = lower(symad.value_and_gradient(graph, wrt=list(range(len(values)))), dtype=dtype)
    got = kernel(*values)
    tolerance = 1e-11 if dtype == "float64" else 2e-5
    assert abs(got[0] - expected.item()) <= tolerance * abs(expected.item())
    for one, other in zip(got[1:], gradients, strict=True):
        assert one.dtype == dtype
        assert np.linalg.norm(one - other.numpy()) <= tolerance * np.linalg.norm(other.numpy())
    assert f"[{width}:{2 * width}, :]" in kernel.source or f"[{width}:{2 * width}]" in kernel.source


def test_small_batches_stay_as_they_are() -> None:
    graph = symad.trace(lstm_loss(5), inputs=[v.shape for v in lstm_values(2, 5)])
    assert feature_major(graph) is graph


CELLS = {
    "gru": lambda h, x, W, v: (
        (1 - functions.sigmoid((h @ W)[:, :4] + x[:, :4])) * h
        + functions.sigmoid((h @ W)[:, :4]) * np.tanh(x[:, 4:] + functions.sigmoid((h @ W)[:, 4:]) * h)
    ),
    "joined": lambda h, x, W, v: np.concatenate([h[:, 2:], np.tanh((h @ W)[:, 1:3] * x[:, :2])], axis=1) * v,
    "transposed": lambda h, x, W, v: np.tanh(h[:, ::-1] + (h @ W)[:, 4:] @ (h.T @ x)[:, 2:6]) + h[:, :1] * v,
    "reduced": lambda h, x, W, v: np.tanh(h @ W[:, :4] + x[:, 2:6] - h[:, :1] * x[:, 7:]) * np.exp(-v * v),
    "softmax": lambda h, x, W, v: functions.softmax((h @ W)[:, :4] + x[:, 4:], axis=-1) * v - h[:, 1:2],
    "mixing": lambda h, x, W, v: np.tanh((h @ W)[:, 4:] + x[:, :4]) + np.maximum(h, x[:, 4:]) * np.sum(h),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
def test_cells_against_the_graph(name: str, reverse: bool) -> None:
    def loss(W: Any, v: Any, h: Any, x: Any) -> Any:
        inputs = x[::-1] if reverse else x
        states = functions.scan(lambda s, x_t: CELLS[name](s, x_t, W, v), h, inputs)
        return np.sum(states * states) + np.sum(np.tanh(states[-1] @ W[:, :3]))

    rng = np.random.default_rng(len(name))
    values = [rng.normal(size=s) / 2 for s in ((4, 8), (4,), (6, 4), (5, 6, 8))]
    graph = symad.value_and_gradient(symad.trace(loss, inputs=[v.shape for v in values]), wrt=[0, 1, 2, 3])
    before = [v.copy() for v in values]
    for one, other in zip(lower(graph)(*values), graph(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-11)
    assert all(np.array_equal(a, b) for a, b in zip(before, values, strict=True))


def test_two_parts_of_a_state_need_no_padding() -> None:
    values = lstm_values(8, 8)
    graph = symad.trace(lstm_loss(8), inputs=[v.shape for v in values])
    source = lower(symad.value_and_gradient(graph, wrt=[0, 1, 2])).source
    assert "_pad" not in source
    assert "concatenate" not in source


def test_states_that_were_returned_are_not_overwritten() -> None:
    def states(W: Any, h: Any, x: Any) -> Any:
        made = functions.scan(lambda s, x_t: np.tanh(s @ W + x_t), h, x)
        before = np.concatenate([h[None], made[:-1]])
        return made, np.exp(before * 2) + 1

    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((4, 4), (5, 4), (6, 5, 4))]
    graph = symad.trace(states, inputs=[v.shape for v in values])
    made, before = lower(graph)(*values)
    assert np.allclose(made, graph(*values)[0], rtol=1e-13)
    assert np.allclose(before, graph(*values)[1], rtol=1e-13)


@pytest.mark.parametrize(
    "spec",
    ["tkb,tjb->kj", "tbk,tjb->kj", "tkb,tjb->jk", "btk,tjb->kj", "tbk,tbj->kj", "tkb,sjbt->ksj", "tbk,kb->t"],
)
def test_contractions_over_several_axes(spec: str) -> None:
    sizes = {"t": 5, "b": 4, "k": 3, "j": 7, "s": 2}
    left, right = spec.split("->")[0].split(",")

    def both(x: Any, y: Any) -> Any:
        return np.einsum(spec, x, y), np.sum(np.sum(y, axis=0), axis=-1)

    shapes = [tuple(sizes[c] for c in part) for part in (left, right)]
    graph = symad.trace(both, inputs=shapes)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s) for s in shapes)
    product, total = lower(graph)(x, y)
    assert np.allclose(product, np.einsum(spec, x, y), rtol=1e-13)
    assert np.allclose(total, y.sum(axis=0).sum(axis=-1), rtol=1e-13)


SOFT = {
    "product": lambda s, z: z * functions.sigmoid(s),
    "quotient": lambda s, z: z / functions.sigmoid(s),
    "silu": lambda s, z: s * functions.sigmoid(s) * z,
    "three gates": lambda s, z: functions.sigmoid(s) * z + functions.sigmoid(z) * np.tanh(s),
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", SOFT)
def test_sigmoids_of_loops_keep_their_digits_in_single_precision(name: str, backend: str) -> None:
    """σ(−20) = 2.06e-9: a form that is exact near 1 alone makes x σ(h) zero. The reference is SciPy's."""
    from scipy.special import expit

    cell, state, inputs = SOFT[name], np.array([-20.0, -5.0, 0.5, 60.0]), np.array([[1e9, 3.0, -2.0, 1e-9]])
    graph = symad.trace(lambda h, x: functions.scan(cell, h, x), [(4,), (1, 4)])
    (made,) = lower(graph, backend, dtype="float32")(state, inputs)
    (x,), s = inputs, state
    right = {
        "product": x * expit(s),
        "quotient": x / expit(s),
        "silu": s * expit(s) * x,
        "three gates": expit(s) * x + expit(x) * np.tanh(s),
    }[name]
    assert np.allclose(made, right, rtol=64 * 20 * np.finfo(np.float32).eps / 2, atol=0)
