"""Each row of `symad.facts` against values to 50 digits by mpmath, at points of all sizes and beside ends."""

import math
from itertools import pairwise

import mpmath
import pytest
import sympy as sp
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

import symad
from symad.evaluation.scalar_definitions import definition_of
from symad.facts.functions import ALWAYS, EVEN, FACTS, ODD, OF_ARGUMENT, OF_POSITIVE, fact, is_zero_at_zero
from symad.numbers.function_values import mpmath_function
from symad.numbers.values import unchecked

UNARY = [head for head in FACTS if 1 in getattr(head, "nargs", ()) and head not in (sp.Max, sp.Min)]
ONE = [head for head in UNARY if head.__module__.startswith("sympy.")]
OWN = [head for head in UNARY if head.__module__ == "symad.sympy_functions.scalar_functions"]
SIZES = (2.0**-30, "0.125", "0.75", "0.9375", "1.0", "1.0625", "1.75", "2", "3.25", "4.5", "7.25", "12.5")
POINTS = tuple(mpmath.mpf(s) * mpmath.mpf(x) for x in SIZES for s in ("-1", "1"))


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def value(head, at):
    """head to 50 digits; None where it has no real, finite value."""
    try:
        if head in OWN:
            (x,), meaning = definition_of(head, 1)
            found = unchecked([meaning], {x: mpmath.mpf(at)})[0]
        else:
            found = mpmath_function(head)(mpmath.mpf(at))
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
        return None
    found = mpmath.mpmathify(found)
    real = mpmath.isfinite(found) and abs(mpmath.im(found)) < mpmath.mpf(10) ** -45
    return mpmath.re(found) if real else None


def values(head):
    return {x: v for x in POINTS if (v := value(head, x)) is not None}


@pytest.mark.parametrize("head", [*ONE, *OWN], ids=lambda h: h.__name__)
def test_a_row_says_what_50_digits_say(head):
    row, known = fact(head), values(head)
    assert known
    low, high = row.range
    assert all(low <= v <= high for v in known.values())
    if row.total:
        assert len(known) == len(POINTS)
    if row.parity:
        assert row.parity in (EVEN, ODD)
        assert all(abs(v - row.parity * known[-x]) <= 1e-40 * abs(v) for x, v in known.items() if -x in known)
    if row.sign == ALWAYS:
        assert all(v > 0 for x, v in known.items() if abs(x) != 1)
    if row.sign == OF_ARGUMENT:
        assert all(v * x >= 0 for x, v in known.items())
    if row.sign == OF_POSITIVE:
        assert all(v > 0 for x, v in known.items() if x > 0)
    if row.never_zero:
        assert all(known.values())
    if row.monotone:
        ordered = [v for _, v in sorted(known.items())]
        assert all((b - a) * row.monotone >= 0 for a, b in pairwise(ordered))
    if row.flat:
        assert all(value(head, x + mpmath.mpf(2) ** -40) == v for x, v in known.items() if x % 1)


@pytest.mark.parametrize("head", [*ONE, *OWN], ids=lambda h: h.__name__)
def test_its_domain_is_where_it_has_values(head):
    from flint import arb

    row, known = fact(head), values(head)
    for x in (*POINTS, mpmath.mpf(0)):
        if row.outside(arb(float(x))):
            assert value(head, x) is None or head in (sp.loggamma, sp.acsch), x
        ends = {row.above, *(s * e for e in (row.size_above, row.size_below) if e for s in (1, -1))}
        inside = (
            (row.above is None or x > row.above)
            and (row.size_above is None or abs(x) > row.size_above)
            and (row.size_below is None or abs(x) < row.size_below)
        )
        bounded = row.above is not None or row.size_above is not None or row.size_below is not None
        if bounded and float(x) not in ends:
            assert (x in known) == inside or x == 0, x
    for end in row.ends:
        beside = [value(head, end + s * mpmath.mpf(2) ** -100) for s in (-1, 1)]
        assert any(v is not None and abs(v) > 5 and (v > 0) == (row.ends[end] > 0) for v in beside)
    if row.pole_at_zero:
        assert value(head, mpmath.mpf(0)) is None


