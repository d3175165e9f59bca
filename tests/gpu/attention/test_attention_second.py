"""Tangents of attention and of its cotangents: the kernels on the CPU against torch in float64."""

import shutil

import numpy as np
import pytest
import sympy as sp

from tests.gpu.attention_calls import device
from tests.gpu.attention_calls import second_order as run
from tests.gpu.attention_cases import NAMES
from tests.gpu.shim.driver import SCHEDULES, schedule

torch = pytest.importorskip("torch")
from tests.gpu.attention.second_order import check, draw  # noqa: E402  (needs torch)

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


CASES = [
    ((1, 2, 1, 40, 50, 16, 16), False),
    ((2, 4, 2, 33, 70, 32, 48), True),
    ((1, 2, 2, 70, 40, 64, 64), True),
    ((1, 1, 1, 50, 60, 128, 96), False),
    ((1, 2, 1, 20, 30, 20, 7), True),
    ((1, 1, 1, 1, 90, 64, 64), False),
    ((1, 1, 1, 40, 33, 160, 256), False),
]


def quick(index, case, name):
    chosen = index in (0, 1, 2, 3, 4) and (index - NAMES.index(name)) % 4 == 0
    return pytest.param(*case, name, marks=[] if chosen else pytest.mark.slow)


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_float32_without_tensor_cores():
    groups = draw("float32", (1, 2, 1, 40, 30, 64, 48), seed=3)
    found = run("float32", groups, tensor_cores=False, causal=True)
    visible = np.arange(30) <= np.arange(40)[:, None]
    check("float32", groups, found, 64**-0.5, visible=visible)


@pytest.mark.thorough
def test_rows_without_keys_have_no_tangents():
    groups = draw("float64", (1, 2, 1, 40, 40, 16, 16), seed=4)
    found = run("float64", groups, mask=lambda b, h, i, j: j < i - 9)
    visible = np.arange(40) < np.arange(40)[:, None] - 9
    check("float64", groups, found, 0.25, visible=visible)
    assert not found[0][:, :, :10].any()
    assert not found[2][:, :, :10].any()


@pytest.mark.thorough
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


@pytest.mark.thorough
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
