"""The attention kernels, run on the CPU in three thread schedules, against NumPy in float64."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.compile import GpuError
from symad.gpu.eager import attention, attention_vjp
from symad.numeric.eager.calls import kernel_of
from tests.gpu.attention.first_order import draw
from tests.gpu.attention_calls import device, forget
from tests.gpu.attention_calls import forward_backward as run
from tests.gpu.attention_cases import NAMES, decode, reference, relative
from tests.gpu.cupy_agreement import library
from tests.gpu.shim.driver import SCHEDULES, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

# Relative errors of outputs and of cotangents. bf16 has 8 bits, fp16 11: p and s̄ are rounded to them
# on their way to the tensor cores, so the last bit is lost twice.
BOUNDS = {
    "bfloat16": (3e-3, 5e-3), "float16": (4e-4, 6e-4), "float32": (5e-7, 1e-6),
    "float64": (2e-15, 4e-15),
}  # fmt: skip


SOME = [pytest.param(n, marks=[] if n == "bfloat16" else pytest.mark.slow) for n in NAMES]


@dataclass(frozen=True)
class Case:
    """Sizes (batch, heads, key heads, N, M, d, d_v)."""

    sizes: tuple[int, ...]
    causal: bool = False

    def __str__(self):
        return "x".join(map(str, self.sizes)) + ("-causal" if self.causal else "")


CASES = [
    Case((1, 1, 1, 64, 64, 16, 16)),
    Case((2, 4, 2, 70, 90, 32, 32)),
    Case((1, 2, 1, 100, 100, 64, 64), causal=True),
    Case((1, 1, 1, 150, 130, 128, 128)),
    Case((1, 2, 1, 60, 140, 128, 128), causal=True),
    Case((1, 1, 1, 50, 70, 96, 96)),
    Case((1, 3, 3, 33, 65, 48, 80)),
    Case((1, 1, 1, 130, 20, 80, 48)),
    Case((2, 2, 1, 40, 40, 20, 7), causal=True),
    Case((1, 1, 1, 1, 200, 64, 64)),
    Case((1, 1, 1, 60, 60, 160, 256)),
    Case((1, 2, 1, 40, 50, 256, 256), causal=True),
]


def check(name, arrays, lse_bar, found, scale, score=None, slope=None, visible=None):
    """Compare with the definition; returns t̄ in float64."""
    out, lse, bars = found
    exact = [decode(a, name) for a in arrays]
    wanted = reference(*exact, lse_bar.astype(np.float64), scale, score, slope, visible)
    value_bound, bar_bound = BOUNDS[name]
    assert relative(decode(out, name), wanted[0]) < value_bound
    finite = np.isfinite(wanted[1])
    largest = max(1, np.abs(wanted[1][finite]).max())
    np.testing.assert_array_equal(np.isneginf(lse), ~finite)
    lse_bound = 1e-14 if name == "float64" else 3e-6
    assert np.abs(lse[finite] - wanted[1][finite]).max() < lse_bound * largest
    for got, want in zip((bars.q, bars.k, bars.v), wanted[2:5], strict=True):
        assert relative(decode(got, name), want) < bar_bound
    return wanted[5]


def same_bits(x, y):
    return np.array_equal(np.asarray(x).view(np.uint8), np.asarray(y).view(np.uint8))


def quick(case, name):
    """Each case with one element type; the others are marked slow."""
    chosen = (CASES.index(case) - NAMES.index(name)) % 4 == 0
    return pytest.param(case, name, marks=[] if chosen else pytest.mark.slow)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "name"), [quick(c, n) for c in CASES for n in NAMES], ids=str
)
def test_plain_attention_and_its_cotangents(case, name):
    arrays, lse_bar = draw(name, case.sizes)
    n, m, d = case.sizes[3:6]
    visible = np.arange(m) <= np.arange(n)[:, None] if case.causal else None
    results = []
    for order in SCHEDULES:
        with schedule(order):
            results.append(run(name, arrays, lse_bar, causal=case.causal))
    check(name, arrays, lse_bar, results[0], d**-0.5, visible=visible)
    for other in results[1:]:  # the order of threads changes no bit
        assert same_bits(other[0], results[0][0])
        assert all(same_bits(getattr(other[2], a), getattr(results[0][2], a)) for a in "qkv")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", [CASES[1], CASES[4], *(pytest.param(c, marks=pytest.mark.slow) for c in CASES)], ids=str
)
def test_float32_without_tensor_cores(case):
    arrays, lse_bar = draw("float32", case.sizes)
    n, m, d = case.sizes[3:6]
    visible = np.arange(m) <= np.arange(n)[:, None] if case.causal else None
    for order in SCHEDULES:
        with schedule(order):
            found = run("float32", arrays, lse_bar, causal=case.causal, tensor_cores=False)
        check("float32", arrays, lse_bar, found, d**-0.5, visible=visible)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("bfloat16", Case((1, 2, 1, 100, 140, 64, 64), causal=True)),
        ("float16", Case((2, 2, 2, 70, 150, 128, 96))),
        ("bfloat16", Case((1, 2, 1, 70, 90, 8, 24), causal=True)),
        ("float16", Case((1, 1, 1, 70, 90, 80, 80))),
        ("bfloat16", Case((1, 1, 1, 70, 90, 96, 32))),
    ],
    ids=str,
)
def test_query_cotangents_by_atomic_additions(name, case):
    """The order of additions differs between schedules; the result only by rounding."""
    arrays, lse_bar = draw(name, case.sizes)
    n, m, d = case.sizes[3:6]
    visible = np.arange(m) <= np.arange(n)[:, None] if case.causal else None
    for order in SCHEDULES:
        with schedule(order):
            found = run(name, arrays, lse_bar, causal=case.causal, deterministic=False)
        check(name, arrays, lse_bar, found, d**-0.5, visible=visible)


@pytest.mark.thorough
def test_atomic_additions_only_where_they_exist():
    arrays, lse_bar = draw("float32", (1, 1, 1, 40, 50, 32, 32))
    one = run("float32", arrays, lse_bar)
    two = run("float32", arrays, lse_bar, deterministic=False)
    assert same_bits(one[2].q, two[2].q)


def relative_positions(n, m):
    return np.arange(m) - np.arange(n)[:, None]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOME)
def test_alibi_with_soft_cap_and_window(name):
    sizes = (2, 4, 2, 90, 80, 32, 32)
    arrays, lse_bar = draw(name, sizes, seed=1)
    rng = np.random.default_rng(2)
    slope, key_bias, query_bias = rng.normal(size=4), rng.normal(size=80), rng.normal(size=(2, 90))
    cap = 3.0

    def score(s, b, h, i, j, slope, cap, key_bias, query_bias):
        return cap * sp.tanh((s + slope[h] * (j - i) / 20 + key_bias[j] + query_bias[b, i]) / cap)

    def window(b, h, i, j):
        return (i - j <= 20) & (j - i < 10)

    params = {"slope": slope, "cap": cap, "key_bias": key_bias, "query_bias": query_bias}
    found = run(name, arrays, lse_bar, score=score, mask=window, params=params, scale=0.3)

    away = relative_positions(90, 80)
    shift = (slope[:, None, None] * away / 20 + key_bias + query_bias[:, None, :, None])
    visible = (-away <= 20) & (away < 10)
    exact = [decode(a, name) for a in arrays]
    t_bar = check(
        name, arrays, lse_bar, found, 0.3,
        lambda s: cap * np.tanh((s + shift) / cap),
        lambda s: 1 - np.tanh((s + shift) / cap) ** 2, visible,
    )  # fmt: skip
    keys = np.repeat(exact[1], 2, 1)
    u = (0.3 * np.einsum("bhnd,bhmd->bhnm", exact[0], keys) + shift) / cap
    inner = t_bar * (1 - np.tanh(u) ** 2)
    wanted = {
        "slope": (inner * away / 20).sum((0, 2, 3)),
        "cap": (t_bar * (np.tanh(u) - u * (1 - np.tanh(u) ** 2))).sum(),
        "key_bias": inner.sum((0, 1, 2)),
        "query_bias": inner.sum((1, 3)),
    }
    for parameter, want in wanted.items():
        assert relative(found[2].params[parameter], want) < 5 * BOUNDS[name][1], parameter


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOME)
def test_a_bias_for_every_pair(name):
    sizes = (2, 2, 1, 50, 45, 32, 16)
    arrays, lse_bar = draw(name, sizes, seed=3)
    bias = np.random.default_rng(4).normal(size=(2, 50, 45))
    found = run(
        name, arrays, lse_bar, score=lambda s, b, h, i, j, bias: s + bias[h, i, j],
        params={"bias": bias}, causal=True,
    )  # fmt: skip
    visible = relative_positions(50, 45) <= 0
    t_bar = check(name, arrays, lse_bar, found, 32**-0.5, lambda s: s + bias, None, visible)
    assert relative(found[2].params["bias"], t_bar.sum(0)) < 2 * BOUNDS[name][1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("bfloat16", (1, 2, 1, 100, 70, 32, 32)),
        pytest.param("float32", (2, 1, 1, 70, 100, 40, 24), marks=pytest.mark.slow),
        pytest.param("float64", (1, 2, 2, 90, 90, 128, 128), marks=pytest.mark.slow),
        pytest.param("float16", (1, 1, 1, 65, 200, 128, 64), marks=pytest.mark.slow),
        pytest.param("float64", (1, 1, 1, 40, 50, 256, 256), marks=pytest.mark.slow),
    ],
)
def test_tables_of_relative_positions(name, sizes):
    """Two tables: one per head and clipped at a distance of 20, one shared by all heads."""
    _, heads, _, n, m, d, _ = sizes
    arrays, lse_bar = draw(name, sizes, seed=12)
    rng = np.random.default_rng(13)
    near, far = rng.normal(size=(heads, 41)), rng.normal(size=n + m - 1)

    def score(s, b, h, i, j, near, far):
        return s + near[h, sp.Max(-20, sp.Min(20, i - j)) + 20] * far[i - j + m - 1]

    found = [
        run(name, arrays, lse_bar, score=score, params={"near": near, "far": far},
            mask=lambda b, h, i, j: (j <= i + 30))
        for _ in range(2)
    ]  # fmt: skip
    away = relative_positions(n, m)
    clipped, index = np.clip(-away, -20, 20) + 20, m - 1 - away
    bias = near[:, clipped] * far[index]
    t_bar = check(
        name, arrays, lse_bar, found[0], d**-0.5, lambda s: s + bias, None, away <= 30
    )
    wanted_near, wanted_far = np.zeros_like(near), np.zeros_like(far)
    for h in range(heads):
        np.add.at(wanted_near[h], clipped, (t_bar[:, h] * far[index]).sum(0))
        np.add.at(wanted_far, index, (t_bar[:, h] * near[h, clipped]).sum(0))
    assert relative(found[0][2].params["near"], wanted_near) < 5 * BOUNDS[name][1]
    assert relative(found[0][2].params["far"], wanted_far) < 5 * BOUNDS[name][1]
    for parameter in ("near", "far"):
        assert same_bits(found[0][2].params[parameter], found[1][2].params[parameter])


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOME)
def test_masks_by_document_prefix_and_length(name):
    sizes = (2, 2, 2, 75, 75, 32, 32)
    arrays, lse_bar = draw(name, sizes, seed=5)
    documents = np.sort(np.random.default_rng(6).integers(0, 5, 75)).astype(np.int32)
    lengths = (None, np.array([75, 30], np.int32))

    def mask(b, h, i, j, document):
        return sp.Or(sp.And(sp.Eq(document[i], document[j]), j <= i), j < 4)

    found = run(
        name, arrays, lse_bar, mask=mask, params={"document": documents}, lengths=lengths
    )
    away = relative_positions(75, 75)
    visible = ((documents[:, None] == documents) & (away <= 0)) | (np.arange(75) < 4)
    visible = visible & (np.arange(75) < lengths[1][:, None])[:, None, None]
    check(name, arrays, lse_bar, found, 32**-0.5, visible=visible)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOME)
def test_queries_without_keys_give_zero_and_pass_no_gradient(name):
    arrays, lse_bar = draw(name, (1, 2, 1, 70, 70, 32, 32), seed=7)
    found = run(name, arrays, lse_bar, mask=lambda b, h, i, j: (j < i - 30) & (i < 60))
    away = relative_positions(70, 70)
    visible = (away < -30) & (np.arange(70)[:, None] < 60)
    check(name, arrays, lse_bar, found, 32**-0.5, visible=visible)
    out, lse, bars = found
    assert not decode(out, name)[:, :, :31].any()
    assert np.isneginf(lse[:, :, :31]).all()
    assert not decode(bars.q, name)[:, :, 60:].any()


@pytest.mark.thorough
def test_derivatives_of_hidden_pairs_may_be_anything():
    arrays, lse_bar = draw("float32", (1, 1, 1, 40, 40, 32, 32), seed=8)
    weight = np.ones(1)
    found = run(
        "float32", arrays, lse_bar, causal=True, params={"weight": weight},
        score=lambda s, b, h, i, j, weight: s + weight[0] * sp.sqrt(i - j),
    )  # fmt: skip
    away = relative_positions(40, 40)
    distance = np.sqrt(np.maximum(-away, 0))
    t_bar = check(
        "float32", arrays, lse_bar, found, 32**-0.5, lambda s: s + distance, None, away <= 0
    )
    assert relative(found[2].params["weight"], (t_bar * distance).sum()) < 1e-5


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [-0.4, 0.0])
def test_a_scale_that_is_not_positive(scale):
    arrays, lse_bar = draw("float32", (1, 1, 1, 40, 70, 32, 32), seed=9)
    check("float32", arrays, lse_bar, run("float32", arrays, lse_bar, scale=scale), scale)


@pytest.mark.thorough
def test_large_scores_do_not_overflow():
    arrays, lse_bar = draw("float64", (1, 1, 1, 40, 70, 32, 32), seed=10)
    found = run("float64", arrays, lse_bar, scale=300.0)
    exact = reference(*arrays, lse_bar.astype(float), 300.0)
    assert np.isfinite(found[0]).all()
    assert relative(found[0], exact[0]) < 1e-11  # a score of 3000 has an error of 5e-13


def test_no_keys_and_no_queries():
    arrays, lse_bar = draw("float32", (1, 2, 1, 5, 0, 16, 16))
    out, lse, bars = run("float32", arrays, lse_bar)
    assert not out.any()
    assert np.isneginf(lse).all()
    assert not bars.q.any()
    assert bars.k.shape == (1, 1, 0, 16)
    arrays, lse_bar = draw("float32", (1, 2, 1, 0, 5, 16, 16))
    out, lse, bars = run("float32", arrays, lse_bar)
    assert out.shape == (1, 2, 0, 16)
    assert not bars.k.any()


@pytest.mark.thorough
@pytest.mark.parametrize("shared_memory", [99 * 1024, 163 * 1024])
def test_smaller_tiles_where_shared_memory_is_short(shared_memory):
    arrays, lse_bar = draw("float32", (1, 1, 1, 70, 60, 128, 128), seed=11)
    with device(shared_memory):
        found = run("float32", arrays, lse_bar)
    check("float32", arrays, lse_bar, found, 128**-0.5)


@pytest.mark.thorough
def test_devices_without_tensor_cores_for_the_dtype():
    arrays, lse_bar = draw("float32", (1, 1, 1, 70, 60, 128, 128), seed=14)
    with device(64 * 1024, (7, 5)):
        found = run("float32", arrays, lse_bar)
        check("float32", arrays, lse_bar, found, 128**-0.5)
        with pytest.raises(GpuError, match=r"float64 needs compute capability 8\.0; this device has 7\.5"):
            run("float64", [a.astype(float) for a in arrays], lse_bar)
    with device(64 * 1024):
        plain = run("float32", arrays, lse_bar, tensor_cores=False)
    assert same_bits(found[0], plain[0])  # ordinary arithmetic on both


def test_a_head_dim_too_large_for_the_device():
    arrays, _ = draw("float64", (1, 1, 1, 8, 8, 256, 256))
    with device(50000), pytest.raises(ValueError, match=r"bytes of shared memory; .* has 9\.0 and 50000"):
        run("float64", arrays, np.zeros((1, 1, 8)))
    arrays, _ = draw("float32", (1, 1, 1, 8, 8, 260, 16))
    with pytest.raises(ShapeError, match="head dims 260 and 16: the kernels take at most 256"):
        run("float32", arrays, np.zeros((1, 1, 8)))


def test_arrays_that_do_not_fit():
    arrays, _ = draw("float32", (1, 2, 1, 8, 8, 16, 16))
    with library() as cp:
        q, k, v, out_bar = map(cp.asarray, arrays)
        with pytest.raises(ShapeError, match=r"q \(1, 2, 8, 16\), k \(1, 1, 8, 12\)"):
            attention(q, k[..., :12], v)
        with pytest.raises(ShapeError, match="multiple of the key heads"):
            attention(q, cp.repeat(k, 3, 1), cp.repeat(v, 3, 1))
        with pytest.raises(ShapeError, match="q has shape"):
            attention(q[0], k, v)
        with pytest.raises(TypeError, match="q, k, v have dtypes float32, float64, float32"):
            attention(q, k.astype(float), v)
        with pytest.raises(TypeError, match=r"k is a builtins\.list; .* symad\.gpu\.attention CuPy's"):
            attention(q, arrays[1].tolist(), v)
        with pytest.raises(TypeError, match="q has dtype int32; give floating-point numbers"):
            attention(*(a.astype(np.int32) for a in (q, k, v)))
        out, lse = attention(q, k, v, return_lse=True)
        with pytest.raises(ShapeError, match=r"out_bar has shape \(1, 2, 8, 12\)"):
            attention_vjp(q, k, v, out, lse, out_bar[..., :12])
        with pytest.raises(ShapeError, match=r"w\[i \+ j\] reads entries 0 to 14 of axis 0; w has"):
            attention(q, k, v, score=lambda s, b, h, i, j, w: s + w[i + j], params={"w": cp.ones(5)})
        with pytest.raises(TypeError, match=r"parameter w is a numpy\.ndarray"):
            attention(q, k, v, score=lambda s, b, h, i, j, w: s + w[i], params={"w": np.ones(8)})
        with pytest.raises(ShapeError, match="w holds 0 to 2147483648; kernels take 32-bit integers"):
            large = cp.asarray(np.array([0, 2**31]))
            attention(q, k, v, mask=lambda b, h, i, j, w: w[0] < j, params={"w": large})


@pytest.mark.thorough
def test_code_is_kept_by_formulas_for_all_lengths():
    """Functions are called anew, so what they read may change; lengths are open."""
    factor = 1.0

    def score(s, b, h, i, j):
        return s * factor

    def found(length):
        arrays, lse_bar = draw("float32", (1, 1, 1, length, length, 16, 16))
        return arrays, run("float32", arrays, lse_bar, score=score)

    forget()
    for length in (5, 9, 17):
        arrays, (out, *_) = found(length)
        assert relative(out, reference(*map(np.float64, arrays), 0.0, 0.25)[0]) < 1e-6
    assert kernel_of.cache_info().currsize == 2  # values, and cotangents
    factor = 3.0
    arrays, (out, *_) = found(5)
    assert relative(out, reference(*map(np.float64, arrays), 0.0, 0.75)[0]) < 1e-6


@pytest.mark.thorough
def test_an_entry_read_many_times_gets_the_sum_of_all_reads():
    arrays, lse_bar = draw("float64", (2, 2, 1, 37, 20, 16, 16), seed=15)
    bucket, table = np.random.default_rng(16).integers(0, 4, 37), np.array([0.5, -1.0, 2.0, 0.1])
    params = {"bucket": bucket, "table": table}

    def score(s, b, h, i, j, bucket, table):
        return s * table[bucket[i]] + j * table[sp.Min(i, 3)]

    found = run("float64", arrays, lse_bar, score=score, params=params)
    first, second = table[bucket][:, None], np.arange(20) * table[np.minimum(np.arange(37), 3)][:, None]
    t_bar = check("float64", arrays, lse_bar, found, 0.25, lambda s: s * first + second, lambda s: first)
    keys = np.repeat(arrays[1], 2, 1)
    scores = 0.25 * np.einsum("bhnd,bhmd->bhnm", arrays[0], keys)
    expected = np.zeros(4)
    np.add.at(expected, bucket, (t_bar * scores).sum((0, 1, 3)))
    np.add.at(expected, np.minimum(np.arange(37), 3), (t_bar * np.arange(20)).sum((0, 1, 3)))
    assert relative(found[2].params["table"], expected) < 1e-13


@pytest.mark.thorough
def test_views_are_copied():
    (q, k, v, out_bar), lse_bar = draw("float32", (1, 2, 1, 40, 33, 32, 32))
    strided = [np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) for a in (q, k, v, out_bar)]
    one, two = run("float32", [q, k, v, out_bar], lse_bar), run("float32", strided, lse_bar)
    assert same_bits(one[0], two[0])
    assert same_bits(one[2].k, two[2].k)


def test_numpy_arrays_stay_on_the_cpu():
    """No device is asked for, as docs/gpu.md says."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 5, 4))
    scores = q @ k.swapaxes(-1, -2) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    found = attention(q, k, v)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, weights @ v, rtol=1e-12)
