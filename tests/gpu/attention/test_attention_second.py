"""Tangents of attention and of its cotangents: the kernels on the CPU against torch in float64."""

import shutil

import numpy as np
import pytest
import sympy as sp

from tests.gpu.attention_calls import device
from tests.gpu.attention_calls import second_order as run
from tests.gpu.attention_cases import NAMES, decode, encode, relative
from tests.gpu.shim.driver import SCHEDULES, schedule

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

# Relative errors of (ȯ, L̇) and of the second cotangents: p, s̄ and their tangents are rounded to the
# element type on their way to the tensor cores, and ȯ once more between the passes.
BOUNDS = {
    "bfloat16": (5e-3, 1.2e-2), "float16": (7e-4, 1.5e-3), "float32": (1e-6, 3e-6),
    "float64": (4e-15, 1e-14),
}  # fmt: skip

CASES = [
    ((1, 2, 1, 40, 50, 16, 16), False),
    ((2, 4, 2, 33, 70, 32, 48), True),
    ((1, 2, 2, 70, 40, 64, 64), True),
    ((1, 1, 1, 50, 60, 128, 96), False),
    ((1, 2, 1, 20, 30, 20, 7), True),
    ((1, 1, 1, 1, 90, 64, 64), False),
    ((1, 1, 1, 40, 33, 160, 256), False),
]


def definition(q, k, v, scale, score, visible):
    """(o, L) over all pairs, in torch; rows without keys are 0 and −∞."""
    group = q.shape[1] // k.shape[1]
    s = scale * q @ k.repeat_interleave(group, 1).transpose(-1, -2)
    t = score(s).masked_fill(~visible, -torch.inf)
    alive = visible.any(-1, keepdim=True)
    t = t.masked_fill(~alive, 0.0)
    lse = torch.logsumexp(t, -1)
    out = torch.exp(t - lse[..., None]) @ v.repeat_interleave(group, 1)
    return out.masked_fill(~alive, 0.0), lse.masked_fill(~alive[..., 0], 0.0)


def wanted(arrays, bars, dots, bar_dots, scale, score, visible):
    """(ȯ, L̇) and the tangents of q̄, k̄, v̄, by torch's automatic differentiation."""
    arrays, bars, dots, bar_dots = (
        tuple(torch.tensor(a) for a in group) for group in (arrays, bars, dots, bar_dots)
    )

    def value(*arguments):
        return definition(*arguments, scale, score, visible)

    def cotangents(q, k, v, out_bar, lse_bar):
        _, pull = torch.func.vjp(value, q, k, v)
        return pull((out_bar, lse_bar))

    _, tangents = torch.func.jvp(value, arrays, dots)
    _, seconds = torch.func.jvp(cotangents, (*arrays, *bars), (*dots, *bar_dots))
    return [t.numpy() for t in (*tangents, *seconds)]


def draw(name, sizes, seed=0):
    """(q, k, v), (ō, L̄), and tangents of both, in storage."""
    batch, heads, groups, n, m, d, dv = sizes
    rng = np.random.default_rng(seed)
    shapes = [(batch, heads, n, d), (batch, groups, m, d), (batch, groups, m, dv)]
    real = np.float64 if name == "float64" else np.float32

    def several():
        arrays = tuple(encode(rng.normal(size=s), name) for s in shapes)
        rows = encode(rng.normal(size=(batch, heads, n, dv)), name)
        return arrays, (rows, rng.normal(size=(batch, heads, n)).astype(real))

    (arrays, bars), (dots, bar_dots) = several(), several()
    return arrays, bars, dots, bar_dots


def check(name, groups, found, scale, score=lambda s: s, visible=None, room=1):
    """Compare with torch; ``room`` widens the bounds."""
    exact = [[decode(a, name) for a in g[:-1]] + [g[-1].astype(float)] for g in groups[1::2]]
    points = [[decode(a, name) for a in g] for g in groups[::2]]
    n, m = groups[0][0].shape[2], groups[0][1].shape[2]
    seen = torch.ones(n, m, dtype=torch.bool) if visible is None else torch.tensor(visible)
    expected = wanted(points[0], exact[0], points[1], exact[1], scale, score, seen)
    bounds = [BOUNDS[name][0]] * 2 + [BOUNDS[name][1]] * 3
    for k, (got, want, bound) in enumerate(zip(found, expected, bounds, strict=True)):
        values = np.asarray(got, float) if k == 1 else decode(got, name)
        assert relative(values, want) < room * bound, ("ȯ", "L̇", "q̄̇", "k̄̇", "v̄̇")[k]


