"""Blocked attention in NumPy against the plain softmax formula, and its cotangents."""

import sys

import numpy as np
import pytest
import sympy as sp
from scipy import special

from symad.core.expressions import Formula
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.fused.attention_ops import Attention
from symad.fused.score_functions import S
from symad.numeric.eager.attention import attention, attention_traffic, attention_vjp
from symad.numeric.eager.calls import NUMPY, kernel_of
from symad.ops.basic.sources import input_node

B, H, N, M, D, DV = 2, 4, 37, 53, 8, 5
LONG = (270, 530)
"""Lengths of several tiles of the generated code in both directions."""
ROWS, COLUMNS = np.arange(N)[:, None], np.arange(M)[None, :]
HEADS, BATCH = np.arange(H)[:, None, None], np.arange(B)[:, None, None, None]


def arrays(kv_heads=H, seed=0, n=N, m=M, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = ((B, H, n, D), (B, kv_heads, m, D), (B, kv_heads, m, DV))
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def plain(q, k, v, change=lambda s: s, allowed=True):
    """Softmax attention and its log-sum-exp from the whole N×M matrix."""
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    t = np.where(allowed, change(s), -np.inf)
    top = t.max(axis=-1, keepdims=True)
    e = np.exp(t - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return e / np.where(total == 0, 1, total) @ v, lse


RNG = np.random.default_rng(5)
SLOPE, TABLE = RNG.normal(size=H), RNG.normal(size=N + M - 1)
BIAS, DOC_Q = RNG.normal(size=(H, N, M)), np.sort(RNG.integers(0, 5, N))
DOC_K, PREFIX = np.sort(RNG.integers(0, 5, M)), np.array([7, 40])

# name: (keyword arguments of attention, the same in NumPy on the whole score matrix, the mask)
CASES = {
    "plain": ({}, lambda s: s, True),
    "causal": ({"causal": True}, lambda s: s, COLUMNS <= ROWS),
    "alibi": (
        {"score": lambda s, b, h, i, j, slope: s - slope[h] * (i - j), "params": {"slope": SLOPE}},
        lambda s: s - SLOPE[:, None, None] * (ROWS - COLUMNS),
        True,
    ),
    "relative": (
        {
            "score": lambda s, b, h, i, j, table: s + table[i - j + M - 1],
            "params": {"table": TABLE},
        },
        lambda s: s + TABLE[ROWS - COLUMNS + M - 1],
        True,
    ),
    "bias": (
        {"score": lambda s, b, h, i, j, bias: s + bias[h, i, j], "params": {"bias": BIAS}},
        lambda s: s + BIAS,
        True,
    ),
    "soft cap": (
        {"score": lambda s, b, h, i, j, cap: cap * sp.tanh(s / cap), "params": {"cap": 0.8}},
        lambda s: 0.8 * np.tanh(s / 0.8),
        True,
    ),
    "window": (
        {"mask": lambda b, h, i, j: (j <= i) & (i - j < 9)},
        lambda s: s,
        (COLUMNS <= ROWS) & (ROWS - COLUMNS < 9),
    ),
    "prefix": (
        {"mask": lambda b, h, i, j, n: (j <= i) | (j < n[b]), "params": {"n": PREFIX}},
        lambda s: s,
        (COLUMNS <= ROWS) | (PREFIX[:, None, None, None] > COLUMNS),
    ),
    "documents": (
        {
            "mask": lambda b, h, i, j, dq, dk: sp.Eq(dq[i], dk[j]),
            "params": {"dq": DOC_Q, "dk": DOC_K},
        },
        lambda s: s,
        DOC_Q[:, None] == DOC_K,
    ),
    "by head": (
        {"mask": lambda b, h, i, j: sp.Or(h < 2, j <= i)},
        lambda s: s,
        (HEADS < 2) | (COLUMNS <= ROWS),
    ),
    "clipped table": (
        {
            "score": lambda s, b, h, i, j, t: s * sp.exp(t[sp.Min(sp.Abs(i - j) // 3, 6)]),
            "params": {"t": SLOPE.repeat(2)[:7]},
        },
        lambda s: s * np.exp(SLOPE.repeat(2)[np.minimum(np.abs(ROWS - COLUMNS) // 3, 6)]),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_forward_equals_the_softmax_formula(name):
    options, change, allowed = CASES[name]
    q, k, v = arrays(kv_heads=2)
    out, lse = attention(q, k, v, return_lse=True, **options)
    expected, expected_lse = plain(q, k, v, change, allowed)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(lse, expected_lse, rtol=1e-12, atol=1e-13)


def directional(function, value, direction, step=1e-3):
    """d/dε function(value + ε direction) at 0, to O(step⁴)."""
    ends = [function(value + c * step * direction) for c in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)


@pytest.mark.parametrize("name", CASES)
def test_cotangents_are_derivatives_of_the_softmax_formula(name):
    options, change, allowed = CASES[name]
    q, k, v = arrays(kv_heads=2)
    rng = np.random.default_rng(1)
    out, lse = attention(q, k, v, return_lse=True, **options)
    out_bar, lse_bar = rng.normal(size=out.shape), rng.normal(size=lse.shape)
    found = attention_vjp(q, k, v, out, lse, out_bar, lse_bar=lse_bar, **options)

    def loss(**changed):
        result, level = plain(**({"q": q, "k": k, "v": v} | changed), change=change, allowed=allowed)
        return (result * out_bar).sum() + (np.where(np.isneginf(level), 0, level) * lse_bar).sum()

    if name == "documents":
        assert np.isneginf(lse).any() == (~(DOC_Q[:, None] == DOC_K).any(axis=1)).any()
    for argument, bar in (("q", found.q), ("k", found.k), ("v", found.v)):
        value = {"q": q, "k": k, "v": v}[argument]
        direction = rng.normal(size=value.shape)
        expected = directional(lambda a, n=argument: loss(**{n: a}), value, direction)
        np.testing.assert_allclose((bar * direction).sum(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["alibi", "relative", "bias", "soft cap", "clipped table"])
def test_parameter_cotangents(name):
    options, _, _ = CASES[name]
    ((parameter, value),) = options["params"].items()
    q, k, v = arrays()
    rng = np.random.default_rng(2)
    out, lse = attention(q, k, v, causal=True, return_lse=True, **options)
    out_bar = rng.normal(size=out.shape)
    found = attention_vjp(q, k, v, out, lse, out_bar, causal=True, **options)
    whole = {
        "alibi": lambda s, p: s - p[:, None, None] * (ROWS - COLUMNS),
        "relative": lambda s, p: s + p[ROWS - COLUMNS + M - 1],
        "bias": lambda s, p: s + p,
        "soft cap": lambda s, p: p * np.tanh(s / p),
        "clipped table": lambda s, p: s * np.exp(p[np.minimum(abs(ROWS - COLUMNS) // 3, 6)]),
    }[name]

    def loss(p):
        result, _ = plain(q, k, v, lambda s: whole(s, p), COLUMNS <= ROWS)
        return (result * out_bar).sum()

    direction = rng.normal(size=np.shape(value))
    expected = directional(loss, np.asarray(value), direction)
    bar = found.params[parameter]
    assert bar.shape == np.shape(value)
    np.testing.assert_allclose((bar * direction).sum(), expected, rtol=1e-8, atol=1e-8)


def test_several_parameters_and_a_read_inside_an_index():
    q, k, v = arrays()
    bucket, table = np.arange(M) % 3, np.array([0.3, -0.2, 0.9])
    out, lse = attention(
        q, k, v, score=lambda s, b, h, i, j, bucket, table, c: s + c * table[bucket[j]],
        params={"bucket": bucket, "table": table, "c": 2.0}, return_lse=True,
    )  # fmt: skip
    expected, expected_lse = plain(q, k, v, lambda s: s + 2.0 * table[bucket])
    np.testing.assert_allclose(out, expected, atol=1e-13)
    np.testing.assert_allclose(lse, expected_lse, atol=1e-13)


def test_queries_without_keys_give_zero_and_pass_nothing_on():
    q, k, v = arrays()
    options = {"mask": lambda b, h, i, j: j > i + 20}
    out, lse = attention(q, k, v, return_lse=True, **options)
    empty = np.arange(N) >= M - 21
    assert empty.any()
    assert (out[:, :, empty] == 0).all() and np.isneginf(lse[:, :, empty]).all()
    np.testing.assert_allclose(out, plain(q, k, v, allowed=COLUMNS > ROWS + 20)[0], atol=1e-13)
    found = attention_vjp(q, k, v, out, lse, np.ones_like(out), **options)
    assert (found.q[:, :, empty] == 0).all() and np.isfinite(found.k).all()


def test_lengths_per_batch_entry():
    q, k, v = arrays()
    lengths = (np.array([20, 37]), np.array([53, 11]))
    out = attention(q, k, v, lengths=lengths, causal=True)
    allowed = (
        (COLUMNS <= ROWS)
        & (lengths[0][:, None, None, None] > ROWS)
        & (lengths[1][:, None, None, None] > COLUMNS)
    )
    np.testing.assert_allclose(out, plain(q, k, v, allowed=allowed)[0], atol=1e-13)
    assert (out[0, :, 20:] == 0).all()


def test_single_precision_stays_single_and_half_computes_in_single():
    q, k, v = arrays(dtype=np.float32)
    out = attention(q, k, v, causal=True)
    expected = plain(*(a.astype(np.float64) for a in (q, k, v)), allowed=COLUMNS <= ROWS)[0]
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, atol=2e-6)
    half = attention(*(a.astype(np.float16) for a in (q, k, v)), causal=True)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half.astype(float), expected, atol=5e-3)


def test_several_tiles_equal_the_softmax_formula():
    q, k, v = arrays(kv_heads=2, n=LONG[0], m=LONG[1])
    rows, columns = np.arange(LONG[0])[:, None], np.arange(LONG[1])
    options = {
        "score": lambda s, b, h, i, j, slope: s - slope[h] * (i - j) / 99,
        "mask": lambda b, h, i, j: j <= i + 40,
        "params": {"slope": SLOPE},
    }
    out, lse = attention(q, k, v, return_lse=True, **options)

    def biased(s, slope):
        return s - slope[:, None, None] * (rows - columns) / 99

    allowed = columns <= rows + 40
    expected, expected_lse = plain(q, k, v, lambda s: biased(s, SLOPE), allowed)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(lse, expected_lse, rtol=1e-12, atol=1e-13)
    rng = np.random.default_rng(4)
    out_bar, directions = rng.normal(size=out.shape), [rng.normal(size=a.shape) for a in (q, k, v)]
    found = attention_vjp(q, k, v, out, lse, out_bar, **options)
    moved = []
    for e in (-2e-3, -1e-3, 1e-3, 2e-3):
        there = [a + e * d for a, d in zip((q, k, v), directions, strict=True)]
        moved.append(plain(*there, lambda s, e=e: biased(s, SLOPE + e), allowed)[0])
    slope = sum(c * (m * out_bar).sum() for c, m in zip((1, -8, 8, -1), moved, strict=True)) / 12e-3
    bars = (found.q, found.k, found.v)
    along = sum((bar * d).sum() for bar, d in zip(bars, directions, strict=True))
    np.testing.assert_allclose(along + found.params["slope"].sum(), slope, rtol=1e-8)


def tiles_of(**options):
    """How many tiles are computed: calls of the generated function of the score."""
    names = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: event == "call" and names.append(frame.f_code.co_name))
    try:
        attention(*arrays(n=1024, m=1024), **options)
    finally:
        sys.setprofile(before)
    return sum(name.startswith("_score_") for name in names)


def test_hidden_tiles_are_never_computed():
    assert tiles_of() == 16
    assert tiles_of(causal=True) == 10


def test_code_is_kept_by_the_formula_and_not_by_the_function():
    q, k, v = arrays()
    factor = 1

    def score(s, b, h, i, j):
        return s * factor

    first = attention(q, k, v, score=score)
    known = kernel_of.cache_info().currsize
    np.testing.assert_array_equal(attention(q, k, v, score=lambda s, b, h, i, j: s), first)
    assert kernel_of.cache_info().currsize == known  # another function of the same formula
    factor = 3
    np.testing.assert_allclose(attention(q, k, v, score=score), plain(q, k, v, lambda s: 3 * s)[0])
    assert kernel_of.cache_info().currsize == known + 1


@pytest.mark.thorough
def test_memory_grows_with_the_length_not_its_square():
    import tracemalloc

    def peak(length):
        rng = np.random.default_rng(0)
        q, k, v = (rng.normal(size=(1, 1, length, 4)) for _ in range(3))
        out, lse = attention(q, k, v, return_lse=True)  # the code is made
        attention_vjp(q, k, v, out, lse, out)
        tracemalloc.start()
        attention(q, k, v)
        attention_vjp(q, k, v, out, lse, out)
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    long, short = peak(4096), peak(2048)
    assert long < 4096 * 4096 * 8 / 16
    assert long < 2.5 * short


def test_integers_beyond_single_precision_stay_apart():
    q, k, v = arrays(n=2, m=2, dtype=np.float32)
    ids = np.array([2**24, 2**24 + 1])
    out = attention(q, k, v, mask=lambda b, h, i, j, d: sp.Eq(d[i], d[j]), params={"d": ids})
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, v)


def test_traffic_is_that_of_the_two_algorithms():
    n, d = sp.symbols("N d", positive=True)
    symbolic = attention_traffic(n, d, 128)
    assert sp.expand(symbolic["standard"] - (4 * n * d + 4 * n**2)) == 0
    numbers = attention_traffic(4096, 64, 128)
    assert numbers["standard"] == 4 * 4096 * 64 + 4 * 4096**2
    assert numbers["tiled"] == 2 * 4096 * 64 + 4096 + 2 * 4096 * 64 * 32
    assert numbers["tiled, keys in cache"] == 4 * 4096 * 64 + 4096


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"score": lambda s, b, h, i, j: s + sp.Symbol("w")}, TraceError, "uses w"),
        ({"score": lambda s, b, h, i, j, w: s + w}, TraceError, "asks for parameter w"),
        ({"score": lambda s, b, h, i, j: [s]}, TraceError, "return a scalar"),
        ({"mask": lambda b, h, i, j: i - j}, TraceError, "Boolean"),
        (
            {"score": lambda s, b, h, i, j, w: s + w[i, j], "params": {"w": np.ones(3)}},
            ShapeError,
            "has 2 indices; parameter w has 1 axes",
        ),
        (
            {"score": lambda s, b, h, i, j, w: s + w[j], "params": {"w": np.ones(3)}},
            ShapeError,
            "needs at least 53 entries",
        ),
        (
            {"score": lambda s, b, h, i, j, w: s + w[i - j], "params": {"w": np.ones(99)}},
            IndexError,
            "outside its shape",
        ),
        ({"score": lambda s, b, h, i, j, w: s + w, "params": {"w": 1j}}, TraceError, "dtype"),
        ({"lengths": (np.array([1.0, 2.0]), None)}, ShapeError, "query lengths"),
    ],
)
def test_errors_name_what_is_wrong(change, error, message):
    with pytest.raises(error, match=message):
        attention(*arrays(), **change)


def test_errors_of_shapes_and_kinds():
    q, k, v = arrays()
    with pytest.raises(ShapeError, match="head dim"):
        attention(q, k[..., :3], v)
    with pytest.raises(ShapeError, match="multiple"):
        attention(q, k[:, :3], v[:, :3])
    with pytest.raises(ShapeError, match="batch, heads, length"):
        attention(q[0], k, v)
    with pytest.raises(TypeError, match="dtype"):
        attention(q, k.astype(np.float32), v)
    with pytest.raises(TypeError, match="numpy arrays"):
        attention(q.tolist(), k, v)


def test_a_parameter_may_have_the_name_of_an_argument():
    x, y, z = arrays(n=5, m=5)
    weights = np.arange(5.0)
    given, others = {"q": weights, "N": 2.0}, {"w": weights, "c": 2.0}
    found = attention(x, y, z, score=lambda s, b, h, i, j, q, N: s + N * q[j], params=given)
    expected = attention(x, y, z, score=lambda s, b, h, i, j, w, c: s + c * w[j], params=others)
    np.testing.assert_array_equal(found, expected)


def test_against_torch():
    torch = pytest.importorskip("torch")
    q, k, v = arrays(n=40, m=40)
    tensors = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]
    result = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    np.testing.assert_allclose(out, result.detach().numpy(), atol=1e-12)
    out_bar = np.random.default_rng(3).normal(size=out.shape)
    result.backward(torch.tensor(out_bar))
    found = attention_vjp(q, k, v, out, lse, out_bar, causal=True)
    for bar, tensor in zip((found.q, found.k, found.v), tensors, strict=True):
        np.testing.assert_allclose(bar, tensor.grad.numpy(), atol=1e-12)


EVERY_TARGET = {
    "a Bessel function": (lambda s, b, h, i, j: sp.besselj(0, s), lambda s: special.jv(0, s)),
    "powers of integers": (lambda s, b, h, i, j: s * 2 ** (i - j), lambda s: s * 2.0 ** (ROWS - COLUMNS)),
    "an infinite branch": (
        lambda s, b, h, i, j: sp.Piecewise((s, j <= i), (-sp.oo, True)),
        lambda s: np.where(COLUMNS <= ROWS, s, -np.inf),
    ),
    "a third power": (lambda s, b, h, i, j: (s - i) ** 3 / 50, lambda s: (s - ROWS) ** 3 / 50),
}


@pytest.mark.parametrize("name", EVERY_TARGET)
def test_scores_have_the_functions_of_all_lowered_code(name):
    q, k, v = arrays()
    score, change = EVERY_TARGET[name]
    expected, _ = plain(q, k, v, change)
    np.testing.assert_allclose(attention(q, k, v, score=score), expected, rtol=1e-11, atol=1e-13)


def test_a_condition_selects_the_index_of_an_array():
    q, k, v = arrays()
    two = np.array([0.5, -0.25])
    where = lambda i, j: sp.Piecewise((0, j < i), (1, True))  # noqa: E731
    found = attention(q, k, v, score=lambda s, b, h, i, j, two: s + two[where(i, j)], params={"two": two})
    expected, _ = plain(q, k, v, lambda s: s + np.where(COLUMNS < ROWS, 0.5, -0.25))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_scores_in_single_precision_stay_there():
    """The root of a number was in double precision, and then the whole score."""
    value = sp.sqrt(2) * sp.Max(S, S**2) + sp.Piecewise((1, S > 0), (0, True))
    op = Attention(Formula(value), Formula(sp.true), (), None, 0)
    inputs = tuple(input_node(sp.Symbol(f"x{n}"), (1, 1, 4, 4)) for n in range(3))
    module = {}
    exec(kernel_of(inputs, (Node.of(op, inputs),), "float32", NUMPY).source, module)
    s = np.linspace(-2, 2, 9, dtype=np.float32)
    t = module["_score_1"](s, 0, 0, 0, 0)
    assert t.dtype == np.float32
    np.testing.assert_allclose(t, np.sqrt(2) * np.maximum(s, s**2) + (s > 0), rtol=1e-6)
