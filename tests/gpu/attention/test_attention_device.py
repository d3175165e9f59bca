"""The attention kernels on a real GPU: values, the same bits in every run, no errors by sanitizers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from symad.gpu.eager import attention, attention_vjp
from tests.gpu.attention.on_device import device, draw
from tests.gpu.attention_cases import decode, reference, relative

pytestmark = pytest.mark.gpu

# As in test_attention_kernels.py, with room for the device's approximate instructions: ex2.approx
# has a relative error of 2^-22, and sums over more keys.
BOUNDS = {
    "bfloat16": (4e-3, 6e-3), "float16": (6e-4, 1e-3), "float32": (1e-6, 2e-6),
    "float64": (4e-15, 1e-14),
}  # fmt: skip
SIZES = [
    (1, 2, 2, 128, 128, 64, 64), (2, 4, 2, 300, 270, 128, 128), (1, 2, 1, 257, 513, 64, 40),
    (1, 1, 1, 200, 190, 96, 80), (1, 1, 1, 100, 1000, 128, 128), (2, 2, 1, 65, 65, 20, 7),
    (1, 2, 1, 140, 150, 256, 256),
]  # fmt: skip


def host(x, name):
    import cupy as cp

    return decode(cp.asnumpy(x.view(np.uint16) if name == "bfloat16" else x), name)


def bits(x):
    import cupy as cp

    return cp.asnumpy(x.view(np.uint8))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", BOUNDS)
def test_attention_and_its_cotangents(name, sizes, causal):
    import cupy as cp

    arrays = draw(name, sizes)
    q, k, v, out_bar = (device(a, name) for a in arrays)
    lse_bar = np.random.default_rng(1).normal(size=sizes[:2] + sizes[3:4])
    out, lse = attention(q, k, v, causal=causal, return_lse=True)
    given = {"lse_bar": cp.asarray(lse_bar).astype(lse.dtype), "causal": causal}
    bars = attention_vjp(q, k, v, out, lse, out_bar, **given)
    again = attention_vjp(q, k, v, out, lse, out_bar, **given)
    n, m, d = sizes[3:6]
    visible = np.arange(m) <= np.arange(n)[:, None] if causal else None
    exact = [decode(a, name) for a in arrays]
    wanted = reference(*exact, cp.asnumpy(given["lse_bar"]), d**-0.5, visible=visible)
    assert relative(host(out, name), wanted[0]) < BOUNDS[name][0]
    for side, want in zip("qkv", wanted[2:5], strict=True):
        assert relative(host(getattr(bars, side), name), want) < BOUNDS[name][1]
        assert np.array_equal(bits(getattr(bars, side)), bits(getattr(again, side)))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_atomic_additions(name):
    sizes = (2, 4, 2, 300, 270, 128, 128)
    arrays = draw(name, sizes)
    q, k, v, out_bar = (device(a, name) for a in arrays)
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    bars = attention_vjp(q, k, v, out, lse, out_bar, causal=True, deterministic=False)
    exact = [decode(a, name) for a in arrays]
    visible = np.arange(270) <= np.arange(300)[:, None]
    wanted = reference(*exact, 0.0, 128**-0.5, visible=visible)
    for side, want in zip("qkv", wanted[2:5], strict=True):
        assert relative(host(getattr(bars, side), name), want) < BOUNDS[name][1]


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_scores_masks_and_parameters(name):
    import cupy as cp

    arrays = draw(name, (2, 4, 2, 200, 180, 64, 64))
    q, k, v, out_bar = (device(a, name) for a in arrays)
    rng = np.random.default_rng(2)
    slope, table = rng.normal(size=4), rng.normal(size=200 + 180 - 1)
    real = np.float64 if name == "float64" else np.float32

    def score(s, b, h, i, j, slope, table):
        return s + slope[h] * (j - i) / 50 + table[i - j + 179]

    def window(b, h, i, j):
        return (i - j <= 60) & (j - i < 30)

    options = {
        "score": score,
        "mask": window,
        "params": {"slope": cp.asarray(slope, real), "table": cp.asarray(table, real)},
    }
    out, lse = attention(q, k, v, return_lse=True, **options)
    bars = attention_vjp(q, k, v, out, lse, out_bar, **options)
    again = attention_vjp(q, k, v, out, lse, out_bar, **options)
    away = np.arange(180) - np.arange(200)[:, None]
    bias = slope[:, None, None] * away / 50 + table[179 - away]
    exact = [decode(a, name) for a in arrays]
    visible = (-away <= 60) & (away < 30)
    wanted = reference(*exact, 0.0, 64**-0.5, lambda s: s + bias, None, visible)
    assert relative(host(out, name), wanted[0]) < BOUNDS[name][0]
    gradient = np.zeros_like(table)
    np.add.at(gradient, 179 - away, wanted[5].sum((0, 1)))
    want = {"slope": (wanted[5] * away / 50).sum((0, 2, 3)), "table": gradient}
    for parameter, expected in want.items():
        found = bars.params[parameter]
        assert relative(cp.asnumpy(found), expected) < 5 * BOUNDS[name][1]
        assert np.array_equal(bits(found), bits(again.params[parameter]))


def test_float32_without_tensor_cores():
    import cupy as cp

    arrays = draw("float32", (1, 2, 1, 257, 513, 128, 128))
    q, k, v, out_bar = map(cp.asarray, arrays)
    out, lse = attention(q, k, v, return_lse=True, tensor_cores=False)
    bars = attention_vjp(q, k, v, out, lse, out_bar, tensor_cores=False)
    wanted = reference(*(a.astype(float) for a in arrays), 0.0, 128**-0.5)
    assert relative(cp.asnumpy(out), wanted[0]) < 1e-6
    assert relative(cp.asnumpy(bars.k), wanted[3]) < 2e-6


def test_an_unseen_score_function_is_compiled_and_right():
    import time

    import cupy as cp

    q, k, v, _ = draw("float32", (1, 1, 1, 64, 64, 64, 64))
    unseen = sp.Rational(time.perf_counter_ns() % 9973, 1000003)  # no kernel of it is on disk
    start = time.monotonic()
    out = attention(
        *map(cp.asarray, (q, k, v)), score=lambda s, b, h, i, j: 30 * sp.tanh(s / 30) + unseen * (j - i)
    )
    cp.cuda.Device().synchronize()
    assert time.monotonic() - start < 60  # one to two seconds; a hang is what it looks for
    q, k, v = (a.astype(float) for a in (q, k, v))
    positions = np.arange(64)
    scores = 30 * np.tanh(q @ k.swapaxes(-1, -2) * 64**-0.5 / 30)
    weights = np.exp(scores + float(unseen) * (positions - positions[:, None]))
    wanted = weights / weights.sum(axis=-1, keepdims=True) @ v
    assert relative(cp.asnumpy(out), wanted) < BOUNDS["float32"][0]


@pytest.mark.parametrize("name", BOUNDS)
def test_tangents_of_the_cotangents(name):
    """Against torch in float64, as on the CPU, with room for the device's approximate instructions."""
    pytest.importorskip("torch")
    from tests.gpu import attention_calls
    from tests.gpu.attention import second_order as cpu

    sizes = (2, 4, 2, 130, 150, 64, 48)
    groups = cpu.draw(name, sizes)
    found = attention_calls.second_order(name, groups, where="device", causal=True)
    visible = np.arange(150) <= np.arange(130)[:, None]
    cpu.check(name, groups, found, 64**-0.5, visible=visible, room=2)