def quick(index, case, name):
    chosen = index in (0, 1, 2, 3, 4) and (index - NAMES.index(name)) % 4 == 0
    return pytest.param(*case, name, marks=[] if chosen else pytest.mark.slow)


@pytest.mark.parametrize(
    ("sizes", "causal", "name"), [quick(i, c, n) for i, c in enumerate(CASES) for n in NAMES]
)
def test_plain_attention(sizes, causal, name):
    groups = draw(name, sizes)
    n, m, d = sizes[3:6]
    visible = np.arange(m) <= np.arange(n)[:, None] if causal else None
    results = []
    for order in SCHEDULES:
        with schedule(order):
            results.append(run(name, groups, causal=causal))
    check(name, groups, results[0], d**-0.5, visible=visible)
    for other in results[1:]:  # the order of threads changes no bit
        for x, y in zip(results[0], other, strict=True):
            assert np.array_equal(x.view(np.uint8), y.view(np.uint8))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "bfloat16" else pytest.mark.slow) for n in NAMES]
)
def test_a_curved_score_under_a_window(name):
    """Soft-capped scores with a slope per head: f' and f'' both enter."""
    sizes = (2, 4, 2, 50, 45, 32, 32)
    groups = draw(name, sizes, seed=1)
    slope = np.random.default_rng(2).normal(size=4)

    def score(s, b, h, i, j, slope, cap):
        return cap * sp.tanh((s + slope[h] * (j - i) / 20) / cap)

    found = run(
        name, groups, score=score, mask=lambda b, h, i, j: (i - j <= 20) & (j - i < 10),
        params={"slope": slope, "cap": 1.5}, scale=0.4,
    )  # fmt: skip
    away = np.arange(45) - np.arange(50)[:, None]
    shift = torch.tensor(slope[:, None, None] * away / 20)
    visible = (-away <= 20) & (away < 10)
    check(
        name, groups, found, 0.4, lambda s: 1.5 * torch.tanh((s + shift) / 1.5), visible
    )


def test_float32_without_tensor_cores():
    groups = draw("float32", (1, 2, 1, 40, 30, 64, 48), seed=3)
    found = run("float32", groups, tensor_cores=False, causal=True)
    visible = np.arange(30) <= np.arange(40)[:, None]
    check("float32", groups, found, 64**-0.5, visible=visible)


def test_rows_without_keys_have_no_tangents():
    groups = draw("float64", (1, 2, 1, 40, 40, 16, 16), seed=4)
    found = run("float64", groups, mask=lambda b, h, i, j: j < i - 9)
    visible = np.arange(40) < np.arange(40)[:, None] - 9
    check("float64", groups, found, 0.25, visible=visible)
    assert not found[0][:, :, :10].any()
    assert not found[2][:, :, :10].any()


@pytest.mark.parametrize(
    ("name", "n", "d", "kilobytes"),
    [
        ("float32", 20, 128, 99),
        pytest.param("float64", 20, 128, 99, marks=pytest.mark.slow),
        pytest.param("float64", 4, 256, 227, marks=pytest.mark.slow),
    ],
)
def test_smaller_tiles_where_shared_memory_is_short(name, n, d, kilobytes):
    groups = draw(name, (1, 1, 1, n, 18, d, d), seed=5)
    with device(kilobytes * 1024):
        found = run(name, groups)
    check(name, groups, found, d**-0.5)


def test_a_head_dim_without_tiles():
    groups = draw("float64", (1, 1, 1, 4, 4, 256, 256))
    with device(99 * 1024), pytest.raises(ValueError, match="use backend='numpy'"):
        run("float64", groups)


def test_no_keys():
    groups = draw("float32", (1, 1, 1, 5, 0, 16, 16))
    out_dot, lse_dot, *rest = run("float32", groups)
    assert not out_dot.any()
    assert not lse_dot.any()
    assert [r.shape for r in rest] == [(1, 1, 5, 16), (1, 1, 0, 16), (1, 1, 0, 16)]
