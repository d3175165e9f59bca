"""Random array programs: generated code, and its derivatives, against PyTorch's.

A program is drawn while it runs, once on traced values and once on tensors: all choices depend only on the
seed and on shapes. ``SYMAD_PROGRAMS=5000`` runs 5000 programs instead of a few.
"""

import importlib
import os

import numpy as np
import pytest
from scipy import special

import symad
from symad import functions
from symad.numeric import given, lower
from symad.numeric.compiler.c_compiler import compiler

torch = pytest.importorskip("torch")
COUNT = int(os.environ.get("SYMAD_PROGRAMS", 0))
SEEDS = range(COUNT or 14)
COMPILED = range(COUNT or 2) if compiler() else ()

EARLY = {
    "program_passes.memory.recycling": {"MIN_KEPT_BYTES": 64},
    "numpy_arrays.owners": {"MIN_FREED_ELEMENTS": 8},
    "passes.blocking.row_blocks": {"MIN_ELEMENTS": 32, "BLOCK": 16, "MAX_SMALL_BETWEEN": 2},
    "passes.blocking.blocked_chains": {"MIN_ELEMENTS": 32, "MIN_ROWS": 2},
    "passes.loops.sink_into_loop": {"MIN_STEP": 4, "MIN_TOTAL": 32},
    "passes.loops.feature_major": {"MIN_BATCH": 2},
    "passes.algebra.syrk_products": {"MIN_TERMS": 2},
    "program_passes.loops.open_blocks": {"CHAIN_BLOCK_ELEMENTS": 16},
}
"""Limits of the rules for large arrays, lowered so that the rules apply to small ones."""


def both(numpy_function, torch_function=None):
    """A function by the world it is for."""
    return {"numpy": numpy_function, "torch": torch_function or numpy_function}


ONE = [
    both(np.sin, torch.sin),
    both(np.tanh, torch.tanh),
    both(lambda a: np.exp(-a * a), lambda a: torch.exp(-a * a)),
    both(lambda a: np.log1p(a * a), lambda a: torch.log1p(a * a)),
    both(lambda a: np.sqrt(a * a + 0.5), lambda a: torch.sqrt(a * a + 0.5)),
    both(functions.sigmoid, torch.sigmoid),
    both(functions.softplus, lambda a: torch.logaddexp(a, torch.zeros_like(a))),
    both(functions.silu, lambda a: a * torch.sigmoid(a)),
    both(special.erf, torch.erf),
    both(lambda a: a / ((1.5 + a * a) * (1.5 + a * a)) + a),
    both(lambda a: (a - 1) ** 3 / 4),
    both(lambda a: 1 - 2 * a),
    both(lambda a: np.where(a > 0.1, a, 0.3 * a), lambda a: torch.where(a > 0.1, a, 0.3 * a)),
    both(lambda a: np.clip(a, -0.7, 0.9), lambda a: torch.clip(a, -0.7, 0.9)),
]
TWO = [
    both(lambda a, b: a + b),
    both(lambda a, b: a - a * b),
    both(lambda a, b: a / (1.5 + b * b)),
    both(np.maximum, torch.maximum),
    both(np.hypot, lambda a, b: torch.hypot(*torch.broadcast_tensors(a, b))),
    both(lambda a, b: np.where(a > b, a * b, b), lambda a, b: torch.where(a > b, a * b, b)),
    both(np.logaddexp, lambda a, b: torch.logaddexp(*torch.broadcast_tensors(a, b))),
]
ALONG = [
    both(lambda a, k: np.cumsum(a, k) / 3, lambda a, k: torch.cumsum(a, k) / 3),
    both(lambda a, k: functions.softmax(a, k), lambda a, k: torch.softmax(a, k)),
    both(lambda a, k: a - np.mean(a, axis=k, keepdims=True), lambda a, k: a - a.mean(k, keepdim=True)),
    both(lambda a, k: np.max(a, axis=k, keepdims=True), lambda a, k: torch.amax(a, k, keepdim=True)),
    both(lambda a, k: np.sum(np.sin(a), axis=k), lambda a, k: torch.sin(a).sum(k)),
    both(lambda a, k: functions.logsumexp(a, k), lambda a, k: torch.logsumexp(a, k)),
    both(lambda a, k: np.flip(a, k), lambda a, k: torch.flip(a, (k,))),
    both(lambda a, k: np.roll(a, 1, k), lambda a, k: torch.roll(a, 1, k)),
    both(lambda a, k: np.concatenate([a, 2 * a], k), lambda a, k: torch.cat([a, 2 * a], k)),
    both(lambda a, k: np.stack([a, a + 1], k), lambda a, k: torch.stack([a, a + 1], k)),
    both(lambda a, k: np.repeat(a, 2, k), lambda a, k: torch.repeat_interleave(a, 2, k)),
    both(lambda a, k: np.take(a, np.array([0, -1, 0]), k), lambda a, k: a.index_select(k, places(a, k))),
    both(lambda a, k: np.moveaxis(a, k, 0), lambda a, k: torch.movedim(a, k, 0)),
    both(lambda a, k: np.moveaxis(a, k, 0)[1:], lambda a, k: torch.movedim(a, k, 0)[1:]),
    both(lambda a, k: np.moveaxis(a, k, 0)[-1], lambda a, k: torch.movedim(a, k, 0)[-1]),
    both(lambda a, k: np.moveaxis(a, k, 0)[::-2], lambda a, k: torch.flip(torch.movedim(a, k, 0), (0,))[::2]),
    both(lambda a, k: a.reshape(-1)),
]


