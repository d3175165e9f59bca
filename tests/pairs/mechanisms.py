"""Wrong claims by their mechanism: f is random, and g is f + 7 on a region R and f elsewhere.

The region is one of sign, order, size, of whole parts, of a `where`, beyond the domain of the formula's own
ops, a plateau under a root or an arcsine, where a mask is −∞, or an axis of the least size. A claim that is
wrong on an open set may be refuted or undecided, and certified never; its right twin is never refuted.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import sympy as sp

import symad
from symad import functions
from tests.pairs.pair import Pair

x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)

FORMULAS = (
    sp.sin(x) * y, sp.exp(-(x**2)) + y, x**2 * y, sp.log(1 + x**2) * y, sp.sqrt(x**2 + 1) + y**3,
    sp.tanh(x * y), x / (1 + y**2), sp.cos(x + y), sp.atan(x) - y, x * sp.exp(y / 3),
)  # fmt: skip


def region(rng: random.Random) -> Any:
    """A condition that holds on an open set, and on its complement too."""
    c = sp.Rational(rng.randrange(-40, 40), 8)
    width = sp.Rational(1, rng.choice([1, 4, 16]))
    return rng.choice([
        x > 0, x < c, x > y, sp.And(x < 0, y < 0), x + y > c, x * y < -1, sp.Abs(x) > 100, x > 5000,
        sp.Abs(x) < sp.Rational(1, 64), sp.And(x > c, x < c + width), sp.And(x > 3, y < -2),
        x**2 + y**2 < width,
        sp.Eq(sp.floor(x), rng.randrange(-4, 4)), sp.Mod(x, 2) < sp.Rational(1, 2), sp.Abs(x - y) < width,
    ])  # fmt: skip


def off(rng: random.Random, condition: Any) -> Any:
    """7 where a condition holds, in several spellings."""
    other = rng.choice([0, 0, sp.Integer(0) * x])
    return sp.Piecewise((7, condition), (other, True))


def values(rng: random.Random) -> Pair | None:
    """f and f + 7 on a region; of the right twin both branches are the same by an identity."""
    f, condition = rng.choice(FORMULAS), region(rng)
    equal = rng.random() < 0.3
    both = (sp.sin(x) ** 2, 1 - sp.cos(x) ** 2) if equal else (7, 0)
    g = f + sp.Piecewise((both[0], condition), (both[1], True))
    left = f + both[1]
    return Pair("M values", left, g, equal, f"{left} and {g}", hard=True)


def derivatives(rng: random.Random) -> Pair | None:
    """A gradient, Jacobian, or product with a vector, with 7 more on a region."""
    f, condition = rng.choice(FORMULAS), region(rng)
    equal = rng.random() < 0.3
    more = 0 if equal else off(rng, condition)
    slopes = [sp.diff(f, x) + more, sp.diff(f, y)]
    bar = sp.Symbol("y_bar", real=True)
    kind = rng.choice(["gradient", "jacobian", "vjp"])
    given = {"gradient": slopes, "jacobian": sp.Matrix([slopes]), "vjp": [s * bar for s in slopes]}[kind]

    def ask(pair: Pair, seed: int) -> Any:
        return symad.verify(f, [x, y], **{kind: given}, seed=seed)

    return Pair("M derivatives", f, None, equal, f"the {kind} {slopes} of {f}", hard=True, ask=ask)


def inside(rng: random.Random) -> Pair | None:
    """A gradient with 7 more on a region, claimed on a half-line that meets it, or one that does not."""
    f, c = rng.choice(FORMULAS), sp.Rational(rng.randrange(-16, 16), 4)
    equal, upper = rng.random() < 0.4, rng.random() < 0.5
    where = x > c if upper else x < c
    reach = c + (3 if equal == upper else -3) * rng.choice([sp.Rational(1, 2), 1])
    condition = (x < c if upper else x > c) if equal else (x > reach if not upper else x < reach)
    if not equal:
        condition = sp.And(where, x < c + 4 if upper else x > c - 4, y > 0)
    given = [sp.diff(f, x) + off(rng, condition), sp.diff(f, y)]

    def ask(pair: Pair, seed: int) -> Any:
        return symad.verify(f, [x, y], gradient=given, where=where, seed=seed)

    return Pair("M where", f, None, equal, f"{given} of {f} where {where}", hard=True, ask=ask)


def plateaus(rng: random.Random) -> Pair | None:
    """Slopes of what is flat under a root or at the end of an arcsine: 0 there, and not 7."""
    u = rng.choice([x - 1, 2 * x + 3, -x, x / 2 - 5])
    slope, value = sp.diff(u, x), rng.choice([0, 7, 7, -1])
    f, steep, condition = rng.choice([
        (sp.sqrt(sp.Max(u, 0)), slope / (2 * sp.sqrt(u)), u > 0),
        (sp.sqrt(sp.Abs(u) - u), -slope / sp.sqrt(-2 * u), u < 0),
        (sp.asin(sp.Min(sp.Max(u, -1), 1)), slope / sp.sqrt(1 - u**2), sp.And(u > -1, u < 1)),
        (sp.Max(u, 0) ** sp.Rational(1, 3), slope * u ** sp.Rational(-2, 3) / 3, u > 0),
    ])  # fmt: skip
    given = sp.Piecewise((steep, condition), (value, True))

    def ask(pair: Pair, seed: int) -> Any:
        return symad.verify(f, x, gradient=given, seed=seed)

    return Pair("M plateaus", f, None, value == 0, f"{given} of {f}", hard=True, ask=ask)


def outside(rng: random.Random) -> Pair | None:
    """Candidates that have values only where the function has none, with and without a domain."""
    f, given, where = rng.choice([
        ((x - 1) ** sp.Rational(3, 2), 99 * sp.sqrt(1 - x), x < 2),
        ((x - 1) ** sp.Rational(3, 2), 99 * sp.sqrt(1 - x), None),
        (sp.log(x), sp.sqrt(-x), x < 5), (sp.acosh(x), 5 / sp.sqrt(1 - x**2), x < 4),
        (sp.sqrt(x) * sp.log(x), sp.log(-x) + 1, sp.And(x > -3, x < 3)),
        (sp.asin(x / 2), sp.sqrt(x - 2), x > -1), (sp.sqrt(x - 3), sp.sqrt(3 - x), None),
    ])  # fmt: skip

    def ask(pair: Pair, seed: int) -> Any:
        return symad.verify(f, x, gradient=given, where=where, seed=seed)

    return Pair("M outside", f, None, False, f"{given} of {f} where {where}", ask=ask)


def touching(rng: random.Random) -> Pair | None:
    """Sides whose domains have one point in common, or none."""
    c, shift = sp.Rational(rng.randrange(-9, 9), 4), rng.choice([0, 0, 1])
    a, b = rng.choice([
        (sp.sqrt(x - c - shift), sp.sqrt(c - x)), (sp.log(x - c), sp.log(c - x)),
        (sp.acosh(x + 1 - c), sp.acosh(1 - x + c - shift)), (sp.sqrt(x - c), sp.log(c - x)),
        (sp.sqrt(y - x**2), sp.sqrt(x**2 - y) * 3),
        ((x - c) ** sp.Rational(3, 2), (c - x) ** sp.Rational(1, 4)),
    ])  # fmt: skip
    return Pair("M touching", a, b, False, f"{a} and {b}")


MASKED = {
    "logaddexp": (lambda z: np.logaddexp(z, 0.0), 0.0), "exp2": (lambda z: np.exp2(z), 0.0),
    "expm1": (lambda z: np.expm1(z), -1.0), "tanh": (lambda z: np.tanh(z), -1.0), "maximum":
    (lambda z: np.maximum(z, 1.0), 1.0), "exp": (lambda z: np.exp(z), 0.0), "power": (lambda z: 2.0**z, 0.0),
    "softplus": (lambda z: functions.softplus(z), 0.0), "sigmoid": (lambda z: functions.sigmoid(z), 0.0),
    "arctan": (lambda z: np.arctan(z) * 0 + np.exp(z), 0.0),
}  # fmt: skip


def masks(rng: random.Random) -> Pair | None:
    """A function of z where c > 0 and of −∞ elsewhere, against its limit there, or 7."""
    name = rng.choice(list(MASKED))
    function, limit = MASKED[name]
    equal = rng.random() < 0.3 and name != "arctan"
    value = limit if equal else 7.0
    a = symad.trace(lambda z, c: function(np.where(c > 0, z, -np.inf)), [(), ()])
    b = symad.trace(lambda z, c: np.where(c > 0, function(z), value), [(), ()])
    return Pair("M masks", a, b, equal, f"{name} of a mask, and {value}", hard=True)


def empty(rng: random.Random) -> Pair | None:
    """What holds for all sizes but the least one, at which an axis is empty."""
    k = rng.choice([1, 2])
    name, a, b = rng.choice([
        ("softmax", lambda v: functions.softmax(v[k:]).sum(), lambda v: 1.0 + 0 * v[0]),
        ("mean of ones", lambda v: (np.exp(v[k:]) / np.exp(v[k:]).sum()).sum(), lambda v: 1.0 + 0 * v[0]),
        ("a quotient of sums", lambda v: v[k:].sum() / v[k:].sum() + 0 * v[0], lambda v: 1.0 + 0 * v[0]),
    ])  # fmt: skip
    left, right = (symad.trace(f, [(n + k - 1,)]) for f in (a, b))
    return Pair("M least sizes", left, right, name == "a quotient of sums", f"{name} from {k}", hard=True)
