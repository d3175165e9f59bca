"""Threads on one machine: batches, row blocks, colors, pair sums; the same bits for any number."""

import threading

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.scale import distribute, engines, sparse_jacobian, sweep

n, m = sp.symbols("n m", integer=True, positive=True)
x, y = (sp.IndexedBase(name, shape=(length, 3)) for name, length in (("x", n), ("y", m)))
b = sp.IndexedBase("b", shape=(m, 2))
RNG = np.random.default_rng(4)
POINTS, OTHERS, WEIGHTS = (
    RNG.standard_normal((70, 3)),
    RNG.standard_normal((50, 3)),
    RNG.standard_normal((50, 2)),
)


def rosenbrock():
    v = sp.symbols("v0:6", real=True)
    return sum(100 * (v[k + 1] - v[k] ** 2) ** 2 + (1 - v[k]) ** 2 for k in range(5)), v


def gaussian_sums(reduce="sum"):
    def distance(p, q):
        return -sum((p[k] - q[k]) ** 2 for k in range(3)) / 2

    def kernel(p, q):
        return sp.exp(distance(p, q)) if reduce == "sum" else distance(p, q)

    return symad.trace(lambda x, y, b: functions.pairwise(kernel, x, y, b, reduce=reduce), [x, y, b])


def same_bits(run):
    """The result with one thread, after every number of threads has given its bits."""
    first = run(1)
    for threads in (2, 5):
        for a, c in zip(leaves(first), leaves(run(threads)), strict=True):
            assert np.array_equal(a, c)
    return first


def leaves(value):
    return (
        [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]
    )


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_batches_of_a_scalar_kernel(backend):
    f, v = rosenbrock()
    points = RNG.standard_normal((6, 999))
    values = {str(s): p for s, p in zip(v, points, strict=True)}
    found = same_bits(lambda t: sweep(symad.gradient(f, v), values, backend=backend, threads=t))
    expected = lower(symad.gradient(f, v))(*points)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("over", [{"x": 0}, {"y": 0, "b": 0}])
