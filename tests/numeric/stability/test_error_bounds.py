"""Bounds of rounding errors: never below an error that occurs, and not far above it."""

import math
import random

import mpmath
import numpy as np
import pytest
import sympy

import symad
from symad.errors import LoweringError
from symad.numeric import lower
from tests.numeric.stability.classical import CLASSICAL

x, y, z = sympy.symbols("x y z", real=True)


def largest_errors(f, box, count, dtype="float64"):
    """The largest absolute and relative error at random points, ends of the box included."""
    rng, symbols = random.Random(3), list(box)
    code, exact = lower(f, inputs=symbols, dtype=dtype), sympy.lambdify(symbols, f, "mpmath")
    absolute = relative = 0.0
    for k in range(count):
        point = [rng.choice(box[s]) if k % 5 == 0 else rng.uniform(*box[s]) for s in symbols]
        point = [float(np.dtype(dtype).type(p)) for p in point]
        with mpmath.workdps(60):
            want = exact(*map(mpmath.mpf, point))
            error = abs(mpmath.mpf(float(code(*point))) - want)
            absolute = max(absolute, float(error))
            relative = max(relative, float(error / abs(want)) if want else math.inf if error else 0.0)
    return absolute, relative


@pytest.mark.sample(4, without=("kepler2", "sine", "jetEngine"))
@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_examples_are_bounded_closely(name):
    f, box = CLASSICAL[name]
    bound = symad.error_bound(f, box, inputs=list(box))
    absolute, relative = largest_errors(f, box, 300)
    assert absolute <= bound.absolute <= 8 * absolute  # 300 points do not find the worst one
    assert relative <= bound.relative


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_bounds_are_at_most_five_times_what_ten_thousand_points_show(name):
    f, box = CLASSICAL[name]
    absolute, _ = largest_errors(f, box, 10_000)
    assert absolute <= symad.error_bound(f, box, inputs=list(box)).absolute <= 5 * absolute


def random_formula(rng, depth):
    """A formula that is defined for all real x, y, with branches, differences and functions."""
    if depth == 0:
        return rng.choice(
            [x, y, x, y, sympy.Integer(rng.randint(1, 3)), sympy.Rational(rng.randint(1, 9), 10)]
        )
    a, b = (random_formula(rng, depth - 1) for _ in range(2))
    forms = [
        lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / (1 + b**2), lambda: sympy.sqrt(1 + a**2) - b,
        lambda: sympy.exp(-(a**2)) * b, lambda: sympy.log(2 + sympy.Abs(a)) - b, lambda: sympy.sin(a) + b,
        lambda: sympy.Max(a, b), lambda: sympy.Abs(a - b), lambda: sympy.atan(a) - sympy.atan(b),
        lambda: sympy.Piecewise((a, x < y), (b, True)), lambda: sympy.tanh(a) * b, lambda: a**3 - b,
    ]  # fmt: skip
    return rng.choice(forms)()


def check_random_formula(seed):
    rng = random.Random(seed)
    f = random_formula(rng, 3)
    box = {s: tuple(sorted(rng.uniform(-2, 2) for _ in range(2))) for s in (x, y)}
    bound = symad.error_bound(f, box, inputs=[x, y], boxes=200)
    absolute, relative = largest_errors(f, box, 60)
    assert absolute <= bound.absolute and relative <= bound.relative, (f, box)
    return bound.absolute