@pytest.mark.parametrize("head", [*ONE, *OWN], ids=lambda h: h.__name__)
def test_its_limits_are_values_far_out(head):
    for side, limit in zip((-1, 1), fact(head).limits or (), strict=False):
        far = [value(head, side * mpmath.mpf(10) ** k) for k in (2, 3)]
        if limit is None:
            assert None in far or far[0] * far[1] < 0 or abs(far[0] - far[1]) > 1e-3
        elif limit in (math.inf, -math.inf):
            assert all(v is None or (abs(v) > 1 and (v > 0) == (limit > 0)) for v in far)
        else:
            assert all(v is None or abs(v - float(limit)) < 0.02 for v in far)


@pytest.mark.parametrize("head", [h for h in (*ONE, *OWN) if fact(h).balls], ids=lambda h: h.__name__)
def test_balls_hold_its_values(head):
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, 200
    try:
        for x, v in values(head).items():
            ball = fact(head).balls(arb(float(x)))
            if mpmath.mpf(float(x)) == x and ball.is_finite():
                exact = arb(mpmath.nstr(v, 50))
                assert abs(ball - exact) < abs(exact) * arb("1e-44") + arb("1e-44"), x
    finally:
        ctx.prec = before


DEFINED = {
    h: max(n for n in (1, 2, 3) if n in h.nargs)
    for h, row in FACTS.items()
    if row.definition and hasattr(h, "nargs")
}


@pytest.mark.parametrize("head", DEFINED, ids=lambda h: h.__name__)
def test_its_definition_has_its_values(head):
    names = ({cfunctions.Sqrt: mpmath.sqrt, cfunctions.hypot: mpmath.hypot, logaddexp: _log_of_sum}
             | {cfunctions.fma: lambda a, b, c: a * b + c, cfunctions.exp2: lambda a: mpmath.mpf(2) ** a,
                cfunctions.log10: mpmath.log10})  # fmt: skip
    expected, told = names.get(head) or mpmath_function(head), 0
    for at in zip(*(POINTS[k:] for k in (0, 5, 9)), strict=False):
        point = at[: DEFINED[head]]
        inputs, meaning = definition_of(head, len(point))
        found = unchecked([meaning], dict(zip(inputs, point, strict=True)))[0]
        try:
            wanted = mpmath.mpmathify(expected(*point))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if mpmath.isfinite(wanted) and not mpmath.im(wanted) and isinstance(found, mpmath.mpf):
            told += 1
            assert mpmath.isnan(found) or abs(found - wanted) <= 1e-35 * (1 + abs(wanted)), point
    assert told >= 3


def _log_of_sum(a, b):
    return mpmath.log(mpmath.exp(a) + mpmath.exp(b))


@pytest.mark.parametrize("head", [h for h in (*ONE, *OWN) if fact(h).kink], ids=lambda h: h.__name__)
def test_jumps_and_kinks_stand_where_it_says(head):
    row, step = fact(head), mpmath.mpf(2) ** -60
    place = {"zero": 0, "whole": 2}[row.kink]
    before, after = value(head, place - step), value(head, place + step)
    assert (abs(after - before) > 0.5) == row.jumps
    assert row.jumps or abs(before + after - 2 * value(head, place)) > step  # else the slope does
    assert abs(value(head, place + 0.5) - value(head, place + 0.5 + step)) < 1e-9


def test_zeros_at_zero_are_zeros():
    for head in ONE:
        if is_zero_at_zero(head):
            assert value(head, mpmath.mpf(0)) == 0
    assert is_zero_at_zero(sp.sin) and is_zero_at_zero(sp.floor) and not is_zero_at_zero(sp.cos)


def test_a_users_function_is_a_row():
    made = symad.register_function("cubed", lambda u: u**3, [lambda u: 3 * u**2], mpmath=lambda u: u**3)
    try:
        assert fact(made).users(2.0) == 8.0 and fact(made).digits(mpmath.mpf(3)) == 27
    finally:
        del FACTS[made]
    assert fact(made).users is None