def test_pair_sums(backend, over):
    graph = gaussian_sums()
    found = same_bits(
        lambda t: distribute(graph, over, backend=backend, threads=t, rows=16)(POINTS, OTHERS, WEIGHTS)
    )
    squares = ((POINTS[:, None] - OTHERS[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.exp(-squares / 2) @ WEIGHTS, rtol=1e-12)


def test_cotangents_of_pair_sums():
    cotangent = np.ones((70, 2))
    slope = symad.pullback(gaussian_sums(), "b")
    found = same_bits(
        lambda t: distribute(slope, {"y": 0, "b": 0}, threads=t, rows=16)(POINTS, OTHERS, WEIGHTS, cotangent)
    )
    squares = ((POINTS[:, None] - OTHERS[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found[1], np.exp(-squares / 2).T @ cotangent, rtol=1e-12)


def test_softmax_pair_sums_over_their_sources_follow_the_online_rule():
    graph = gaussian_sums("softmax")
    kernel = distribute(graph, {"y": 0, "b": 0}, rows=16)
    assert kernel.certificate.rules == ("softmax-weighted mean",)
    found = same_bits(lambda t: kernel.on(threads=t)(POINTS, OTHERS, WEIGHTS))
    squares = ((POINTS[:, None] - OTHERS[None]) ** 2).sum(axis=2)
    p = np.exp(-squares / 2)
    np.testing.assert_allclose(found, p @ WEIGHTS / p.sum(axis=1, keepdims=True), rtol=1e-12)


def test_row_blocks_of_a_product():
    a, c = sp.MatrixSymbol("A", n, m), sp.MatrixSymbol("C", m, 4)
    graph = symad.trace(lambda a, c: np.tanh(a @ c), [a, c])
    left, right = RNG.standard_normal((300, 20)), RNG.standard_normal((20, 4))
    found = same_bits(lambda t: distribute(graph, {"A": 0}, threads=t, rows=32)(left, right))
    np.testing.assert_allclose(found, np.tanh(left @ right), rtol=1e-13)


def test_colors():
    graph = symad.trace(lambda v: np.sin(v[1:]) * v[:-1] ** 2 + np.cos(v[:-1]), [(30,)])
    point = RNG.standard_normal(30)
    found = same_bits(lambda t: sparse_jacobian(graph, threads=t)(point).toarray())
    np.testing.assert_allclose(found, lower(symad.jacobian(graph))(point), rtol=1e-12, atol=1e-14)


def test_rows_of_several_outputs_stand_in_memory_of_their_own():
    f, v = rosenbrock()
    batch = symad.vmap(symad.gradient(f, v))
    kernel = distribute(batch, dict.fromkeys(map(str, batch.inputs), 0), rows=100, threads=2)
    points = RNG.standard_normal((6, 1234))
    first = kernel(*points)
    kept = [np.array(r) for r in first]
    expected = lower(symad.gradient(f, v))(*points)
    for r, e in zip(kept, expected, strict=True):
        np.testing.assert_allclose(r, e, rtol=1e-12, atol=1e-12)
    assert not any(np.shares_memory(r, s) for k, r in enumerate(first) for s in (*first[:k], points))
    first[0][:] = 7.0
    second = kernel(*points)
    assert all(np.array_equal(a, c) for a, c in zip(second, kept, strict=True))
    assert all(np.array_equal(a, c) for a, c in zip(first[1:], kept[1:], strict=True))


def test_rows_of_threads_use_the_memory_of_results_that_are_gone():
    """Else the C library gives it back after each call, and the system clears its pages anew."""
    kernel = distribute(symad.trace(lambda x: np.tanh(x), [x]), {"x": 0}, rows=20_000, threads=2)
    points = np.ones((100_000, 3))
    places = set()
    for _ in range(6):
        found = kernel(points)
        places.add(found.ctypes.data)
        del found
    kept = [kernel(points), kernel(points)]
    assert len(places) == 1
    assert not np.shares_memory(*kept)


def test_default_parts_have_nearly_equal_lengths():
    kernel = distribute(symad.trace(lambda x: np.tanh(x), [x]), {"x": 0})
    lengths = kernel.chunks(np.zeros((500_001, 3))).lengths
    assert sum(lengths) == 500_001 and len(lengths) == 2 and max(lengths) - min(lengths) <= 1


def test_rows_along_another_axis():
    graph = symad.trace(lambda x: np.tanh(x).T, [x])
    found = distribute(graph, {"x": 0}, rows=9, threads=3)(POINTS)
    assert found.shape == (3, 70)
    np.testing.assert_allclose(found, np.tanh(POINTS).T, rtol=1e-14)


def a_sum_in_a_child(kernel, queue):
    queue.put(float(kernel(POINTS)))


@pytest.mark.thorough
def test_threads_work_in_a_child_of_a_fork():
    import multiprocessing

    context = multiprocessing.get_context("fork")
    kernel = distribute(symad.trace(lambda x: np.sum(np.sin(x)), [x]), {"x": 0}, rows=7, threads=2)
    expected = kernel(POINTS)  # the threads of the parent are there now
    queue = context.Queue()
    child = context.Process(target=a_sum_in_a_child, args=(kernel, queue))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)


def test_a_split_function_inside_a_part_does_not_wait_for_itself():
    from symad.numeric.scale.engines import in_order

    def inner(k):
        return sum(in_order(lambda j: 10 * k + j, [(0,), (1,), (2,)], 2))

    assert list(in_order(inner, [(k,) for k in range(6)], 2)) == [30 * k + 3 for k in range(6)]


def threads_that_compute(kernel, monkeypatch, seconds):
    """The threads that compute the parts of a call, if a row has taken so long before."""
    found, part = [], engines.part
    monkeypatch.setattr(engines, "part", lambda *a: (found.append(threading.get_ident()), part(*a))[1])
    monkeypatch.setattr(engines, "cores", lambda: 2)
    kernel.pace.seconds = seconds
    value = kernel(POINTS)
    monkeypatch.undo()
    return found, value


def test_parts_that_are_not_worth_a_hand_over_are_computed_together(monkeypatch):
    """70 rows in 10 parts: all work of less than `WORTH` stays here, twice as much is handed over twice."""
    kernel = distribute(symad.trace(lambda x: np.sum(np.sin(x)), [x]), {"x": 0}, rows=7, threads=2)
    here = threading.get_ident()
    each = engines.WORTH / 70
    small, value = threads_that_compute(kernel, monkeypatch, each)
    assert small == [here] * 10
    handed, again = threads_that_compute(kernel, monkeypatch, 2 * each)
    assert here not in handed and len(handed) == 10
    unknown, first = threads_that_compute(kernel, monkeypatch, np.inf)
    assert here not in unknown and value == again == first
    assert 0 < kernel.pace.seconds < np.inf
    lengths = [7] * 10
    for factor, together in ((1, 10), (2, 5), (10, 1), (100, 1), (0.1, 100), (0, 10)):
        kernel.pace.seconds = factor * each
        assert kernel.pace.together(lengths) == together
