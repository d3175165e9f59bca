"""Batches in blocks of rows, stencils on spans of memory, overlays: values by NumPy and hand, and shapes."""

from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.program_passes.loops import open_bodies

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(compiler() is None, reason="no C compiler"))]


def valley(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def valley_by_hand(x: Any) -> tuple[Any, Any]:
    """Values and gradients of rows of points."""
    a, b = x[:, :-1], x[:, 1:]
    slopes = np.zeros_like(x)
    slopes[:, :-1] = -400 * a * (b - a**2) - 2 * (1 - a)
    slopes[:, 1:] += 200 * (b - a**2)
    return np.sum(100 * (b - a**2) ** 2 + (1 - a) ** 2, axis=1), slopes


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("width", [2, 3, 10, 33])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_a_batch(backend: str, width: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_bodies, "CHAIN_BLOCK_ELEMENTS", 16 * width)
    kernel = lower(
        symad.vmap(symad.value_and_gradient(symad.trace(valley, [(width,)]))), backend=backend, dtype=dtype
    )
    assert "for start" in kernel.source
    kept = []
    for count in (0, 1, 15, 16, 17, 50):
        x = np.random.default_rng(count).normal(size=(count, width))
        value, (slopes,) = flat(kernel(x))
        expected = valley_by_hand(x)
        rel = 1e-12 if dtype == "float64" else 2e-4
        assert value.shape == (count,) and slopes.shape == (count, width) and slopes.dtype == dtype
        assert np.allclose(value, expected[0], rtol=rel)
        assert np.allclose(slopes, expected[1], rtol=rel, atol=rel * (1 + np.abs(expected[1]).max(initial=0)))
        kept.append((slopes, slopes.copy()))
    assert all(np.array_equal(now, then) for now, then in kept)  # no memory of results is used again
    x = np.random.default_rng(9).normal(size=(2 * width, 40)).T[:, ::2]  # any layout
    expected = valley_by_hand(x)[1]
    assert np.allclose(flat(kernel(x))[1][0], expected, rtol=rel, atol=rel * (1 + np.abs(expected).max()))


def flat(result: Any) -> tuple[Any, list[Any]]:
    value, slopes = result
    return value, [slopes] if isinstance(slopes, np.ndarray) else list(slopes)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gaps_are_not_read(backend: str) -> None:
    """Logarithms of differences: in the gaps they are NaN or infinite, and padding must be zero there."""
    f = symad.trace(lambda x: np.sum(np.log(x[1:] - x[:-1]) * np.sqrt(x[1:])), [(6,)])
    x = np.sort(np.random.default_rng(0).uniform(1, 2, size=(500, 6)), axis=1)
    value, (slopes,) = flat(lower(symad.vmap(symad.value_and_gradient(f)), backend=backend)(x))
    d, r = x[:, 1:] - x[:, :-1], np.sqrt(x[:, 1:])
    expected = np.zeros_like(x)
    expected[:, 1:] += r / d + np.log(d) / (2 * r)
    expected[:, :-1] -= r / d
    assert np.allclose(value, np.sum(np.log(d) * r, axis=1), rtol=1e-12)
    assert np.allclose(slopes, expected, rtol=1e-11)
    with np.errstate(all="raise"):  # gaps raise no warnings
        lower(symad.vmap(symad.value_and_gradient(f)), backend=backend)(x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_images_with_two_axes_in_each_row(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_bodies, "CHAIN_BLOCK_ELEMENTS", 200)

    def roughness(u: Any) -> Any:
        across, down = u[1:, :-1] - u[:-1, :-1], u[:-1, 1:] - u[:-1, :-1]
        return np.sum(np.sqrt(1 + across**2 + down**2)) + np.sum(np.exp(u[1:-1, 1:-2]))

    u = np.random.default_rng(1).normal(size=(37, 5, 7))
    kernel = lower(symad.vmap(symad.value_and_gradient(symad.trace(roughness, [(5, 7)]))), backend=backend)
    assert "for start" in kernel.source
    value, (slopes,) = flat(kernel(u))
    across, down = u[:, 1:, :-1] - u[:, :-1, :-1], u[:, :-1, 1:] - u[:, :-1, :-1]
    root = np.sqrt(1 + across**2 + down**2)
    expected = np.zeros_like(u)
    expected[:, 1:, :-1] += across / root
    expected[:, :-1, 1:] += down / root
    expected[:, :-1, :-1] -= (across + down) / root
    expected[:, 1:-1, 1:-2] += np.exp(u[:, 1:-1, 1:-2])
    assert np.allclose(value, root.sum((1, 2)) + np.exp(u[:, 1:-1, 1:-2]).sum((1, 2)), rtol=1e-12)
    assert np.allclose(slopes, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("known", [False, True])
def test_sums_over_a_batch(backend: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_bodies, "CHAIN_BLOCK_ELEMENTS", 100)
    n = 20_000 if known else sp.Symbol("n", integer=True, positive=True)

    def loss(x: Any, y: Any, w: Any) -> Any:
        return np.mean(np.sqrt(1 + (y - (x[:, 1:] * x[:, :-1] - w).sum(axis=1)) ** 2)) + w**2

    graph = symad.value_and_gradient(symad.trace(loss, [(n, 5), (n,), ()]), wrt=[2, 0])
    kernel = lower(graph, backend=backend)
    rng = np.random.default_rng(2)
    count = n if known else 77
    x, y, w = rng.normal(size=(count, 5)), rng.normal(size=count), 0.3
    assert "for start" in kernel.source
    value, by_w, by_x = kernel(x, y, w)
    rest = y - (x[:, 1:] * x[:, :-1] - w).sum(axis=1)
    slope = -rest / np.sqrt(1 + rest**2) / count
    expected = np.zeros_like(x)
    expected[:, 1:] += slope[:, None] * x[:, :-1]
    expected[:, :-1] += slope[:, None] * x[:, 1:]
    assert value == pytest.approx(np.mean(np.sqrt(1 + rest**2)) + w**2, rel=1e-12)
    assert by_w == pytest.approx(-4 * slope.sum() + 2 * w, rel=1e-11)
    assert np.allclose(by_x, expected, rtol=1e-11, atol=1e-15)


def test_what_mixes_rows_is_no_batch() -> None:
    n = sp.Symbol("n", integer=True, positive=True)
    for f in (
        lambda x: np.exp(x[1:] - x[:-1]) * np.sin(x[1:]) + np.cos(x[:-1]) / 3,
        lambda x: np.exp(np.sin(x) - x.mean(axis=0)) * np.cos(x) + np.sqrt(x),
        lambda x: np.exp(np.sin(np.cos(np.sqrt(x))))[::-1] * 2,
        lambda x: np.exp(np.sin(np.cumsum(x, axis=0))) * np.cos(x) + np.sqrt(x),
    ):
        x = np.random.default_rng(3).uniform(1, 2, size=(9, 4))
        kernel = lower(symad.trace(f, [(n, 4)]))
        assert np.allclose(kernel(x), f(x), rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [2, 3, 9, 20_000])
def test_overlays(backend: str, n: int) -> None:
    graph = symad.value_and_gradient(symad.trace(valley, [(n,)]))
    kernel = lower(graph, backend=backend)
    assert "_pad(" not in kernel.source
    x = np.random.default_rng(n).normal(size=n)
    value, (slopes,) = flat(kernel(x))
    expected = valley_by_hand(x[None])
    assert value == pytest.approx(expected[0][0], rel=1e-12)
    assert np.allclose(slopes, expected[1][0], rtol=1e-11, atol=1e-11 * np.abs(expected[1]).max())

    def mixed(x: Any) -> Any:
        return np.sum(np.exp(x)) - np.sum(x[2:] * x[:-2]) + np.sum(x[1:-1] ** 3)

    x = np.random.default_rng(n).normal(size=n + 2)
    expected = np.exp(x)
    expected[2:] -= x[:-2]
    expected[:-2] -= x[2:]
    expected[1:-1] += 3 * x[1:-1] ** 2
    found = lower(symad.gradient(symad.trace(mixed, [(n + 2,)])), backend=backend)(x)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13)


def surface(u: Any) -> Any:
    """Σ √(1 + |∇u|²) + Σ exp(u), u zero outside of the grid."""
    p = np.pad(u, 1)
    across, down = p[1:, :-1] - p[:-1, :-1], p[:-1, 1:] - p[:-1, :-1]
    return np.sum(np.sqrt(1 + across**2 + down**2)) + np.sum(np.exp(u))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(2, 3), (7, 5), (30, 40)])
