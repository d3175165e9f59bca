"""Random array programs: generated code, and its derivatives, against PyTorch's.

A program is drawn while it runs, once on traced values and once on tensors: all choices depend only on the
seed and on shapes. ``SYMAD_PROGRAMS=5000`` runs 5000 programs instead of a few.
"""

import importlib
import os

import numpy as np
import pytest

import symad
from symad.numeric import given, lower
from symad.numeric.compiler.c_compiler import compiler
from tests.numeric.agreement.random_programs import program, shapes_of

torch = pytest.importorskip("torch")

COUNT = int(os.environ.get("SYMAD_PROGRAMS", 0))
SEEDS = range(COUNT or 14)
COMPILED = range(COUNT or 2) if compiler() else ()

EARLY = {
    "program_passes.memory.reuse": {"MIN_KEPT_BYTES": 64},
    "numpy_arrays.lower": {"MIN_FREED_ELEMENTS": 8},
    "passes.blocking.row_blocks": {"MIN_ELEMENTS": 32, "BLOCK": 16, "MAX_SMALL_BETWEEN": 2},
    "passes.loops.sink_into_loop": {"MIN_STEP": 4, "MIN_TOTAL": 32},
    "passes.loops.feature_major": {"MIN_BATCH": 2},
    "passes.algebra.syrk_products": {"MIN_TERMS": 2},
    "program_passes.loops.open_bodies": {"CHAIN_BLOCK_ELEMENTS": 16},
    "scalars.lower_c": {"MAX_ENTRIES": 0},
}
"""Limits of the rules for large arrays, lowered so that the rules apply to small ones."""


def expected(seed, arrays, directions, dtype):
    """Values, gradient and Hessian-vector product by PyTorch."""
    inputs = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]
    results, total = program("torch", seed, inputs)
    slopes = torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
    along_v = sum((g * torch.tensor(v, dtype=dtype)).sum() for g, v in zip(slopes, directions, strict=True))
    curved = [torch.zeros_like(x) for x in inputs]
    if along_v.requires_grad:
        curved = torch.autograd.grad(along_v, inputs, materialize_grads=True)
    return [[t.numpy(force=True) for t in side] for side in (results, [total, *slopes], curved)]


def assert_close(found, wanted, rough, dtype):
    """Equal up to the rounding of ten programs like this one, told by PyTorch in single precision."""
    for one, right, single in zip(found, wanted, rough, strict=True):
        scale, error = (np.max(np.abs(a), initial=0) for a in (right, single - right))
        if not np.isfinite(error) or scale > 1e6 or error > 1e-3 * max(scale, 1):
            continue  # a program whose rounding grows beyond all measure
        assert np.shape(one) == np.shape(right)
        if dtype == "float32":
            assert not np.ndim(one) or one.dtype == np.float32
            np.testing.assert_allclose(one, right, rtol=0, atol=20 * error + 1e-5 * max(scale, 1))
        else:
            np.testing.assert_allclose(one, right, rtol=0, atol=1e-6 * error + 1e-12 * max(scale, 1))


def check(seed, backend, dtype):
    """Calls with other numbers; what they are given stays, so does what the caller keeps or writes over."""
    rng = np.random.default_rng(seed)
    shapes = shapes_of(seed)
    graphs = [symad.trace(lambda *x, k=k: program("numpy", seed, x)[k], shapes) for k in (0, 1)]
    derived = [graphs[0], symad.value_and_gradient(graphs[1]), symad.hvp(graphs[1])]
    kernels = [lower(graph, backend=backend, dtype=dtype) for graph in derived]
    kept = []
    for call in range(3):
        arrays, directions = ([rng.normal(size=s).astype(dtype) for s in shapes] for _ in range(2))
        layouts = [np.asfortranarray(a) if a.ndim and rng.random() < 0.3 else a.copy() for a in arrays]
        wanted = expected(seed, arrays, directions, torch.float64)
        rough = expected(seed, arrays, directions, torch.float32)
        for kernel, values, right, single in zip(
            kernels, [layouts, layouts, [*layouts, *directions]], wanted, rough, strict=True
        ):
            with np.errstate(all="ignore"):
                found = kernel(*values)
            found = found if isinstance(found, tuple) else (found,)
            assert_close(found, right, single, dtype)
            own = [a for a in found if np.ndim(a) and not any(np.shares_memory(a, b) for b in layouts)]
            kept += [(a, np.copy(a)) for a in own if call]
            for one in own if call == 0 else ():
                if one.flags.writeable:
                    one[...] = 7
        for one, other in zip(layouts, arrays, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, before in kept:
            np.testing.assert_array_equal(one, before)


@pytest.fixture(params=["usual limits", "early"])
def limits(request, monkeypatch):
    for name, values in EARLY.items() if request.param == "early" else ():
        module = importlib.import_module(f"symad.numeric.{name}")
        for limit, value in values.items():
            monkeypatch.setattr(module, limit, value)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_numpy_code(seed, limits):
    check(seed, "numpy", ["float64", "float32"][seed % 3 == 0])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", COMPILED)
def test_compiled_code(seed, limits):
    check(1000 + seed, "c", ["float64", "float32"][seed % 3 == 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_and_data(seed):
    """Batches of a length that is not known, and inputs that stay the same."""
    shapes, rng = shapes_of(2000 + seed), np.random.default_rng(seed)
    graph = symad.trace(lambda *x: program("numpy", 2000 + seed, x)[1], shapes)
    gradient = symad.value_and_gradient(graph)
    axes = [0, *(None if rng.random() < 0.3 else 0 for _ in shapes[1:])]
    batch = lower(symad.vmap(gradient, axes))
    arrays = [rng.normal(size=s if a is None else (2, *s)) for s, a in zip(shapes, axes, strict=True)]
    points = [[x if a is None else x[k] for x, a in zip(arrays, axes, strict=True)] for k in range(2)]
    held = given(gradient, {1: points[0][1]})
    with np.errstate(all="ignore"):
        found, fast = batch(*arrays), held(points[0][0], points[0][2])
    for k, point in enumerate(points):
        zeros = [np.zeros_like(x) for x in point]
        wanted, rough = (expected(2000 + seed, point, zeros, t)[1] for t in (torch.float64, torch.float32))
        assert_close([side[k] for side in found], wanted, rough, "float64")
        if k == 0:
            assert_close(fast, wanted, rough, "float64")