def places(a, k):
    return torch.tensor([0, a.shape[k] - 1, 0])


def loop(world, rng, values):
    """A recurrence with one or two states over the first axis of a value; all states, or the last one."""
    x, *others = chosen(rng, values, 3, lambda a: a.ndim > 0 and a.shape[0] > 0)
    several, backwards, last = rng.random(3) < [0.4, 0.3, 0.3]
    memory = ["all", "all", "recompute", 2, "sqrt"][rng.integers(5)]
    f, g, h = (ONE[k][world] for k in rng.integers(len(ONE), size=3))
    state = others[0], (x[0] if rng.random() < 0.5 else others[-1])

    def step(c, t):
        new = np.tanh(f(c[0]) + total(g(t))) if world == "numpy" else torch.tanh(f(c[0]) + total(g(t)))
        return new, (h(c[1]) + total(new)) / 2

    def total(a):
        return a.sum() / 3

    def alone(c, t):
        return step((c, c), t)[0]

    if world == "numpy":
        run = functions.fold if last else functions.scan
        x = x[::-1] if backwards else x
        return run(step, state, x, memory)[1] if several else run(alone, state[0], x, memory)
    made = []
    for t in reversed(range(len(x))) if backwards else range(len(x)):
        state = step(state, x[t])
        made.append(state[1] if several else state[0])
    return made[-1] if last else torch.stack(made)


def part(world, rng, values):
    """What is computed again for derivatives; its result may be a view of its argument."""
    (a,) = chosen(rng, values, 1, lambda a: a.ndim > 0)
    f, plain = ONE[rng.integers(len(ONE))][world], rng.random() < 0.3
    axes = tuple(reversed(range(a.ndim)))
    if world == "torch":
        return (a if plain else f(f(a))).permute(axes)
    return symad.remat(lambda y: np.transpose(y if plain else f(f(y)), axes))(a)


def product(world, rng, values):
    """Matrix products, of batches of matrices, of vectors, and of an array with itself."""
    a, b = chosen(rng, values, 2, lambda a: a.ndim > 0 and a.shape[-1] > 0)
    fits = b.shape[0 if b.ndim == 1 else -2] == a.shape[-1] and (b.ndim < 3 or a.shape[:-2] == b.shape[:-2])
    right = b if fits else a.swapaxes(-1, -2) if a.ndim > 1 else a
    return (a @ right) / a.shape[-1]


def chosen(rng, values, count, fits):
    """Values that fit, late ones rather than early ones."""
    fitting = [v for v in values if fits(v)]
    return [fitting[-1 - int(len(fitting) * rng.random() ** 2)] for _ in range(count)]


def elementwise(world, rng, values):
    a, b = chosen(rng, values, 2, lambda a: True)
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    if rng.random() < 0.5 or not all(m == n or 1 in (m, n) for m, n in pairs):
        return ONE[rng.integers(len(ONE))][world](a)
    return TWO[rng.integers(len(TWO))][world](a, b)


def along(world, rng, values):
    (a,) = chosen(rng, values, 1, lambda a: a.ndim > 0 and 0 not in a.shape and a.ndim < 4)
    return ALONG[rng.integers(len(ALONG))][world](a, int(rng.integers(a.ndim)))


STEPS = [elementwise, elementwise, elementwise, along, along, along, product, loop, part]


def program(world, seed, inputs):
    """The values of a random program, and at the end a number made of some of them."""
    rng = np.random.default_rng(seed)
    values = list(inputs)
    for _ in range(int(rng.integers(3, 10))):
        values.append(STEPS[rng.integers(len(STEPS))](world, rng, values))
    results = [values[-1], *chosen(rng, values, int(rng.integers(3)), lambda a: True)]
    weigh = ONE[rng.integers(6)][world]
    return results, sum(weigh(a).sum() / max(1, int(np.prod(a.shape))) for a in results)


def shapes_of(seed):
    rng = np.random.default_rng(10**6 + seed)
    sizes = rng.choice([1, 2, 3, 4, 5, 8, 17], size=2)
    ranks = [int(rng.integers(1, 4)), *rng.integers(0, 4, size=2)]
    return [tuple(int(d) for d in rng.choice(sizes, size=rank)) for rank in ranks]


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


@pytest.mark.parametrize("seed", SEEDS)
def test_numpy_code(seed, limits):
    check(seed, "numpy", ["float64", "float32"][seed % 3 == 0])


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
