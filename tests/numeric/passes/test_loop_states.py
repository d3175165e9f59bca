"""Loops in NumPy, against the graph: states in parts, elementwise work only in the steps that need it."""

import re
from typing import Any

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.passes.loops import sink_into_loop

T, B, H = 7, 4, 3


def cell(state: Any, x_t: Any, W: Any) -> tuple[Any, Any]:
    """A cell with two states: c remembers, h is what it shows."""
    h, c = state
    z = h @ W + x_t
    c = functions.sigmoid(z[:, :H]) * c + np.tanh(z[:, H : 2 * H])
    return functions.sigmoid(z[:, 2 * H :]) * np.tanh(c), c


def run(W: Any, h: Any, c: Any, x: Any) -> Any:
    return functions.scan(lambda state, x_t: cell(state, x_t, W), (h, c), x)


USES = {
    "one part": lambda W, h, c, x: np.sum(run(W, h, c, x)[0] ** 2),
    "both parts": lambda W, h, c, x: np.sum(run(W, h, c, x)[0] * run(W, h, c, x)[1]),
    "the last state": lambda W, h, c, x: np.sum(run(W, h, c, x)[0][-1] * run(W, h, c, x)[1][-1] ** 2),
    "some steps": lambda W, h, c, x: np.sum(run(W, h, c, x)[0][1:4] ** 2) + np.sum(run(W, h, c, x)[1][::-1]),
    "one after the other": lambda W, h, c, x: np.sum(run(W, *[s[-1] for s in run(W, h, c, x)], x)[0] ** 2),
    "from the end": lambda W, h, c, x: np.sum(run(W, h, c, x[::-1])[0] ** 3),
}


def arrays() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=s) / 2 for s in ((H, 3 * H), (B, H), (B, H), (T, B, 3 * H))]