def test_value_gradient_and_sparse_hessian_together(backend: str, shape: tuple[int, int]) -> None:
    """What Newton's method asks for at one point: the three as they are alone, and by hand."""
    graph = symad.trace(surface, [shape])
    together = symad.join(symad.value_and_gradient(graph), symad.hessian(graph, sparse=True))
    kernel = lower(together, backend=backend)
    assert kernel.source.count("_pad(") == 2  # its definition, and u
    rng = np.random.default_rng(4)
    kept = []
    for _ in range(3):
        u = rng.normal(size=shape)
        (value, slopes), hessian = kernel(u)
        p = np.pad(u, 1)
        across, down = p[1:, :-1] - p[:-1, :-1], p[:-1, 1:] - p[:-1, :-1]
        root = np.sqrt(1 + across**2 + down**2)
        expected = np.zeros_like(p)
        expected[1:, :-1] += across / root
        expected[:-1, 1:] += down / root
        expected[:-1, :-1] -= (across + down) / root
        expected[1:-1, 1:-1] += np.exp(u)
        assert value == pytest.approx(surface(u), rel=1e-13)
        assert np.allclose(slopes, expected[1:-1, 1:-1], rtol=1e-12, atol=1e-13)
        assert slopes.flags.c_contiguous
        direction = rng.normal(size=shape)  # the Hessian along a direction, by complex steps of the gradient
        step = 1e-30j * direction
        pc = np.pad(u + step, 1)
        ac, dc = pc[1:, :-1] - pc[:-1, :-1], pc[:-1, 1:] - pc[:-1, :-1]
        rc = np.sqrt(1 + ac**2 + dc**2)
        moved = np.zeros_like(pc)
        moved[1:, :-1] += ac / rc
        moved[:-1, 1:] += dc / rc
        moved[:-1, :-1] -= (ac + dc) / rc
        moved[1:-1, 1:-1] += np.exp(u + step)
        change = moved[1:-1, 1:-1].imag / 1e-30
        assert np.allclose(hessian @ direction.ravel(), change.ravel(), rtol=1e-11, atol=1e-11)
        kept.append((slopes, slopes.copy(), hessian.data, hessian.data.copy()))
    assert all(np.array_equal(a, b) and np.array_equal(c, d) for a, b, c, d in kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_slices_that_show_padding_keep_it(backend: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(x[1:4, :3] * x[2:5, 1:4])) + np.sum(np.sin(x[:, 2:] * x[:, :-2]))

    graph = symad.trace(lambda y: f(np.pad(y, ((1, 0), (0, 1)))), [(5, 6)])
    x = np.random.default_rng(5).normal(size=(5, 6))
    together = symad.join(symad.value_and_gradient(graph), symad.hessian(graph, sparse=True))
    (value, slopes), hessian = lower(together, backend=backend)(x)
    assert value == pytest.approx(f(np.pad(x, ((1, 0), (0, 1)))), rel=1e-13)
    h, gradient = 1e-6, symad.gradient(graph)
    for _ in range(3):
        d = np.random.default_rng(6).normal(size=x.shape)
        ahead, behind = (f(np.pad(x + s * h * d, ((1, 0), (0, 1)))) for s in (1, -1))
        assert np.sum(slopes * d) == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-7)
        change = (np.asarray(gradient(x + h * d)) - np.asarray(gradient(x - h * d))) / (2 * h)
        assert np.allclose(hessian @ d.ravel(), change.ravel(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("points", [40, 127, 128, 129, 300, 30_000])
def test_results_that_repeat_and_results_that_are_inputs_or_numbers(points):
    """Rows of results are computed where they belong, once; the rest is copied there."""
    x, y = sp.symbols("x y", real=True)
    graph = symad.trace((x * y + 1, x, sp.Integer(2), x * y + 1, x * y, sp.exp(x * y)), [x, y])
    kernel = lower(graph, backend="runs")
    rng = np.random.default_rng(points)
    a, b = rng.uniform(-1, 1, (2, points))
    expected = (a * b + 1, a, np.full(points, 2.0), a * b + 1, a * b, np.exp(a * b))
    first = kernel(a, b)
    again = kernel(b[::-1], a[::-1])  # strided inputs, and memory that is used again
    for found, other, value in zip(first, again, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-15)
        if value is not a:
            np.testing.assert_allclose(other, value[::-1], rtol=1e-15)
    assert not any(np.shares_memory(p, q) for k, p in enumerate(first) for q in (a, b, *first[:k], *again))
