"""The C text of score functions and masks, compiled and run on the CPU, against NumPy."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from symad.errors import LoweringError, TraceError
from symad.gpu.attention_kernels.compiled_score import compile_score
from symad.gpu.attention_kernels.score_layout import CHUNK, Holds, extreme_key, tiled_axis
from symad.numeric.pairs.scores import SummedOver, parameters_of, trace_score
from tests.gpu.shim.driver import CpuModule
from tests.numeric.passes.tile_classes import EMPTY, FULL

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

KERNELS = Path(__file__).parents[3] / "gpu" / "kernels"
B, H, N, M = 2, 3, 37, 45
RNG = np.random.default_rng(0)
SLOPE, TABLE, BIAS = RNG.normal(size=H), RNG.normal(size=N + M - 1), RNG.normal(size=(H, N, M))
DOC = np.sort(RNG.integers(0, 4, 45))
PREFIX, QUERY, KEY = np.array([3, 20]), RNG.normal(size=(B, N)), RNG.normal(size=(M, H))
b_, h_ = np.arange(B)[:, None, None, None], np.arange(H)[:, None, None]
i_, j_ = np.arange(N)[:, None], np.arange(M)

PROBE = """
extern "C" __global__ void probe(const Real* s, Real* t, Real* ds, Real* dss, Real* partials,
                                 int* allowed, int n, int m, int heads, ScoreArgs args) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  int b = at / (heads * n * m), h = at / (n * m) % heads, q = at / m % n, k = at % m;
  ScoreHead head = score_head(args, b, h);
  ScoreRow row = score_row(args, head, b, h, q);
  ScoreColumn column = score_column(args, head, b, h, k);
  ScorePair pair = {args, head, row, column, b, h, q, k};
  ScoreGrad out;
  score_grad(s[at], pair, out);
  t[at] = score_mod(s[at], pair);
  Real t2, ds2;
  score_second(s[at], pair, t2, ds2, dss[at]);
  if (out.t != t[at] || out.t != t2 || out.ds != ds2) t[at] = 1e30;
  ds[at] = out.ds;
  allowed[at] = mask_mod(pair);
  int total = gridDim.x * blockDim.x, p = 0;
  for (int e = 0; e < SCORE_ROWS; ++e) partials[p++ * total + at] = out.row[e];
  for (int e = 0; e < SCORE_COLUMNS; ++e) partials[p++ * total + at] = out.column[e];
  for (int e = 0; e < SCORE_DIAGONALS; ++e) partials[p++ * total + at] = out.diagonal[e];
  for (int e = 0; e < SCORE_PAIRS; ++e) partials[p++ * total + at] = out.pair[e];
}
extern "C" __global__ void tiles(int* classes, int* k_range, int* q_range, int n, int m, int heads,
                                 int rows, int columns, ScoreArgs args) {
  int nq = (n + rows - 1) / rows, nk = (m + columns - 1) / columns;
  int at = blockIdx.x;
  int b = at / (heads * nq * nk), h = at / (nq * nk) % heads, q = at / nk % nq, k = at % nk;
  ScoreHead head = score_head(args, b, h);
  int q0 = q * rows, q1 = symad_min(n, q0 + rows), k0 = k * columns;
  int k1 = symad_min(m, k0 + columns);
  classes[at] = score_tile(args, head, b, h, q0, q1, k0, k1);
  int lo = 0, hi = m;
  score_k_range(args, head, b, h, q0, q1, lo, hi);
  k_range[2 * at] = lo; k_range[2 * at + 1] = hi;
  lo = 0; hi = n;
  score_q_range(args, head, b, h, k0, k1, lo, hi);
  q_range[2 * at] = lo; q_range[2 * at + 1] = hi;
}
"""


def build(score=None, mask=None, params=None, real="double", fast=False):
    traced = trace_score(score, mask, parameters_of(params))
    compiled = compile_score(traced, real, fast)
    head = f"#define SYMAD_REAL {real}\n#define SCORE_PLAIN {int(compiled.plain)}\n{compiled.macros}"
    return compiled, CpuModule(head + (KERNELS / "prims.h").read_text() + compiled.text + PROBE)


def arguments(compiled, params):
    """ScoreArgs, and the arrays it points to, which must live on."""
    kept = {}
    for p in compiled.score.parameters:
        real = np.float64 if compiled.real == "double" else np.float32
        kept[f"p_{p.name}"] = np.ascontiguousarray(params[p.name], np.int32 if p.integer else real)
    for load in compiled.score.reads(compiled.score.mask):
        key, axis, array = extreme_key(load), tiled_axis(load), kept[f"p_{load.name}"]
        if key is not None:
            starts = [0] if axis is None else range(0, array.shape[axis], CHUNK)
            for end, ufunc in (("lo", np.minimum), ("hi", np.maximum)):
                given = array.ravel() if axis is None else array
                kept[f"{end}_{key}"] = np.ascontiguousarray(ufunc.reduceat(given, starts, axis or 0))
    made = np.zeros(1, np.dtype([(f.name, f.dtype(compiled.real)) for f in compiled.fields], align=True))
    for field in compiled.fields:
        if field.is_pointer:
            made[field.name] = kept[field.name].ctypes.data
        elif field.parameter:
            value = kept[f"p_{field.parameter}"]
            made[field.name] = value.shape[field.axis] if field.holds is Holds.SIZE else value.item()
    return made, kept


def run(score=None, mask=None, params=None, real="double", fast=False):
    """(s, t, (∂t/∂s, ∂²t/∂s²), partials, mask, compiled) for every pair."""
    compiled, module = build(score, mask, params, real, fast)
    dtype = np.float64 if real == "double" else np.float32
    s = RNG.normal(size=(B, H, N, M)).astype(dtype)
    t, ds, dss = (np.empty_like(s) for _ in range(3))
    symbols = [symbol for group in compiled.groups.values() for symbol in group]
    partials = np.empty((max(len(symbols), 1), *s.shape), dtype)
    allowed = np.empty(s.shape, np.int32)
    made, _kept = arguments(compiled, params or {})
    sizes = [np.int32(v) for v in (N, M, H)]
    args = (s, t, ds, dss, partials, allowed, *sizes, made)
    module.get_function("probe")((B * N,), (H * M,), args)
    del _kept
    return s, t, (ds, dss), partials[: len(symbols)], allowed.astype(bool), compiled


# name: score, params, value in NumPy, ∂/∂s in NumPy, {parameter: (partial, reduction)}
CAP = 0.8
SCORES = {
    "alibi": (
        lambda s, b, h, i, j, slope: s - slope[h] * (i - j),
        {"slope": SLOPE},
        lambda s: s - SLOPE[:, None, None] * (i_ - j_),
        lambda s: np.ones_like(s),
        {"slope": (lambda s: j_ - i_ + 0 * s, SummedOver.ALL)},
    ),
    "relative": (
        lambda s, b, h, i, j, table: s + table[i - j + M - 1],
        {"table": TABLE},
        lambda s: s + TABLE[i_ - j_ + M - 1],
        lambda s: np.ones_like(s),
        {"table": (lambda s: np.ones_like(s), SummedOver.DIAGONAL)},
    ),
    "soft cap": (
        lambda s, b, h, i, j, cap: cap * sp.tanh(s / cap),
        {"cap": CAP},
        lambda s: CAP * np.tanh(s / CAP),
        lambda s: 1 / np.cosh(s / CAP) ** 2,
        {"cap": (lambda s: np.tanh(s / CAP) - s / CAP / np.cosh(s / CAP) ** 2, SummedOver.ALL)},
    ),
    "bias": (
        lambda s, b, h, i, j, bias: s * sp.exp(bias[h, i, j]),
        {"bias": BIAS},
        lambda s: s * np.exp(BIAS),
        lambda s: np.exp(BIAS) + 0 * s,
        {"bias": (lambda s: s * np.exp(BIAS), SummedOver.PAIR)},
    ),
    "query and key terms": (
        lambda s, b, h, i, j, u, w, c: s * sp.log(1 + u[b, i] ** 2) + c * w[j, h] * sp.sin(s),
        {"u": QUERY, "w": KEY, "c": 1.7},
        lambda s: s * np.log(1 + QUERY[:, None, :, None] ** 2)
        + 1.7 * KEY.T[:, None, :] * np.sin(s),
        lambda s: np.log(1 + QUERY[:, None, :, None] ** 2) + 1.7 * KEY.T[:, None, :] * np.cos(s),
        {
            "u": (
                lambda s: s * 2 * QUERY[:, None, :, None] / (1 + QUERY[:, None, :, None] ** 2),
                SummedOver.ROW,
            ),
            "w": (lambda s: 1.7 * np.sin(s), SummedOver.COLUMN),
            "c": (lambda s: KEY.T[:, None, :] * np.sin(s), SummedOver.ALL),
        },
    ),
    "pieces": (
        lambda s, b, h, i, j, a: sp.Piecewise((a * s, s < 0), (sp.Max(s, a, s**2), True))
        + sp.Abs(s) * sp.floor((i - j) / 3) / (1 + sp.Mod(i + j, 5)),
        {"a": 0.3},
        lambda s: np.where(s < 0, 0.3 * s, np.maximum(np.maximum(s, 0.3), s**2))
        + abs(s) * ((i_ - j_) // 3) / (1 + (i_ + j_) % 5),
        lambda s: np.where(
            s < 0, 0.3,
            np.where(s**2 > np.maximum(s, 0.3), 2 * s, np.where(s > np.maximum(s**2, 0.3), 1, 0)),
        ) + np.sign(s) * ((i_ - j_) // 3) / (1 + (i_ + j_) % 5),
        {
            "a": (
                lambda s: np.where(s < 0, s, np.where(np.maximum(s, s**2) < 0.3, 1.0, 0)),
                SummedOver.ALL,
            )
        },
    ),
}  # fmt: skip


def close(found, expected, real):
    """Equal to eight units in the last place of the largest entry."""
    ulp = 2.0**-53 if real == "double" else 2.0**-24
    expected = np.broadcast_to(expected, found.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * ulp * np.abs(expected).max())


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("real", ["double", "float"])
def test_value_and_partials(name, real):
    score, params, value, slope, partials = SCORES[name]
    s, t, (ds, _), found, _, compiled = run(score, None, params, real)
    s = s.astype(np.float64)
    close(t, value(s), real)
    close(ds, slope(s), real)
    loads = {load.symbol: load.name for load in compiled.score.loads}
    names = loads | {symbol: n for n, symbol in compiled.score.scalars}
    symbols = [symbol for group in compiled.groups.values() for symbol in group]
    assert sorted(names[x] for x in symbols) == sorted(partials)
    for symbol, result in zip(symbols, found, strict=True):
        expected, reduction = partials[names[symbol]]
        assert compiled.score.reduction(symbol) is reduction
        close(result, expected(s), real)


def test_second_derivatives():
    score, params, *_ = SCORES["soft cap"]
    s, _, (_, dss), *_ = run(score, None, params)
    close(dss, -2 / CAP * np.tanh(s / CAP) / np.cosh(s / CAP) ** 2, "double")
    score, params, *_ = SCORES["query and key terms"]
    s, _, (_, dss), *_ = run(score, None, params)
    close(dss, -1.7 * KEY.T[:, None, :] * np.sin(s), "double")


MASKS = {
    "causal": (lambda b, h, i, j: j <= i, {}, j_ <= i_),
    "window": (lambda b, h, i, j: (j <= i) & (i - j < 9), {}, (j_ <= i_) & (i_ - j_ < 9)),
    "both sides": (lambda b, h, i, j: sp.Abs(i - j) <= 6, {}, abs(i_ - j_) <= 6),
    "prefix": (
        lambda b, h, i, j, n: (j < n[b]) | (j <= i),
        {"n": PREFIX},
        (j_ < PREFIX[:, None, None, None]) | (j_ <= i_),
    ),
    "stride": (lambda b, h, i, j: 3 * j <= 2 * i + 4, {}, 3 * j_ <= 2 * i_ + 4),
    "by head": (lambda b, h, i, j: sp.Or(h > 0, j <= i), {}, (h_ > 0) | (j_ <= i_)),
    "width": (
        lambda b, h, i, j, w: (i - j < w) & (j - i < w), {"w": 7}, abs(i_ - j_) < 7,
    ),
}  # fmt: skip
SOUND = {
    "documents": (
        lambda b, h, i, j, doc: sp.Eq(doc[i], doc[j]) & (j <= i),
        {"doc": DOC},
        (DOC[:N, None] == DOC) & (j_ <= i_),
    ),
    "blocks": (
        lambda b, h, i, j: sp.Eq(sp.floor(i / 8), sp.floor(j / 8)) | (sp.Mod(j, 16) < 2),
        {},
        (i_ // 8 == j_ // 8) | (j_ % 16 < 2),
    ),
    "lengths": (
        lambda b, h, i, j, n: (j < n[i]) & (j >= 2),
        {"n": np.arange(N) // 2 + 5},
        (j_ < (np.arange(N) // 2 + 5)[:, None]) & (j_ >= 2),
    ),
    "far index": (
        lambda b, h, i, j, a: a[sp.Min(i + j, 30)] > 0,
        {"a": RNG.normal(size=31)},
        None,
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", {**MASKS, **SOUND})
@pytest.mark.parametrize(("rows", "columns"), [(16, 8), (8, 16), (64, 64)])
def test_tiles_and_loop_ranges(name, rows, columns):
    mask, params, dense = {**MASKS, **SOUND}[name]
    if dense is None:
        dense = params["a"][np.minimum(i_ + j_, 30)] > 0
    *_, allowed, compiled = run(None, mask, params)
    made, _kept = arguments(compiled, params)
    dense = np.broadcast_to(dense, (B, H, N, M))
    np.testing.assert_array_equal(allowed, dense)
    _, module = build(None, mask, params)
    shape = (B, H, -(-N // rows), -(-M // columns))
    classes = np.empty(shape, np.int32)
    k_range, q_range = np.empty((*shape, 2), np.int32), np.empty((*shape, 2), np.int32)
    sizes = [np.int32(v) for v in (N, M, H, rows, columns)]
    args = (classes, k_range, q_range, *sizes, made)
    module.get_function("tiles")((int(np.prod(shape)),), (1,), args)
    for b, h, q, k in np.ndindex(*shape):
        band = dense[b, h, q * rows : (q + 1) * rows]
        tile = band[:, k * columns : (k + 1) * columns]
        found, low, high = classes[b, h, q, k], *k_range[b, h, q, k]
        if name in MASKS:
            assert found == (FULL if tile.all() else EMPTY if not tile.any() else 1)
        assert found != EMPTY or not tile.any()
        assert found != FULL or tile.all()
        assert not band[:, :low].any() and not band[:, high:].any()
        stripe = dense[b, h, :, k * columns : (k + 1) * columns]
        low, high = q_range[b, h, q, k]
        assert not stripe[:low].any() and not stripe[high:].any()


@pytest.mark.parametrize("name", ["causal", "window", "both sides", "stride", "width"])
def test_loop_ranges_are_closed_formulas(name):
    mask, params, dense = MASKS[name]
    compiled, module = build(None, mask, params)
    shape = (B, H, -(-N // 16), -(-M // 8))
    k_range, q_range = np.empty((*shape, 2), np.int32), np.empty((*shape, 2), np.int32)
    sizes = [np.int32(v) for v in (N, M, H, 16, 8)]
    made, _kept = arguments(compiled, params)
    args = (np.empty(shape, np.int32), k_range, q_range, *sizes, made)
    module.get_function("tiles")((int(np.prod(shape)),), (1,), args)
    dense = np.broadcast_to(dense, (N, M))
    for q in range(shape[2]):
        seen = np.flatnonzero(dense[q * 16 : (q + 1) * 16].any(axis=0))
        assert tuple(k_range[0, 0, q, 0]) == (seen[0], seen[-1] + 1)
    for k in range(shape[3]):
        seen = np.flatnonzero(dense[:, k * 8 : (k + 1) * 8].any(axis=1))
        low, high = q_range[0, 0, 0, k]
        assert (low, high) == (seen[0], seen[-1] + 1) if seen.size else low >= high or low >= N


@pytest.mark.thorough
def test_traits():
    plain, _ = build()
    assert plain.plain and "#define SCORE_MASKED 0" in plain.macros.splitlines()
    capped, _ = build(lambda s, b, h, i, j: 5 * sp.tanh(s / 5), lambda b, h, i, j: j <= i)
    assert not capped.plain and "#define SCORE_MASKED 1" in capped.macros.splitlines()


def test_the_derivative_of_a_soft_cap_reuses_the_tangent():
    compiled, _ = build(
        lambda s, b, h, i, j, cap: cap * sp.tanh(s / cap), params={"cap": 3.0}, real="float"
    )
    body = compiled.text[
        compiled.text.index("void score_grad") : compiled.text.index("void score_second")
    ]
    assert body.count("tanhf") == 1
    assert "/" not in body.replace("//", "")  # 1/cap is known per block


def test_fast_uses_the_approximate_instruction():
    compiled, _ = build(lambda s, b, h, i, j: sp.tanh(s), real="float", fast=True)
    assert "tanh_fast(s)" in compiled.text and "tanhf" not in compiled.text


def test_errors():
    with pytest.raises(LoweringError, match="besselj"):
        build(lambda s, b, h, i, j: sp.besselj(0, s))
    with pytest.raises(TraceError, match="uses w"):
        build(lambda s, b, h, i, j: s * sp.Symbol("w"))
