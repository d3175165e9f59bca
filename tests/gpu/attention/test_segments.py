"""Segment sums, in gradients of embeddings and of parameters of scores: the same bits in every run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import symad
from symad import functions
from symad.gpu.printers.indices import add_laid_out
from symad.numeric import lower
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, agree, library, module_of, on_device
from tests.gpu.shim.driver import SCHEDULES, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(21)


def segment_sum(dtype):
    """The function of printed modules that sums segments, and the kernel sources that its calls use."""
    graph = symad.gradient(symad.trace(lambda t, i: np.sum(functions.lookup(t, i)), [(7, 3), (4,)]), wrt=0)
    names, sources = module_of(graph, dtype), []
    compiled = names["_module"]
    names["_module"] = lambda source: sources.append(source) or compiled(source)
    return names["_segment_sum"], sources


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("count", "rows"), [(700, 5), (40, 300), (1, 1), (0, 3), (4200, 30), (4097, 5000)])
def test_the_kernel_against_additions_one_by_one(count, rows, dtype):
    """Up to 4096 entries are compared in pairs, and more are sorted."""
    keys = RNG.integers(0, rows, count)
    updates = RNG.normal(size=(count, 1)).astype(dtype)
    expected = np.zeros((rows, 1))
    np.add.at(expected, keys, updates.astype(float))
    summed, _ = segment_sum(dtype)
    found = []
    for order in SCHEDULES:
        with library() as cp, schedule(order, 3):
            found.append(summed(cp.asarray(keys), cp.asarray(updates), rows, 1).get())
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=200 * np.finfo(dtype).eps)
    assert all(f.tobytes() == found[0].tobytes() for f in found)


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("words", "tokens", "width"),
    [(7, (3, 40), 5), (400, (2, 9), 70), (3, (4,), 33), (2, (), 1), (3, (4200,), 1)],
)
def test_gradients_of_embeddings(words, tokens, width, dtype, where):
    pytest.importorskip("ml_dtypes")
    rows = RNG.integers(0, words, tokens)
    weights = RNG.integers(-3, 4, (*tokens, width)).astype(float)
    graph = symad.gradient(
        symad.trace(lambda t, i: np.sum(functions.lookup(t, i) * weights), [(words, width), tokens]), wrt=0
    )
    expected = np.zeros((words, width))
    np.add.at(expected, rows, weights)
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype=dtype)
        assert "scatter_add_atomic" not in kernel.source
        args = *on_device(cp, [np.zeros((words, width))], dtype), cp.asarray(rows)
        got = [kernel(*args).get() for _ in range(3)]

    np.testing.assert_allclose(got[0].astype(float), expected, rtol={"bfloat16": 0.01}.get(dtype, 1e-3))
    assert len({g.tobytes() for g in got}) == 1


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("atomics", [False, True])
def test_atomics_are_an_option_and_half_precisions_add_in_float32(atomics, where):
    pytest.importorskip("ml_dtypes")
    graph = symad.gradient(symad.trace(lambda t, i: np.sum(functions.lookup(t, i)), [(3, 2), (5000,)]), wrt=0)
    for dtype in ("float16", "bfloat16"):
        with symad.gpu.options(atomics=atomics):
            kernel = lower(graph, backend="cupy", dtype=dtype)
        assert ("cupyx.scatter_add" in kernel.source) is atomics
        with library(where) as cp:
            args = *on_device(cp, [np.zeros((3, 2))], dtype), cp.asarray(np.full(5000, 1))
            got = kernel(*args).get().astype(float)
        np.testing.assert_allclose(got, [[0, 0], [5000, 5000], [0, 0]], rtol=1 / 256)


GATES = {
    "for every pair": (lambda s, b, h, i, j, gate: s * gate[h, i, j], lambda n: (2, n, n)),
    "turned": (lambda s, b, h, i, j, gate: s * gate[j, h, i], lambda n: (n, 2, n)),
    "one of several": (lambda s, b, h, i, j, gate: s * gate[1, i], lambda n: (3, n + 4)),
    "by i + j": (lambda s, b, h, i, j, gate: s * gate[h, i + j], lambda n: (2, 2 * n)),
    "by i - j": (lambda s, b, h, i, j, gate: s * gate[i - j + 200], lambda n: (400,)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", GATES)
def test_gradients_of_parameters_keep_their_digits(name, where):
    """A difference of cumulative sums would lose half of them: its median error is 2e-4 at N = 64."""
    score, shape = GATES[name]
    n = 48
    shapes = [(1, 2, n, 8)] * 3 + [shape(n)]

    def loss(q, k, v, gate):
        return (functions.attention(q, k, v, score=score, params={"gate": gate}) ** 2).sum()

    values = [v.astype("float32") for v in (RNG.normal(size=s) for s in shapes)]
    graph = symad.gradient(symad.trace(loss, shapes), wrt="gate")
    expected = lower(graph)(*values)
    with library(where) as cp:
        kernel = lower(graph, backend="cupy", dtype="float32")
        assert "reduceat" not in kernel.source
        got = kernel(*on_device(cp, values, "float32"))
        again = kernel(*on_device(cp, values, "float32"))
        assert got.get().tobytes() == again.get().tobytes()
    error = np.abs(got.get() - expected)
    scale = np.abs(expected)[expected != 0]
    assert np.median(error[expected != 0] / scale) < 2e-6
    assert error.max() < 2e-5 * scale.max()


def test_the_stand_in_loses_digits_as_cupy_does():
    with library() as cp:
        values = np.concatenate([np.full(1000, 1e4), np.full(4, 1e-3)]).astype("float32")
        got = cp.add.reduceat(cp.asarray(values), cp.asarray(np.array([0, 1000]))).get()
    assert abs(np.add.reduceat(values, [0, 1000])[1] - 4e-3) < 1e-8
    assert abs(got[1] - 4e-3) > 1e-3


def test_what_is_laid_out():
    total, values = np.zeros((2, 5, 3)), RNG.normal(size=(4, 3, 5))
    add_laid_out(total, values, [(None, 1), (2, 0), (1, 0)])
    np.testing.assert_allclose(total[1], values.sum(axis=0).T)
    assert not total[0].any()
    small = np.zeros((2,))
    add_laid_out(small, values, [(1, 0)])
    np.testing.assert_allclose(small, values.sum(axis=(0, 2))[:2])
    one = np.zeros((1,))
    add_laid_out(one, values, [(None, 0)])
    np.testing.assert_allclose(one, [values.sum()])


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_kernel_compiles(arch):
    for dtype in ("float64", "float32"):
        summed, sources = segment_sum(dtype)
        with library() as cp:
            for columns in (1, 32):
                summed(cp.asarray([1, 0, 1]), cp.ones((3, columns), dtype), 2, columns)
        assert len(set(sources)) == 2
        for source in sources:
            _, kernels = nvrtc.compile_text(source, arch)
            assert kernels["segment_sum"].spilled == 0


@pytest.mark.thorough
def test_loops_gather_and_scatter():
    graph = symad.value_and_gradient(
        symad.trace(
            lambda t, i: functions.scan(
                lambda h, k: np.tanh(h + functions.lookup(t, k)), np.zeros(3), i
            ).sum(),
            [(6, 3), (5,)],
        ),
        wrt=0,
    )
    agree(graph, [RNG.normal(size=(6, 3)), np.array([5, 0, 5, 2, 2])], rtol=1e-11)