@pytest.mark.parametrize("sunk", [False, True])
@pytest.mark.parametrize("name", USES)
def test_gradients_with_two_states(name: str, sunk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if sunk:
        monkeypatch.setattr(sink_into_loop, "MIN_STEP", 1)
        monkeypatch.setattr(sink_into_loop, "MIN_TOTAL", 1)
    values = arrays()
    graph = symad.trace(USES[name], inputs=[v.shape for v in values])
    graph = symad.value_and_gradient(graph, wrt=[0, 1, 2, 3])
    kernel = lower(graph)
    before = [v.copy() for v in values]
    for _ in range(2):  # memory is used again
        for one, other in zip(kernel(*values), graph(*values), strict=True):
            assert np.allclose(one, other, rtol=1e-11, atol=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(before, values, strict=True))


def test_both_states_as_results() -> None:
    values = arrays()
    graph = symad.trace(run, inputs=[v.shape for v in values])
    for one, other in zip(lower(graph)(*values), graph(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-12)


def test_steps_name_the_parts_of_their_state() -> None:
    graph = symad.trace(USES["one part"], inputs=[v.shape for v in arrays()])
    source = lower(symad.value_and_gradient(graph, wrt=[0])).source
    states = r"\b(h_previous|h_bar_next)(_2)?"
    assert len(re.findall(rf"\n    {states} = ", source)) == 4  # two states of two loops
    assert not re.search(rf"{states}\[", source)


def test_work_on_large_steps_goes_into_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = symad.trace(USES["one part"], inputs=[v.shape for v in arrays()])
    graph = symad.value_and_gradient(graph, wrt=[0])
    outside = lower(graph).source
    monkeypatch.setattr(sink_into_loop, "MIN_STEP", 1)
    monkeypatch.setattr(sink_into_loop, "MIN_TOTAL", 1)
    inside = lower(graph).source
    made_at_once = re.compile(r"\n    .*(= 1 - |np\.subtract\(1, )")
    assert len(made_at_once.findall(outside)) > 3
    assert not made_at_once.findall(inside)


def test_numbers_of_loops_are_arrays_of_the_module() -> None:
    """1/3 as a Python number and as an array of the kernel's precision are the same number."""

    def loss(h: Any, x: Any) -> Any:
        return functions.scan(lambda s, x_t: s / 3 + 0.1 * s * x_t - 0.7, h, x)

    rng = np.random.default_rng(0)
    h, x = rng.normal(size=5).astype(np.float32), rng.normal(size=(3, 5)).astype(np.float32)
    kernel = lower(symad.trace(loss, inputs=[h.shape, x.shape]), dtype="float32")
    expected = h
    for made, x_t in zip(kernel(h, x), x, strict=True):
        expected = expected / np.float32(3) + np.float32(0.1) * expected * x_t - np.float32(0.7)
        assert made.dtype == np.float32
        assert np.allclose(made, expected, rtol=3e-7)
    assert "np.array(0.7, dtype=np.float32)" in kernel.source


INPUTS = 2


def layer(W: Any, U: Any, b: Any, h: Any, c: Any, x: Any) -> Any:
    """An LSTM whose inputs go through weights of their own."""
    return functions.scan(lambda state, x_t: cell(state, x_t @ U + b, W), (h, c), x)


LAYERS = {
    "all weights": layer,
    "no bias": lambda W, U, b, h, c, x: run(W, h, c, x @ U),
    "from the end": lambda W, U, b, h, c, x: layer(W, U, b, h, c, x[::-1]),
    "two layers": lambda W, U, b, h, c, x: layer(W, U, b, h, c, layer(W, U, b, h, c, x)[1][:, :, :INPUTS]),
    "weights used twice": lambda W, U, b, h, c, x: layer(W, W[:INPUTS] * U, b, h, c, x),
}


def layer_arrays(batch: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    shapes = [(H, 3 * H), (INPUTS, 3 * H), (3 * H,), (batch, H), (batch, H), (T, batch, INPUTS)]
    return [rng.normal(size=s) / 2 for s in shapes]


@pytest.mark.parametrize("name", LAYERS)
def test_inputs_with_weights_of_their_own(name: str) -> None:
    def loss(*args: Any) -> Any:
        states, cells = LAYERS[name](*args)
        return np.sum(states**2) + np.sum(cells[-1] * states[0])

    values = layer_arrays(8)
    graph = symad.trace(loss, inputs=[v.shape for v in values])
    graph = symad.value_and_gradient(graph, wrt=[*range(6)])
    kernel = lower(graph)
    before = [v.copy() for v in values]
    for _ in range(2):
        for one, other in zip(kernel(*values), graph(*values), strict=True):
            assert np.allclose(one, other, rtol=1e-10, atol=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(before, values, strict=True))


def test_all_gates_of_a_layer_are_one_product() -> None:
    values = layer_arrays(8)
    graph = symad.trace(lambda *a: np.sum(layer(*a)[0] ** 2), inputs=[v.shape for v in values])
    source = lower(symad.value_and_gradient(graph, wrt=[0, 1, 2])).source
    lines = [line for line in source.splitlines() if "ones_" not in line]  # those are sums
    assert sum(" @ " in line or ".dot(" in line for line in lines) == 5  # x U, h W, W z, h z and x z


def test_states_that_were_returned_are_not_written_again() -> None:
    values = layer_arrays(8)
    graph = symad.trace(layer, inputs=[v.shape for v in values])
    kernel = lower(graph)
    first = kernel(*values)
    kept = [v.copy() for v in first]
    second = kernel(*[v + 1 for v in values])
    for one, other, expected in zip(first, kept, graph(*values), strict=True):
        assert np.array_equal(one, other)
        assert np.allclose(one, expected, rtol=1e-12)
    assert not any(np.shares_memory(a, b) for a in first for b in second)


def test_products_that_do_not_write_where_they_belong() -> None:
    """A product goes to its place by ``dot`` only if that is whole, and holds floats as the factors do."""
    mask = np.tril(np.ones((H, H), dtype=bool))

    def cells(W: Any, h: Any, x: Any) -> Any:
        both = functions.scan(lambda s, x_t: np.concatenate([s[:, :H] @ W, x_t @ mask], axis=1), h, x)
        masked = functions.scan(lambda s, x_t: np.where(x_t @ W > 0, 1.0, 0.0) @ (W + s), h[:H, :H], x[:, :H])
        return both, masked, functions.scan(lambda s, x_t: (W @ s) * (s @ x_t), h[0, :H], x[:, 0])

    rng = np.random.default_rng(5)
    values = [rng.normal(size=s) / 2 for s in ((H, H), (B, 2 * H), (T, B, H))]
    graph = symad.trace(cells, inputs=[v.shape for v in values])
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        for one, other in zip(lower(graph, dtype=dtype)(*values), graph(*values), strict=True):
            assert one.dtype == dtype
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance)


def test_results_do_not_share_memory() -> None:
    """The states, those one step earlier, and rows with the states and inputs: three arrays."""

    def states(W: Any, h: Any, x: Any) -> Any:
        made = functions.scan(lambda s, x_t: np.tanh(W @ np.concatenate([s, x_t])), h, x)
        before = np.concatenate([h[None], made[:-1]])
        return made, before[:, 1], np.concatenate([before, x], axis=1)[:, :4]

    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((3, 5), (3,), (6, 2))]
    graph = symad.trace(states, inputs=[v.shape for v in values])
    results = lower(graph)(*values)
    for one, other in zip(results, graph(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-13)
    assert not any(np.shares_memory(a, b) for k, a in enumerate(results) for b in results[:k])


def test_a_vector_beside_its_inputs() -> None:
    def loss(W: Any, h: Any, x: Any) -> Any:
        made = functions.scan(lambda s, x_t: np.tanh(W @ np.concatenate([s, x_t])), h, x)
        return np.sum(made**2)

    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((3, 5), (3,), (6, 2))]
    graph = symad.value_and_gradient(symad.trace(loss, inputs=[v.shape for v in values]), wrt=[0, 1, 2])
    for one, other in zip(lower(graph)(*values), graph(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-12)


def reversed_history(x, y):
    """The cotangent of all states comes padded, against the order of time."""
    states = functions.scan(lambda c, t: np.sin(c) + 0.1 * t, x, y)
    return np.sum(np.sin(states[::-1, :-1]))


def nested_folds(x, y):
    """Cotangents of parts of parts of states: boxes in boxes."""

    def step(c, t):
        _, q, _ = functions.fold(lambda s, t: (s[0], s[2], np.sin(s[2])), (c[0], c[1], c[1]), y)
        return np.cos(x), q

    return np.sum(functions.fold(step, (x, y[:, 0]), y, memory="recompute")[1] ** 2)


def counted_steps(x, y):
    """All that moves in the tangent's loop is a number."""
    _, _, c = functions.scan(
        lambda s, t: (s[0], s[1], np.sin(s[2]) - np.sin(t)), (x, x, x), np.zeros_like(y[:, 0])
    )
    return np.sum(c * np.sin(y[:, :1]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("f", [reversed_history, nested_folds, counted_steps])
def test_second_derivatives_of_loops(f, backend):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=4), rng.normal(size=(3, 4))
    graph = symad.trace(f, [(4,), (3, 4)])
    for mode in ("forward-over-reverse", "reverse-over-forward", "reverse-over-reverse"):
        product = symad.hvp(graph, mode=mode)
        found = lower(product, backend=backend)(x, y, x, y)
        gradient, step = symad.gradient(graph), 1e-5
        above, below = (gradient(x + s * x, y + s * y) for s in (step, -step))
        for one, right, left in zip(found, above, below, strict=True):
            np.testing.assert_allclose(one, (right - left) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("memory", ["recompute", 2, "sqrt", "binomial"])
def test_chains_in_loops(memory, backend):
    """A chain in the step of a loop; what both read from outside gets the cotangents of all steps."""

    def f(x, memory):
        s = np.sin(x)

        def step(c, t):
            _, q = functions.fold(lambda a, u: (np.cos(a[0]) * u, s * a[1]), (s, c[1]), s, memory=memory)
            return s, q + t

        return np.sum(functions.scan(step, (x, x), x)[1] ** 2)

    x = np.random.default_rng(7).normal(size=(3, 1))
    traced = (symad.trace(lambda x, m=m: f(x, m), [(3, 1)]) for m in ("all", memory))
    plain, kept = map(symad.value_and_gradient, traced)
    for found, expected in zip(lower(kept, backend=backend)(x), plain(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("points", [2, 3])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_batches_of_two_states_keep_them_apart(points, backend):
    """In a batch the states lie along the second axis; so many points as states hid which axis was read."""
    at, h = np.array([0.3, -0.5, 0.8])[:points], 1e-100j

    def last(z):
        c, d = np.tanh(z), z * z
        for _ in range(3):
            c, d = np.tanh(c * d), np.sin(c + d)
        return c

    def one(z):
        step = lambda s, v: (np.tanh(s[0] * s[1]), np.sin(s[0] + s[1]))  # noqa: E731
        return functions.fold(step, (np.tanh(z), z * z), np.ones(3))[0]

    batch = symad.vmap(symad.trace(one, [()]))
    graph = symad.value_and_gradient(symad.trace(lambda x: np.sum(batch(x * at)), [()]))
    right = [np.sum(last(0.7 * at)), np.sum(np.imag(last((0.7 + h) * at))) / 1e-100]
    np.testing.assert_allclose(lower(graph, backend)(0.7), right, rtol=1e-12)


def test_a_recurrence_of_numbers_starts_from_its_last_cotangent() -> None:
    """No zeros are written around the cotangent of the last state, and cut off again."""
    last = symad.trace(lambda x: functions.scan(lambda h, a: np.tanh(h + a), 0.0, x)[-1] ** 2, [(3,)])
    kernel = lower(symad.gradient(last), style="plain")
    assert "_pad" not in kernel.source
    x = np.array([0.3, -1.0, 0.7])
    h = [np.tanh(0.3), np.tanh(np.tanh(0.3) - 1.0), np.tanh(np.tanh(np.tanh(0.3) - 1.0) + 0.7)]
    slopes = 1 - np.square(h)
    wanted = 2 * h[2] * np.array([np.prod(slopes), slopes[1] * slopes[2], slopes[2]])
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-13)
