"""Tile shapes chosen by trial runs: measured once, stored for all processes, not measured without storage."""

from __future__ import annotations

import errno
import os
import shutil

import numpy as np
import pytest

import symad
import symad.gpu
from symad.functions import attention
from symad.gpu import module_text as fastest_tiles
from symad.numeric import lower
from tests.gpu.cupy_agreement import leaves, library, on_device
from tests.gpu.cupy_standin import cuda

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(8)
SHAPES = [(1, 1, 9, 128)] * 3  # in float64 two tile shapes fit


def scored(q, k, v, table):
    out = attention(
        q, k, v, params={"table": table}, score=lambda s, b, h, i, j, table: s + table[i - j + 8]
    )
    return (out**2).sum()


GRAPH = symad.trace(lambda q, k, v: attention(q, k, v), SHAPES)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, and trial runs for any work."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(fastest_tiles, "MIN_PRODUCTS", 1)
    return tmp_path / "kernels"


def timer(monkeypatch, *times):
    """Let each trial of the tiles take the time given for them; the list of all trials."""
    seen = []

    def elapsed(start, stop):
        seen.append(None)
        return times[(len(seen) - 1) // fastest_tiles.TRIALS % len(times)]

    monkeypatch.setattr(cuda, "get_elapsed_time", elapsed)
    return seen


def launched(kernel, values, monkeypatch):
    """What a second call launches, which has no trials."""
    with library() as cp:
        kernel(*on_device(cp, values))
        found = []
        real = kernel_module(kernel)["_launch"]

        def noted(launch, *rest):
            found.append(launch)
            real(launch, *rest)

        monkeypatch.setitem(kernel_module(kernel), "_launch", noted)
        kernel(*on_device(cp, values))
    return found


def kernel_module(kernel):
    """The names of the module behind a kernel: it is compiled at its first call."""
    cells = [c.cell_contents for c in kernel.function.__closure__]
    return next(c().namespace for c in cells if callable(c) and hasattr(c, "cache_info"))


def tiles(kernel):
    """The launches of each tile shape that fits, the first by estimate first."""
    names = kernel_module(kernel)
    (plans,) = [names[n] for n in names if n.startswith("_plans_forward")]
    return [launches for _, _, launches in plans]


def draw(shapes=SHAPES):
    return [RNG.normal(size=s) for s in shapes]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("times", "best", "links"),
    [((2.0, 1.0), 1, True), ((1.0, 2.0), 0, True), ((1.0, 0.97), 0, True), ((2.0, 1.0), 1, False)],
)
def test_the_fastest_is_taken_and_kept(times, best, links, folder, monkeypatch):
    """Also on a file system without hard links."""
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
    seen = timer(monkeypatch, *times)
    kernel = lower(GRAPH, backend="cupy")
    assert launched(kernel, draw(), monkeypatch) == tiles(kernel)[best]
    count = len(tiles(kernel))
    assert len(seen) == count * fastest_tiles.TRIALS
    (kept,) = folder.iterdir()
    assert kept.read_text() == str(best)
    timer(monkeypatch, *times[::-1])  # a later process, to which another would seem faster
    later = lower(GRAPH, backend="cupy")
    assert launched(later, draw(), monkeypatch) == tiles(later)[best]
    assert len(seen) == count * fastest_tiles.TRIALS
    assert [*folder.iterdir()] == [kept]


@pytest.mark.thorough
def test_what_is_measured_depends_on_the_device_and_the_order_of_sizes(folder, monkeypatch):
    timer(monkeypatch, 2.0, 1.0)
    with library() as cp:
        for shape in ((1, 1, 9, 128), (1, 1, 15, 128)):
            graph = symad.trace(lambda q, k, v: attention(q, k, v), [shape] * 3)
            lower(graph, backend="cupy")(*on_device(cp, draw([shape] * 3)))
        assert len([*folder.iterdir()]) == 1
        shape = (1, 1, 16, 128)
        graph = symad.trace(lambda q, k, v: attention(q, k, v), [shape] * 3)
        lower(graph, backend="cupy")(*on_device(cp, draw([shape] * 3)))
        assert len([*folder.iterdir()]) == 2
        monkeypatch.setattr(cuda.runtime, "getDeviceProperties", lambda number: {"name": b"another"})
        lower(graph, backend="cupy")(*on_device(cp, draw([shape] * 3)))
        assert len([*folder.iterdir()]) == 3


def test_another_process_was_faster(folder, monkeypatch):
    """Its choice holds here too, so that both add in the same order."""

    def during(start, stop):
        for mine in folder.iterdir():
            name, _, suffix = mine.name.rpartition("_")
            if len(suffix) == 32:
                (folder / name).write_text("1")
        return 1.0

    monkeypatch.setattr(cuda, "get_elapsed_time", during)
    kernel = lower(GRAPH, backend="cupy")
    assert launched(kernel, draw(), monkeypatch) == tiles(kernel)[1]


@pytest.mark.parametrize("case", ["no folder", "not a number", "little work", "off"])
def test_the_first_by_estimate(case, folder, monkeypatch):
    seen = timer(monkeypatch, 2.0, 1.0)
    if case == "no folder":
        folder.write_text("a file")
    elif case == "little work":
        monkeypatch.setattr(fastest_tiles, "MIN_PRODUCTS", 9 * 9 * 128 + 1)
    if case == "not a number":
        kernel = lower(GRAPH, backend="cupy")
        launched(kernel, draw(), monkeypatch)
        (kept,) = folder.iterdir()
        kept.write_text("")
        seen.clear()
    with symad.gpu.options(autotune=case != "off"):
        kernel = lower(GRAPH, backend="cupy")
    assert launched(kernel, draw(), monkeypatch) == tiles(kernel)[0]
    assert not seen


def test_nothing_is_measured_while_a_graph_is_recorded(folder, monkeypatch):
    seen = timer(monkeypatch, 2.0, 1.0)
    with library() as cp:
        arrays = on_device(cp, draw())
        kernel = lower(GRAPH, backend="cupy")
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            kernel(*arrays)
            stream.end_capture()
        assert not seen
        kernel(*arrays)
        assert seen


@pytest.mark.thorough
def test_gradients_by_other_tiles(folder, monkeypatch):
    """Trials write results again and again: sums over parameters must not add up."""
    timer(monkeypatch, 2.0, 1.0)
    graph = symad.value_and_gradient(symad.trace(scored, [*SHAPES, (17,)]))
    values = draw([*SHAPES, (17,)])
    with library() as cp:
        kernel = lower(graph, backend="cupy")
        found = leaves(kernel(*on_device(cp, values)))
        again = leaves(kernel(*on_device(cp, values)))
    for first, second, wanted in zip(found, again, leaves(lower(graph)(*values)), strict=True):
        np.testing.assert_allclose(first.get(), wanted, rtol=1e-11, atol=1e-12)
        assert first.get().tobytes() == second.get().tobytes()
    assert len([*folder.iterdir()]) > 2
