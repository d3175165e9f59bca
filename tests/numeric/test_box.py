"""`lower(f, box=...)`: what the box decides is not printed, and values keep their digits."""

import pickle
import random

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import LoweringError
from symad.evaluation.intervals import Interval, interval
from symad.evaluation.value_ranges import value_ranges
from symad.numeric import lower
from symad.verification.values.ranges import ranges

x, y = sp.symbols("x y", real=True)
GUARDS = ("where(", "logical_", " < ", " <= ", " == ", " ? ", "absolute(", "sign(", "hypot(")

UNGUARDED = {
    "logarithms": (sp.log(x + 1) - sp.log(x), {x: (1, 1e6)}),
    "inputs that are near": (sp.exp(x) - sp.exp(y) + x, {x: (1, 2), y: (3, 4)}),
    "angles": (sp.atan(x) - sp.atan(y), {x: (0.5, 1), y: (1, 2)}),
    "away from a piece": ((1 - sp.cos(x)) / x**2, {x: (1.5, 3)}),
    "inside of a piece": (x - sp.sin(x), {x: (-0.01, 0.01)}),
    "powers": ((x + 1) ** sp.Rational(7, 5) - x ** sp.Rational(7, 5), {x: (2, 1e8)}),
    "a norm": (sp.sqrt(x**2 + y**2), {x: (-3, 2), y: (1, 5)}),
    "branches": (sp.Piecewise((sp.log(x), x > 1), (x - 1, True)), {x: (2, 3)}),
    "other branches": (sp.Piecewise((sp.log(x + 3), x > 1), (x - 1, x > 0), (5, True)), {x: (0.5, 1)}),
    "maxima": (sp.Max(x, 0) * sp.Abs(y) * sp.sign(y), {x: (1, 3), y: (-2, -1)}),
    "a quadratic": ((-y + sp.sqrt(y**2 - 4 * x)) / 2, {x: (0.1, 1), y: (3, 1e6)}),
}


def body(kernel):
    """The statements of a kernel."""
    return (kernel.c_source or kernel.source).split("_body(", 1)[-1].split("# One body")[0]


def guards_in(kernel):
    return [word for word in GUARDS if word in body(kernel).split("symad_f", 1)[0]]


def points_in(box, count, seed=1):
    """Random points of a box, its ends among them; sides over many decades log-uniform."""
    rng = random.Random(seed)

    def of_side(low, high):
        if rng.random() < 0.2:
            return float(rng.choice((low, high)))
        return low * (high / low) ** rng.random() if low * 1000 < high and low > 0 else rng.uniform(low, high)

    return [tuple(of_side(*side) for side in box.values()) for _ in range(count)]


@pytest.mark.parametrize("name", UNGUARDED)
def test_what_the_box_decides_is_left_out_and_digits_stay(name):
    f, box = UNGUARDED[name]
    kernel = (
        lower(f, inputs=list(box), box=box) if y in f.free_symbols or len(box) == 1 else lower(f, box=box)
    )
    plain = lower(f, inputs=list(box))
    assert not guards_in(kernel), body(kernel)
    exact = sp.lambdify(list(box), f, "mpmath")
    for point in points_in(box, 30):
        with mpmath.workdps(60):
            right = exact(*map(mpmath.mpf, point))
            error, before = (abs(mpmath.mpf(float(k(*point))) - right) for k in (kernel, plain))
            assert error <= max(8 * 2.0**-53 * abs(right), before), point


@pytest.mark.parametrize("name", ["branches", "maxima", "a norm", "inputs that are near"])
@pytest.mark.parametrize("backend", ["numpy", "c", "runs", "cupy"])
@pytest.mark.parametrize("derivative", ["gradient", "hessian", "value_and_gradient"])
@pytest.mark.sample(12)
def test_every_backend_and_derivative(name, backend, derivative):
    f, box = UNGUARDED[name]
    graph = getattr(symad, derivative)(f, list(box), inputs=list(box))
    kernel, plain = lower(graph, backend, box=box), lower(graph)
    side = " in ["
    assert side in kernel.source or side in kernel.c_source
    assert name == "a norm" or "where(" not in body(kernel)  # a slope of √(x² + y²) has a guard that stays
    if backend != "cupy":
        for point in points_in(box, 5):
            made, right = kernel(*point), plain(*point)
            flat = [
                np.hstack([np.ravel(p) for p in (v if isinstance(v, tuple) else (v,))]) for v in (made, right)
            ]
            np.testing.assert_allclose(*flat, rtol=1e-13, atol=1e-15)


def test_arrays_take_one_pair_for_all_elements():
    def f(u):
        return np.sum(np.where(u > 0, np.sqrt(np.abs(u)), 0) * np.maximum(u, 0))

    graph = symad.trace(f, [(5,)])
    for options in ({}, {"style": "plain"}, {"backend": "c"}):
        kernel = lower(graph, box={"u": (1, 2)}, **options)
        assert not any(
            word in kernel.source + kernel.c_source for word in ("where", "maximum", "fmax", "np.abs")
        )
        u = np.linspace(1, 2, 5)
        assert kernel(u) == pytest.approx(np.sum(u**1.5), rel=1e-15)
    symbolic = lower(symad.trace(f, [(sp.Symbol("n", integer=True, positive=True),)]), box={"u": (1, 2)})
    assert "where" not in symbolic.source and symbolic(u) == pytest.approx(np.sum(u**1.5), rel=1e-15)


