"""Convolutions: torch with stride, padding and dilation; the definition; the transpose, proved."""

from itertools import product

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers import convolution as cv
from symad.models.sequences import ar
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
GEOMETRIES = [(1, 0, 1), (2, 0, 1), (3, 1, 1), (1, 2, 2), (2, 1, 2)]  # stride, padding, dilation


def channels_first(torch, x, axes):
    """(..., positions, features) to torch's (N, features, positions)."""
    return x.permute(0, axes + 1, *range(1, axes + 1))


def torch_filters(W):
    """(taps, d_in, d_out) to torch's (d_out, d_in, taps)."""
    axes = W.dim() - 2
    return W.permute(axes + 1, axes, *range(axes))


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("sides", "taps"), [((9,), (3,)), ((7, 6), (3, 2))])
def test_convolution_against_torch(geometry, sides, taps):
    stride, padding, dilation = geometry
    axes = len(sides)
    shapes = {"x": (2, *sides, 3), "W": (*taps, 3, 2)}
    Y = rng.normal(size=cv.convolve(np.zeros(shapes["x"]), np.zeros(shapes["W"]), *geometry).shape)

    def reference(torch, p, Y):
        run = torch.nn.functional.conv1d if axes == 1 else torch.nn.functional.conv2d
        x = channels_first(torch, p["x"], axes)
        found = run(x, torch_filters(p["W"]), None, stride, padding, dilation)
        return (torch.sin(found) * channels_first(torch, Y, axes)).sum()

    def loss(p, Y):
        return np.sum(np.sin(cv.convolve(p["x"], p["W"], *geometry)) * Y)

    agrees_with_torch(loss, shapes, reference, Y)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("sides", "taps"), [((4,), (3,)), ((3, 4), (3, 2))])
def test_transposed_convolution_against_torch(geometry, sides, taps):
    stride, padding, dilation = geometry
    if padding > dilation * (min(taps) - 1):
        pytest.skip("more padding than the filter reaches")
    axes, extra = len(sides), stride - 1
    shapes = {"y": (2, *sides, 2), "W": (*taps, 3, 2)}

    def run(p):
        return cv.convolve_transposed(p["y"], p["W"], *geometry, extra)

    X = rng.normal(size=run({k: np.zeros(s) for k, s in shapes.items()}).shape)

    def reference(torch, p, X):
        F = torch.nn.functional
        run = F.conv_transpose1d if axes == 1 else F.conv_transpose2d
        y = channels_first(torch, p["y"], axes)
        found = run(y, torch_filters(p["W"]), None, stride, padding, extra, 1, dilation)
        return (torch.sin(found) * channels_first(torch, X, axes)).sum()

    agrees_with_torch(lambda p, X: np.sum(np.sin(run(p)) * X), shapes, reference, X)


def test_windows_times_weights_are_the_definition():
    """The loss written with sums and the loss of im2col are one function of x, W and y."""
    for T, K, d, o in [(3, 2, 1, 1), (4, 2, 2, 1)]:
        sizes = {cv.T: T, cv.K: K, cv.d_in: d, cv.d_out: o}
        definition = symad.trace(cv.loss(), [cv.x, cv.W, cv.y]).at(sizes)
        shapes = [(T, d), (K, d, o), (T - K + 1, o)]
        fast = symad.trace(lambda x, W, y: np.mean((cv.convolve(x, W) - y) ** 2), shapes)
        assert symad.equal(definition, fast).status in ("proved", "tested")
        turned = symad.trace(lambda x, W, y: np.mean((cv.convolve(x, W[::-1]) - y) ** 2), shapes)
        assert symad.equal(definition, turned).status == "refuted"


def test_the_definition_prints():
    assert str(cv.formula(sympy.Symbol("t"), sympy.Symbol("o"))) == (
        "Sum(W[k, i, o]*x[k + t, i], (i, 0, d_in - 1), (k, 0, K - 1))"
    )


def test_windows_are_seq2col():
    series = rng.normal(size=8)
    columns = cv.windows(series[:, None], (3,))
    np.testing.assert_array_equal(columns[:, ::-1], ar.seq2col(series, 3))
    dilated = cv.windows(np.arange(8.0)[:, None], (3,), stride=2, dilation=2)
    np.testing.assert_array_equal(dilated, [[0, 2, 4], [2, 4, 6]])