SANITIZER = """
import cupy as cp
import numpy as np
from tests.gpu import attention_calls
from tests.gpu.attention import second_order as cpu
from symad.gpu.eager import pairwise, pairwise_vjp
import sympy as sp
def gaussian(x, y):
    return sp.exp(-(x - y).dot(x - y))
from tests.gpu.attention.on_device import draw, device
from symad.gpu.eager import attention, attention_vjp
for name in ("bfloat16", "float32", "float64"):
    q, k, v, out_bar = (device(a, name) for a in draw(name, (1, 2, 1, 70, 90, 64, 40)))
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    attention_vjp(q, k, v, out, lse, out_bar, causal=True)
    attention_calls.second_order(name, cpu.draw(name, (1, 2, 1, 70, 90, 64, 40)), where="device", causal=True)
x, y, b = (cp.asarray(np.random.default_rng(0).random(s)) for s in ((130, 3), (90, 3), (90,)))
for reduce in ("sum", "logsumexp", "softmax"):
    out, lse = pairwise(gaussian, x, y, b, reduce=reduce, return_lse=True) if reduce == "softmax" else (
        pairwise(gaussian, x, y, b, reduce=reduce), None)
    pairwise_vjp(gaussian, x, y, b, out, cp.ones_like(out), reduce=reduce, lse=lse)
cp.cuda.Device().synchronize()
"""


def sanitizer():
    """compute-sanitizer, on the path or where CUDA toolkits lie."""
    found = shutil.which("compute-sanitizer")
    places = [os.environ.get("CUDA_PATH", ""), *map(str, Path("/usr/local").glob("cuda*"))]
    files = [Path(place) / "bin" / "compute-sanitizer" for place in places if place]
    return found or next((str(f) for f in files if f.exists()), None)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer_finds_nothing(tool):
    if sanitizer() is None:
        pytest.skip("compute-sanitizer is not installed")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sanitizer(), "--tool", tool, "--error-exitcode", "9", sys.executable, "-c", SANITIZER],
        capture_output=True, text=True, check=False, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
