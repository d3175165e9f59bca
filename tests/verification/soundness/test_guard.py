"""What stands before every verdict: strict values at points that no engine chose; claims that are data."""

from fractions import Fraction
from math import prod

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb
from sympy import Abs, Max, Min, Piecewise, Rational, log, sqrt

import symad
from symad import functions
from symad.errors import ShapeError
from symad.verification.random_fields.runs import PairResult
from symad.verification.rewriting.identity_testing import Result
from symad.verification.values.balls import NONE, UNKNOWN, VALUE, Ball, Balls, ball_values
from symad.verification.values.point_set import PointSet
from tests.pairs.generate import Tally, pairs

x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)
CERTIFIED = ("proved", "tested")


def strict(expression, **point):
    """The mark and the value of an expression at a point."""
    graph = symad.trace(expression)
    given = {node: Fraction(point[str(node.op.symbol)]) for node in graph.input_nodes}
    ball = ball_values(graph.output_nodes, given, 128)[0][()]
    return ball.mark, ball.value


# ---- strict values: a value, perhaps an infinite one; none; or not known -------------------------

NOWHERE = {
    "a logarithm": log(x), "a root": sqrt(x), "a third root": x ** Rational(1, 3), "acosh": sp.acosh(x),
    "asin": sp.asin(x - 2), "atanh": sp.atanh(x - 1), "a sum with one": 1 + log(x), "a product": y * log(x),
    "a maximum": Max(log(x), 3), "a divisor that is 0": 1 / (Abs(x) + x), "gamma at a pole": sp.gamma(x),
    "a condition on it": Piecewise((1, log(x) > 0), (2, True)), "0/0": (Abs(x) + x) / (Abs(2 * x) + 2 * x),
}  # fmt: skip


@pytest.mark.parametrize("name", NOWHERE)
def test_no_value_is_shown_and_passes_through_every_op(name):
    assert strict(NOWHERE[name], x=-1, y=1)[0] == NONE


SOMEWHERE = {
    "a branch not taken": (Piecewise((log(x), x > 0), (7, True)), 7),
    "a part that is false": (Piecewise((1, sp.And(x > 0, log(x) > 0)), (2, True)), 2),
    "a root of what is exactly 0": (sqrt(Abs(x) + x), 0),
    "an even power": (x ** Rational(2), 1),
    "a maximum of what ties": (Max(x, -1), -1),
}


@pytest.mark.parametrize("name", SOMEWHERE)
def test_a_branch_that_is_not_taken_is_not_looked_at(name):
    expression, value = SOMEWHERE[name]
    assert strict(expression, x=-1, y=1) == (VALUE, value)


def test_what_is_0_by_an_identity_alone_is_not_known():
    hidden = sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1
    assert strict(1 / hidden, x=Fraction(5, 8))[0] == UNKNOWN
    assert strict(sqrt(hidden), x=Fraction(5, 8))[0] == UNKNOWN
    assert strict(Piecewise((1, hidden > 0), (2, True)), x=Fraction(5, 8))[0] == UNKNOWN
    assert strict(Piecewise((1, hidden > 0), (1, True)), x=Fraction(5, 8)) == (VALUE, 1)


@pytest.mark.parametrize("n", range(5))
def test_powers_of_balls_around_0_hold_the_powers_of_their_numbers(n):
    for ball in (arb(0, 1), arb(1, 3), arb("0", "1e-200")):
        found = Balls().power(Ball(ball), Ball(arb(n)))
        assert found.mark == VALUE
        for number in (ball.lower(), ball.upper(), arb(0)):
            assert found.value.contains(prod([number] * n, start=arb(1)))


@pytest.mark.parametrize("head", [
    sp.exp, sp.log, sp.sin, sp.tan, sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.atan, sp.erf, sp.erfc, sp.gamma,
    sp.loggamma, sp.Abs, sp.sign, sp.atanh, sp.acosh, sp.asin,
])  # fmt: skip
def test_strict_values_are_those_of_mpmath(head):
    """An independent evaluator, at points inside and outside of the domains."""
    function = {"Abs": abs}.get(head.__name__) or getattr(mpmath, head.__name__)
    for number in (Fraction(-7, 4), Fraction(-3, 8), Fraction(5, 8), Fraction(11, 8)):
        mark, value = strict(head(x), x=number)
        right = function(mpmath.mpf(number.numerator) / number.denominator)
        if isinstance(right, mpmath.mpc) and right.imag:
            assert mark == NONE
        else:
            assert mark == VALUE and abs(float(value.mid()) - float(right.real)) < 1e-12