@pytest.mark.parametrize("geometry", [(1, 0, 1), (2, 1, 1), (1, 1, 2)])
def test_the_transpose_is_the_pullback_proved(geometry):
    """⟨C x, y⟩ = ⟨x, Cᵀ y⟩ as polynomials in all entries, and Cᵀ is what reverse mode finds."""
    x = np.array(sympy.symbols("x:5:2", real=True), dtype=object).reshape(5, 2)
    W = np.array(sympy.symbols("w:3:2", real=True), dtype=object).reshape(3, 2, 1)
    forward = symad.trace(lambda x, W: cv.convolve(x, W, *geometry), [(5, 2), (3, 2, 1)])
    length = forward.output_nodes[0].shape[0]
    y = np.array(sympy.symbols(f"y:{length}", real=True), dtype=object).reshape(length, 1)
    back = symad.trace(lambda y, W: cv.convolve_transposed(y, W, *geometry), [(length, 1), (3, 2, 1)])
    assert back.output_nodes[0].shape == (5, 2)
    by_hand = back(y, W)
    assert sympy.expand(np.sum(forward(x, W) * y) - np.sum(x * by_hand)) == 0
    by_reverse = symad.pullback(forward, wrt="x")(x, W, y)
    x_bar = by_reverse[-1] if isinstance(by_reverse, tuple) else by_reverse
    for a, b in zip(np.ravel(x_bar), by_hand.ravel(), strict=True):
        assert sympy.expand(a - b) == 0


def test_causal_convolutions_see_no_later_element():
    for dilation in (1, 2):
        graph = symad.trace(lambda x, r=dilation: cv.causal(x, np.ones((3, 1, 1)), r), [(7, 1)])
        pattern = symad.jacobian_sparsity(graph, [0]).toarray()
        expected = [[t - s in (0, dilation, 2 * dilation) for s in range(7)] for t in range(7)]
        np.testing.assert_array_equal(pattern, expected)


def test_depthwise_is_a_convolution_of_each_feature():
    x, w = rng.normal(size=(2, 6, 3)), rng.normal(size=(4, 3))
    for k in range(3):
        alone = cv.causal(x[..., k : k + 1], w[:, k, None, None])
        np.testing.assert_allclose(cv.depthwise(x, w)[..., k : k + 1], alone, rtol=1e-13)


def test_sizes_may_be_symbols():
    T, d, o = sympy.symbols("T d o", integer=True, positive=True)
    graph = symad.trace(lambda x, W: cv.convolve(x, W, 2, 1), [(T, d), (3, d, o)])
    kernel = lower(graph)
    for length, width in product((4, 5, 8), (1, 2)):
        x, W = rng.normal(size=(length, width)), rng.normal(size=(3, width, 2))
        np.testing.assert_allclose(kernel(x, W), cv.convolve(x, W, 2, 1), rtol=1e-13)


def test_pooling_against_torch():
    def reference(torch, p, Y):
        pooled = torch.nn.functional.max_pool2d(p["x"].permute(0, 3, 1, 2), 2)
        return (pooled.permute(0, 2, 3, 1) * Y).sum()

    Y = rng.normal(size=(2, 3, 2, 3))
    agrees_with_torch(lambda p, Y: np.sum(cv.max_pool(p["x"], 2) * Y), {"x": (2, 6, 4, 3)}, reference, Y)


def test_derivatives_are_certified():
    graph = symad.trace(lambda x, W: np.sum(cv.convolve(x, W, 2, 1) ** 2), [(3, 1), (2, 1, 1)])
    assert symad.check(graph).status in ("proved", "tested")


def test_bad_input():
    W = np.zeros((3, 2, 1))
    with pytest.raises(ShapeError, match=r"reach over 3 places, but the array \(2, 2\) has 2"):
        cv.convolve(np.zeros((2, 2)), W)
    with pytest.raises(ShapeError, match=r"reach over 5 places, but the array \(4, 2\)"):
        cv.convolve(np.zeros((4, 2)), W, dilation=2)
    with pytest.raises(ShapeError, match=r"array \(0, 2\)"):
        cv.convolve(np.zeros((0, 2)), W)
    with pytest.raises(ShapeError, match="give positive integers"):
        cv.convolve(np.zeros((4, 2)), W, stride=0)
    with pytest.raises(ShapeError, match="2 features are needed"):
        cv.convolve(np.zeros((4, 3)), W)
    with pytest.raises(ShapeError, match="0 ≤ extra < stride"):
        cv.convolve_transposed(np.zeros((4, 1)), W, stride=2, extra=2)
    with pytest.raises(ShapeError, match="the last axes differ"):
        cv.depthwise(np.zeros((4, 3)), np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="side 2 do not tile"):
        cv.max_pool(np.zeros((3, 4, 1)), 2)
    T = sympy.Symbol("T", integer=True, positive=True)
    graph = symad.trace(cv.convolve, [(T, 2), (3, 2, 1)])
    with pytest.raises(ShapeError, match=r"the array has shape \(1, 2\)"):
        graph(np.zeros((1, 2)), W)
    with pytest.raises(ValueError, match="T - 2 is negative at T = 1"):
        lower(graph)(np.zeros((1, 2)), W)