@pytest.mark.parametrize("seed", range(8))
def test_no_error_exceeds_its_bound(seed):
    check_random_formula(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("start", range(100, 300, 20))
def test_no_error_of_many_formulas_exceeds_its_bound_and_most_bounds_are_close(start):
    bounds = [check_random_formula(seed) for seed in range(start, start + 20)]
    assert sum(bound < 1e-13 for bound in bounds) >= 16


def test_float32_and_batches_have_larger_bounds():
    f, box = x * sympy.exp(-y) / (1 + x**2), {x: (0.5, 2.0), y: (-1.0, 1.0)}
    double, single = (symad.error_bound(f, box, dtype, boxes=300) for dtype in ("float64", "float32"))
    absolute, relative = largest_errors(f, box, 100, "float32")
    assert absolute <= single.absolute <= 30 * absolute and relative <= single.relative
    assert 2**28 * double.absolute < single.absolute
    assert double.absolute < symad.error_bound(f, box, batch=True, boxes=300).absolute


def test_sums_and_products_of_arrays_in_any_order():
    def layer(weights, values):
        return np.sum(np.tanh(weights @ values) ** 2)

    graph = symad.trace(layer, [(3, 4), (4,)])
    bound = symad.error_bound(graph, {"weights": (-1, 1), "values": (-2, 2)}, boxes=60)
    rng, code, worst = np.random.default_rng(0), lower(graph, style="plain"), 0.0
    for _ in range(40):
        weights, values = rng.uniform(-1, 1, (3, 4)), rng.uniform(-2, 2, 4)
        with mpmath.workdps(40):
            rows = [mpmath.fdot(map(mpmath.mpf, row), map(mpmath.mpf, values)) for row in weights.tolist()]
            error = mpmath.fsum(mpmath.tanh(row) ** 2 for row in rows) - float(code(weights, values))
        worst = max(worst, float(abs(error)))
    assert 0 < worst <= bound.absolute < 1e-12


def test_each_number_of_an_array_has_its_bound():
    graph = symad.trace(lambda a, b: a @ b, [(2, 2), (2,)])
    bounds = symad.error_bound(graph, {"a": (-1, 1), "b": (0, 3)}, boxes=60)
    # two products and one sum in any order: 2 roundings of numbers up to 3 and 6
    assert [b.absolute for b in bounds] == pytest.approx([2 * 2**-53 * 6] * 2, rel=1e-6)


def test_a_sum_of_two_numbers_is_half_a_unit_in_the_last_place_off():
    assert symad.error_bound(x + y, {x: (1, 1.9), y: (2, 2.05)}).absolute == pytest.approx(2**-52, rel=1e-9)
    assert symad.error_bound(x + y, {x: (1, 1.9), y: (2, 2.15)}).absolute == pytest.approx(2**-51, rel=1e-9)
    assert symad.error_bound(2 * x, {x: (1, 3)}).absolute < 1e-320  # the exponent changes, the digits stay


def test_a_condition_that_roundings_turn_counts_the_jump():
    f = sympy.Piecewise((x, x**2 < 0.5), (x + 1, True))
    assert 1 <= symad.error_bound(f, {x: (0.5, 1)}).absolute < 1 + 1e-9
    assert symad.error_bound(f, {x: (0, 0.5)}).absolute < 1e-300
    exact = sympy.Piecewise((x, x < 0.7), (x + 1, True))  # a comparison of inputs has no rounding
    assert symad.error_bound(exact, {x: (0.5, 1)}).absolute < 1e-15


def test_inputs_that_are_rounded_count():
    f = (x + 1) ** 2
    exact, rounded = (symad.error_bound(f, {x: (1, 2)}, round_inputs=r).absolute for r in (False, True))
    # the input's own rounding of ½ulp(2) = 2^-53·2 is multiplied by f' = 2(x + 1) <= 6
    assert rounded - exact == pytest.approx(6 * 2**-53, rel=0.4)


def test_numbers_too_small_for_all_digits():
    bound = symad.error_bound(x * y, {x: (1e-310, 1e-300), y: (1e-20, 1)})
    assert 2.0**-1074 <= bound.absolute < 1e-315
    assert bound.relative >= 0.5  # 1e-330 becomes 0


def test_the_statement_that_loses_most_comes_first():
    f = (1 + x) ** 7 * y - 5
    bound = symad.error_bound(f, {x: (1, 2), y: (1e-9, 1e-8)})
    assert "5" in bound.statements[0].statement
    errors = [each.error for each in bound.statements]
    assert errors == sorted(errors, reverse=True)
    assert sum(errors) == pytest.approx(bound.absolute, rel=1e-9)
    assert "absolute error <=" in str(bound) and bound.statements[0].statement in str(bound)


@pytest.mark.parametrize(
    ("f", "box", "word"),
    [(sympy.exp(x), (-800, 800), "exp"), (1 / x, (-1, 1), "1.0/x"), (sympy.log(x), (-1, 1), "log(x)")],
)
def test_what_has_no_bound_names_its_statement(f, box, word):
    bound = symad.error_bound(f, {x: box})
    assert math.isinf(bound.absolute) and word in bound.reason and "no bound" in str(bound)


def test_a_point_is_a_box():
    at, around = symad.error_bound(x**3 - x, {x: 1.1}), symad.error_bound(x**3 - x, {x: (1.0, 1.2)})
    assert 0 < at.absolute <= around.absolute and at.digits > 14


positive = sympy.Symbol("p", positive=True)


@pytest.mark.parametrize(
    ("f", "box", "words"),
    [
        (x + y, {x: (0, 1)}, "lacks y"),
        (x, {x: (0, 1), y: (0, 1)}, "names y; the inputs are x"),
        (x, {x: (1, 0)}, "of x from 1.0 to 0.0 is empty"),
        (x, {x: (0, math.inf)}, "infinite"),
        (x, {x: "wide"}, "'wide'"),
        (positive, {positive: (-1, 1)}, "p >= 0"),
        (sympy.gamma(x), {x: (1, 2)}, "gamma"),
        (x, {x: (0, 1, 2)}, "(smallest, largest)"),
    ],
)
def test_bad_boxes_are_refused_by_name(f, box, words):
    with pytest.raises(LoweringError) as told:
        symad.error_bound(f, box)
    assert words in str(told.value)


def test_bad_types_and_loops_are_refused_by_name():
    with pytest.raises(LoweringError, match="float16"):
        symad.error_bound(x, {x: (0, 1)}, dtype="float16")
    with pytest.raises(LoweringError, match="size"):
        symad.error_bound(symad.trace(lambda a: a * a, [(sympy.Symbol("n", integer=True),)]), {"a": (0, 1)})
    scan = symad.trace(lambda h, xs: symad.functions.scan(lambda c, t: c * t, h, xs), [(), (3,)])
    with pytest.raises(LoweringError, match="no rule"):
        symad.error_bound(scan, {"h": (0, 1), "xs": (0, 1)})