LIMITS = {
    "exp": (np.exp, 0), "exp2": (np.exp2, 0), "expm1": (np.expm1, -1), "tanh": (np.tanh, -1), "arctan":
    (np.arctan, -np.pi / 2), "logaddexp": (lambda z: np.logaddexp(z, 1.0), 1), "maximum":
    (lambda z: np.maximum(z, 3.0), 3), "a power": (lambda z: 2.0**z, 0), "a reciprocal": (lambda z: 1 / z, 0),
    "sigmoid": (functions.sigmoid, 0), "softplus": (functions.softplus, 0),
    "its square": (lambda z: np.exp(-(z**2)), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_functions_have_their_limits_at_infinity(name):
    function, limit = LIMITS[name]
    graph = symad.trace(lambda z: function(np.where(z > 0, z, -np.inf)), [()])
    (ball,) = ball_values(graph.output_nodes, {graph.input_nodes[0]: Fraction(-1)}, 128)
    assert ball[()].mark == VALUE and abs(float(ball[()].value.mid()) - limit) < 1e-12


# ---- points --------------------------------------------------------------------------------------


def test_points_follow_the_seed_and_cover_signs_and_decades():
    graph = symad.trace(x * y)
    sets = [PointSet(graph.output_nodes, seed).drawn(400) for seed in (1, 1, 2)]
    first, again, other = ([column.tolist() for column in s.values()] for s in sets)
    assert first == again != other
    a, b = np.array(first)
    assert {(s, t) for s, t in zip(np.sign(a), np.sign(b), strict=True)} == {
        (1, 1),
        (1, -1),
        (-1, 1),
        (-1, -1),
    }
    decades = np.floor(np.log10(np.abs(a)))
    assert len(set(range(-9, 10)) & set(decades.astype(int).tolist())) >= 15
    assert all(float(v).is_integer() is False for v in a)


def test_points_lie_on_both_sides_of_every_boundary():
    graph = symad.trace(Piecewise((1, x > Rational(12345, 100)), (0, True)))
    met = [float(next(iter(p.values()))) for p in PointSet(graph.output_nodes, 3).turning()]
    assert any(123.45 < v < 125 for v in met) and any(122 < v < 123.45 for v in met)


# ---- claims that were certified, and are wrong on an open set --------------------------------------

WRONG = {
    "a candidate without values in the domain": lambda: symad.verify(
        (x - 1) ** Rational(3, 2), x, gradient=99 * sqrt(1 - x), where=x < 2
    ),
    "a plateau under a root": lambda: symad.verify(
        sqrt(Max(x, 0)), x, gradient=Piecewise((1 / (2 * sqrt(x)), x > 0), (7, True))
    ),
    "a plateau of an arcsine": lambda: symad.verify(
        sp.asin(Min(Max(x, -1), 1)), x,
        gradient=Piecewise((1 / sqrt(1 - x**2), sp.And(x > -1, x < 1)), (5, True)),
    ),
    "|x| − x under a root": lambda: symad.verify(
        sqrt(Abs(x) - x), x, gradient=Piecewise((-1 / sqrt(-2 * x), x < 0), (3, True))
    ),
    "a mask": lambda: symad.equal(
        symad.trace(lambda z, c: np.logaddexp(np.where(c > 0, z, -np.inf), 0.0), [(), ()]),
        symad.trace(lambda z, c: np.where(c > 0, np.logaddexp(z, 0.0), 7.0), [(), ()]),
    ),
    "an empty axis": lambda: symad.equal(
        symad.trace(lambda a: functions.softmax(a[1:]).sum(), [(n,)]),
        symad.trace(lambda a: 1.0 + 0 * a[0], [(n,)]),
    ),
    "domains that touch": lambda: symad.equal(sqrt(x - 1), sqrt(1 - x)),
    "domains that touch in a line": lambda: symad.equal(sqrt(x - y), 2 * sqrt(y - x)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_an_open_set_is_not_certified(name):
    assert WRONG[name]().status not in CERTIFIED


def test_a_difference_is_told_at_a_point_of_short_numbers():
    left = symad.trace(lambda z, c: np.logaddexp(np.where(c > 0, z, -np.inf), 0.0), [(), ()])
    right = symad.trace(lambda z, c: np.where(c > 0, np.logaddexp(z, 0.0), 7.0), [(), ()])
    made = symad.equal(left, right, seed=1)
    assert made.status == "refuted"
    assert all(len(text) < 10 for text in made.witness.point.values())


def test_an_exponent_of_minus_infinity_is_read():
    """2 ** −∞ is 0: it raised OverflowError."""
    left = symad.trace(lambda z, c: 2.0 ** np.where(c > 0, z, -np.inf), [(), ()])
    assert (
        symad.equal(left, symad.trace(lambda z, c: np.where(c > 0, 2.0**z, 0.0), [(), ()])).status
        in CERTIFIED
    )
    assert (
        symad.equal(left, symad.trace(lambda z, c: np.where(c > 0, 2.0**z, 1.0), [(), ()])).status
        == "refuted"
    )


# ---- domains filter points; a claim outside of a function's domain says nothing ---------------------


def test_a_derivative_is_claimed_only_where_its_function_has_values():
    assert symad.verify(log(x), x, gradient=1 / Abs(x), where=x < 5).status != "refuted"
    assert symad.verify(log(x), x, gradient=2 / Abs(x), where=x < 5).status == "refuted"


def test_a_claim_keeps_its_function_and_its_domain():
    f, candidate = sqrt(x**2 + 1) + Abs(x), x / sqrt(x**2 + 1) + 1
    made = symad.verify(f, x, gradient=candidate, where=x > 0)
    (claim,) = made.comparisons
    assert made.status in CERTIFIED
    assert claim.domain is not None and claim.derivative.kind == "gradient"
    assert symad.to_sympy(claim.right) == (candidate,)
    read = symad.Certificate.from_json(made.to_json())
    assert read.comparisons[0].domain is claim.domain
    assert read.recheck().status in CERTIFIED
    assert symad.verify(f, x, gradient=candidate, where=x > -1).status == "refuted"


def test_a_formula_that_lacks_values_where_the_function_has_slopes_is_no_proof():
    own = symad.check(sqrt(Max(x, 0)))
    assert own.status in CERTIFIED or "difference quotients are steady" in str(own)


# ---- Jacobians in parts --------------------------------------------------------------------------

SUMS = symad.trace(lambda a, b: np.stack([a * b, a + b, a - b]), [(), ()])
SQUARE = symad.trace(lambda a, b: np.stack([a * b, a + b]), [(), ()])


def parts(*functions_of_inputs):
    """Several arrays of the inputs a, b."""
    return symad.trace(lambda a, b: tuple(np.stack(f(a, b)) for f in functions_of_inputs), [(), ()])


BY_A, BY_B = (lambda a, b: [b, 1.0 + 0 * a, 1.0 + 0 * a]), (lambda a, b: [a, 1.0 + 0 * a, 0 * a - 1.0])
ROWS = [lambda a, b: [b, a], lambda a, b: [1.0 + 0 * a, 1.0 + 0 * a], lambda a, b: [1.0 + 0 * a, 0 * a - 1.0]]


def test_blocks_of_inputs_are_read_as_jax_returns_them():
    assert symad.verify(SUMS, jacobian=parts(BY_A, BY_B)).status in CERTIFIED
    assert symad.verify(SUMS, jacobian=parts(BY_B, BY_A)).status == "refuted"


def test_rows_are_read_as_rows():
    assert symad.verify(SUMS, jacobian=parts(*ROWS)).status in CERTIFIED
    assert symad.verify(SUMS, jacobian=parts(ROWS[1], ROWS[0], ROWS[2])).status == "refuted"


def test_what_may_be_rows_or_blocks_is_refused_by_name():
    with pytest.raises(ShapeError, match="its rows, or one block for each of a, b"):
        symad.verify(SQUARE, jacobian=parts(lambda a, b: [b, 1.0 + 0 * a], lambda a, b: [a, 1.0 + 0 * a]))


def test_blocks_of_outputs_and_inputs():
    f = symad.trace(lambda a, v: (a * v, np.sum(v) * a**2), [(), (3,)])
    blocks = symad.trace(lambda a, v: (v, a * np.eye(3), 2 * a * np.sum(v), a**2 * np.ones(3)), [(), (3,)])
    assert symad.verify(f, jacobian=blocks).status in CERTIFIED


def test_parts_of_other_shapes_are_refused():
    with pytest.raises(ShapeError, match="3 parts of shapes"):
        symad.verify(SQUARE, jacobian=parts(BY_A, BY_B, BY_A))


# ---- arrays of rounded constants -----------------------------------------------------------------


def test_rounded_constants_reach_arrays():
    target = np.eye(3) * (1 - 0.1) + 0.1 / 3
    f = symad.trace(lambda z: -np.sum(target * functions.log_softmax(z, axis=1)), [(3, 3)])
    g = symad.trace(lambda z: functions.softmax(z, axis=1) - target, [(3, 3)])
    assert symad.verify(f, gradient=g).status == "refuted"
    assert symad.verify(f, gradient=g, constants="rounded").status in CERTIFIED
    other = symad.trace(lambda z: functions.softmax(z, axis=1) - np.eye(3), [(3, 3)])
    assert symad.verify(f, gradient=other, constants="rounded").status == "refuted"


# ---- programs ------------------------------------------------------------------------------------

SINES = symad.trace(lambda a: np.sum(np.sin(a)), [(3,)])


@pytest.mark.parametrize(("low", "high"), [(3.4, 9), (9, 400), (-9, -3.4), (1e3, 1e6), (0.01, 0.02)])
def test_a_program_that_is_wrong_in_a_region_is_refuted(low, high):
    def wrong(a):
        return np.cos(a) + 7 * ((a > low) & (a < high))

    # of twelve seeds nine meet the narrowest region, and all meet the others
    made = symad.verify(SINES, gradient=wrong, hostile=False, seed=1)
    assert made.status == "refuted"


def test_a_program_that_is_wrong_in_a_quadrant_is_refuted():
    f = symad.trace(lambda a, b: a * b**2, [(), ()])
    wrong = symad.verify(f, gradient=lambda a, b: (b**2 + (a > 0) * (b < -2), 2 * a * b), hostile=False)
    right = symad.verify(f, gradient=lambda a, b: (b**2, 2 * a * b), hostile=False)
    assert (wrong.status, right.status) == ("refuted", "measured")


def test_a_program_that_changes_its_argument_is_told_so():
    def changing(a):
        made = np.cos(a)
        a += 1
        return made

    made = symad.verify(SINES, gradient=changing, hostile=False)
    assert made.status == "measured" and "changes an array that it is given" in str(made)
    kept = symad.verify(SINES, gradient=np.cos, hostile=False)
    assert kept.status == "measured" and "changes an array" not in str(kept)


def test_a_division_by_an_element_that_may_be_0_is_seen():
    f = symad.trace(lambda q: np.prod(q), [(4,)])
    made = symad.verify(f, gradient=lambda q: np.prod(q) / q, hostile=False)
    assert made.status == "refuted" and made.witness.right == "nan"


# ---- no engine has the last word -----------------------------------------------------------------


def lying(pairs, seed, budget, meter, decided):
    """An identity test that calls everything equal."""
    ones = [np.ones(a.shape, dtype=bool) for a, _ in pairs]
    return Result(tuple(PairResult(o, o, -100.0, "free", (7,)) for o in ones), seed, (7,), ())


@pytest.mark.thorough
def test_an_identity_test_that_calls_all_equal_is_not_believed(monkeypatch):
    monkeypatch.setattr("symad.verification.tactics.compare_nodes", lying)
    assert symad.equal(sp.sin(x) * y, sp.sin(x) * y + Rational(1, 10**9)).status == "refuted"
    wrong = [pair for pair in pairs(36, 3, ("mechanisms",)) if not pair.equal]
    tally = Tally()
    for k, pair in enumerate(wrong):
        tally.judge(pair, k)
    assert len(wrong) > 20 and not tally.crashes
    assert not tally.false_certificates