FORMULAS = [
    sp.sqrt(x + 1) - sp.sqrt(x), sp.log(x) - sp.log(y), sp.Abs(x - y) + sp.Max(x, y, 1), x**y,
    sp.sin(x + y) - sp.sin(x), sp.atan2(x, y),
    sp.Piecewise((x * y, x > y), (sp.exp(x), sp.And(x > 0, y > 1)), (y**3, True)),
    sp.sqrt(x**2 + y**2) - y,
    sp.sign(x) * sp.cosh(y) - 1, (sp.exp(x) - 1) / x + sp.Heaviside(y), sp.tan(x + y) - sp.tan(x),
    sp.Min(sp.exp(x), 3) - sp.exp(y), sp.floor(x) + sp.Mod(y, 2), sp.asin(x / 10) - sp.asin(y / 10),
]  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 25), *(pytest.param(k, 150, marks=pytest.mark.thorough) for k in (1, 2))]
)
def test_random_boxes_agree_with_the_code_without_a_box(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        f = rng.choice(FORMULAS)
        box = {
            s: tuple(sorted(rng.choice((-3, -1, 0, 0.5, 1, 2, 4)) + rng.choice((0, 0.25)) for _ in "ab"))
            for s in (x, y)
        }
        try:
            kernel = lower(f, inputs=[x, y], box=box)
        except LoweringError as error:
            assert "no value" in str(error)
            continue
        plain = lower(f, inputs=[x, y])
        for point in points_in(box, 6, seed):
            made, right = float(kernel(*point)), float(plain(*point))
            assert made == pytest.approx(right, rel=1e-13, abs=1e-14, nan_ok=True), (f, box, point)


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ({x: (2, 1)}, "from 2.0 to 1.0 is empty"), ({x: (float("nan"), 1)}, "from nan to 1.0 is empty"),
        ({"q": (0, 1)}, "names 'q'; the inputs are x"), ({x: "a"}, "give (smallest, largest)"),
        ({x: (1, 2, 3)}, "give (smallest, largest)"), ([x, 1], "give a dict"),
        ({x: (-2, -1)}, "log has no value"),
    ],
)  # fmt: skip
def test_bad_boxes_are_named(box, words):
    with pytest.raises(LoweringError) as error:
        lower(sp.log(x), box=box)
    assert words in str(error.value)
    with pytest.raises(LoweringError, match="assumes: p >= 0"):
        lower(sp.sqrt(sp.Symbol("p", positive=True)), box={"p": (-1, 1)})


def test_headers_tell_the_box_and_it_travels_with_the_kernel():
    f = sp.log(x + 1) - sp.log(x)
    kernel = lower(f, box={x: (1, 10)})
    sent = pickle.loads(pickle.dumps(kernel))
    assert sent.source == kernel.source and "for x in [1, 10]" in kernel.source
    in_c = lower(f, "c", box={x: (1, 10)})
    assert "for x in [1, 10]" in in_c.c_source and "for x in [1, 10]" in in_c.plain().source
    assert "for x in" not in lower(f).source
    assert lower(f, box={x: (0, sp.oo)})(3.0) == pytest.approx(np.log(4 / 3), rel=1e-15)
    many = sp.symbols("q0:12", real=True)
    told = "q2 in [1, 10], ..., q11 in [1, 10] (12 in all). Needs NumPy."
    assert told in lower(sum(many), box=dict.fromkeys(many, (1, 10))).source


def test_a_box_holds_for_the_named_inputs_alone():
    kernel = lower(sp.Max(x, 0) + sp.Max(y, 0), inputs=[x, y], box={"x": (1, 2)})
    assert kernel(1.5, -3.0) == 1.5 and kernel(1.5, 3.0) == 4.5
    assert kernel(-1.0, 0.0) == -1.0  # outside of the box the printed formula is computed


def test_elements_of_one_array_are_different_values():
    """The square of a value is not negative; the product of two elements may be."""
    graph = symad.trace(lambda u: (u[0] * u[1], u[0] * u[0], np.max(u) - np.max(u[1:])), [(3,)])
    (u,) = graph.input_nodes
    box = {u: Interval(interval(-1).low, interval(2).high)}
    for found in (value_ranges(graph.output_nodes, box), ranges(graph.output_nodes, box)):
        product, square, difference = (found[node] for node in graph.output_nodes)
        assert (product.low, product.high) == (-2, 4) and square.low >= -2 and square.high == 4
        assert (difference.low, difference.high) == (-3, 3)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_norms_of_arrays_are_not_scaled_where_their_squares_are_floats(backend):
    graph = symad.trace(lambda u: u / np.linalg.norm(u, axis=1, keepdims=True), [(6, 8)])
    kernel, scaled = lower(graph, backend, box={"u": (1, 2)}), lower(graph, backend, box={"u": (0, 2)})
    assert ["1e-280" in (k.c_source or k.source) for k in (kernel, scaled)] == [False, True]
    at = np.linspace(1, 2, 48).reshape(6, 8)
    np.testing.assert_allclose(kernel(at), at / np.sqrt(np.sum(at**2, 1))[:, None], rtol=1e-15)
