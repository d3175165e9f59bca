"""Families S1, S6: identities that hold where u > 0, next to elements and branches that are real only there.

|u| = u holds for an element that contains √u, and not for its neighbour. Each identity comes with two
right-hand sides: one that is right only where u > 0, and one that is right everywhere.
"""

from __future__ import annotations

import random
from typing import Any

import sympy as sp

from tests.pairs.pair import Pair
from tests.pairs.values import compare

x, y, z, t = sp.symbols("x y z t", real=True)
p, q = sp.symbols("p q", positive=True)
HALF = sp.Rational(1, 2)

ARGUMENTS = [
    x,
    y,
    x + y,
    x - y,
    x * y,
    x - 1,
    x + 2,
    2 * x,
    x**2 - y,
    x * (y**2 + 1),
    x / (1 + y**2),
    z,
    x**3,
]

POINTS = 100
"""The number of points at which both sides must have values; three factors are all negative at a tenth."""

DOMAINS = [
    sp.sqrt, sp.log, lambda u: u ** sp.Rational(3, 2), lambda u: 1 / sp.sqrt(u), lambda u: sp.acosh(u + 1),
    lambda u: u ** sp.Rational(1, 4), lambda u: sp.sin(sp.sqrt(u)), lambda u: t * sp.sqrt(u),
    lambda u: sp.exp(sp.sqrt(u)), lambda u: sp.log(u) ** 2, lambda u: sp.sqrt(u) + 1 / u,
    lambda u: sp.log(sp.sqrt(u)), lambda u: sp.log(1 + sp.sqrt(u)), lambda u: u ** sp.Rational(5, 2) / 3,
]  # fmt: skip
"""Functions that are real for u > 0 only."""

IDENTITIES = [
    lambda u, v, a: (sp.Abs(u), u, sp.sign(u) * u),
    lambda u, v, a: (sp.sqrt(u**2 * (1 + v**2)), u * sp.sqrt(1 + v**2), a * sp.sqrt(1 + v**2)),
    lambda u, v, a: (sp.sqrt(u * (u**2 + u)), u * sp.sqrt(u + 1), a * sp.sqrt(u + 1)),
    lambda u, v, a: (sp.exp(v + sp.log(u**2) / 2), sp.exp(v) * u, sp.exp(v) * a),
    lambda u, v, a: (
        sp.exp(v + sp.log(u**2 + 2 * u + 1) / 2), sp.exp(v) * (u + 1), sp.exp(v) * sp.Abs(u + 1)
    ),
    lambda u, v, a: (sp.Max(u, 0), u, (u + a) / 2),
    lambda u, v, a: (sp.Max(u, -3), u, sp.Max(-3, u)),
    lambda u, v, a: (sp.Max(u, -u), u, a),
    lambda u, v, a: (v * sp.sign(u), v, v * u / a),
    lambda u, v, a: (sp.Piecewise((v, u > 0), (v**2, True)), v, sp.Piecewise((v**2, u <= 0), (v, True))),
    lambda u, v, a: (sp.sqrt(u * v) * sp.sqrt(u / v), u, a),
    lambda u, v, a: ((u**2) ** sp.Rational(3, 2), u**3, a**3),
    lambda u, v, a: ((u**4) ** sp.Rational(1, 4), u, a),
    lambda u, v, a: (sp.sqrt(u**2 + u**4), u * sp.sqrt(1 + u**2), a * sp.sqrt(1 + u**2)),
    lambda u, v, a: (v / sp.sqrt(u**2), v / u, v / a),
    lambda u, v, a: (
        sp.log(u**2 * (1 + v**2)), 2 * sp.log(u) + sp.log(1 + v**2), 2 * sp.log(a) + sp.log(1 + v**2)
    ),
    lambda u, v, a: (sp.sqrt((u + 1) ** 2 - 2 * u - 1), u, a),
    lambda u, v, a: (a**v, sp.exp(v * sp.log(u**2) / 2) * sp.sign(u), sp.exp(v * sp.log(u**2) / 2)),
    lambda u, v, a: (sp.sqrt(u**2) * v, sp.sqrt(u) ** 2 * v * sp.sign(u), a * v),
    lambda u, v, a: (sp.sqrt(u**2 * v**2), u * sp.Abs(v), a * sp.Abs(v)),
]  # fmt: skip
"""(f, right for u > 0 only, right wherever both are defined), from u, another v, and a = |u|."""

ASYMMETRIC = [
    lambda u: (sp.atan(u) + sp.atan(1 / u), sp.pi / 2, sp.pi * sp.sign(u) / 2),
    lambda u: (sp.acosh(1 + 2 * u**2), 2 * sp.asinh(u), 2 * sp.asinh(sp.Abs(u))),
    lambda u: (sp.acosh(sp.cosh(u)), u, sp.Abs(u)),
    lambda u: (sp.log(sp.cosh(u) + sp.sqrt(sp.cosh(u) ** 2 - 1)), u, sp.Abs(u)),
]


def identity(rng: random.Random, u: Any) -> tuple[Any, Any, Any]:
    """One of the identities about u."""
    if rng.random() < 0.08:
        return rng.choice(ASYMMETRIC)(u)
    v = rng.choice([w for w in (y, z, t, x + t, p) if w != u])
    return rng.choice(IDENTITIES)(u, v, sp.Abs(u))


def beside(rng: random.Random) -> Pair | None:
    """Two elements side by side: the domain of one must not be used for the other."""
    u = rng.choice(ARGUMENTS)
    f, wrong, right = identity(rng, u)
    domain = rng.choice(DOMAINS)(u)
    other = wrong if rng.random() < 0.6 else right
    rest = rng.choice([[], [], [t], [sp.exp(t)]])
    left, mirrored = [domain, f, *rest], [domain, other, *rest]
    order = rng.sample(range(len(left)), len(left))
    left, mirrored = [left[k] for k in order], [mirrored[k] for k in order]
    shape = rng.choice([list, sp.Matrix, lambda e: sp.Matrix([e])])
    return known("S1 elements side by side", shape(left), shape(mirrored), rng, other is right)


def in_a_branch(rng: random.Random) -> Pair | None:
    """The domain of a branch must not be used where the branch is not taken."""
    u = rng.choice(ARGUMENTS)
    f, wrong, right = identity(rng, u)
    domain, other = rng.choice(DOMAINS)(u), wrong if rng.random() < 0.6 else right
    w = sp.Symbol("w", real=True)
    if rng.random() < 0.5:
        left, mirrored = (sp.Piecewise((domain, w > 0), (e, True)) for e in (f, other))
    else:
        left, mirrored = (sp.Piecewise((domain, w > 0), (0, True)) + e for e in (f, other))
    return known("S1 beside a branch", left, mirrored, rng, other is right)


def in_its_own_region(rng: random.Random) -> Pair | None:
    """Identities where u > 0, by the branch's condition, a domain in the same element, or assumptions."""
    u = rng.choice(ARGUMENTS)
    f, wrong, _ = identity(rng, u)
    kind = rng.randrange(4)
    if kind == 0:
        left, mirrored = (sp.Piecewise((e, u > 0), (t, True)) for e in (f, wrong))
    elif kind == 1:
        domain = rng.choice(DOMAINS)(u)
        left, mirrored = domain + f, domain + wrong
    elif kind == 2:
        domain = rng.choice(DOMAINS)(u)
        left, mirrored = domain * f, domain * wrong
    else:
        u = rng.choice([p, q, p * q, p + 1, 1 + x**2, sp.exp(x), p / q])
        f, wrong, _ = identity(rng, u)
        left, mirrored = f, wrong
    return known("S1 where the region implies it", left, mirrored, rng, True)


def products_of_roots(rng: random.Random) -> Pair | None:
    """√(ab) √(bc) √(ac) is |abc| where a, b, c share a sign, and abc where they are positive."""
    a, b, c = rng.sample([x, y, z, x + y, x - y, y + 2, x * y], 3)
    product = rng.choice([
        (sp.sqrt(a * b) * sp.sqrt(b * c) * sp.sqrt(a * c), a * b * c),
        (sp.sqrt(a * b) * sp.sqrt(a / b), a),
        (sp.sqrt(a * b) * sp.sqrt(a * c), a * sp.sqrt(b * c)),
        (sp.log(a * b) + sp.log(a / b), sp.log(a**2)),
        (sp.log(a * b) + sp.log(b * c) + sp.log(a * c), 2 * sp.log(sp.Abs(a * b * c))),
        (sp.sqrt(a / b) * sp.sqrt(b / c), sp.sqrt(a / c)),
        (sp.sqrt(a / b), sp.sqrt(a * b) / b),
    ])  # fmt: skip
    f, g = product
    g = g if rng.random() < 0.5 else g * sp.sign(b) if rng.random() < 0.3 else g.xreplace({a: sp.Abs(a)})
    roots = rng.choice([[], [sp.sqrt(a), sp.sqrt(b), sp.sqrt(c)], [sp.sqrt(a) + sp.sqrt(b) + sp.sqrt(c)]])
    if rng.random() < 0.25 and roots:
        return known("S1 products of roots", sum(roots) + f, sum(roots) + g, rng)
    return known("S1 products of roots", [*roots, f], [*roots, g], rng)


def domain_of_another(rng: random.Random) -> Pair | None:
    """S6: maxima below the domain of a neighbour's acosh, log or asin; they differ where u < c."""
    c = rng.choice([0, sp.Rational(1, 2), 1, -1, -10, -(10**6), -(10**9)])
    u = rng.choice([x, 2 * x, x + y, x - 3])
    partial = rng.choice([sp.acosh, sp.asin, sp.atanh, sp.log, lambda v: sp.acosh(v) + sp.sqrt(v)])
    f, g = rng.choice([(sp.Max(u, c), u), (sp.Abs(u - c), u - c), (sp.Max(u - c, 0), u - c)])
    left, right = sp.Matrix([partial(u), f]), sp.Matrix([partial(u), g])
    return Pair("S6 another element's domain", left, right, False, f"{left} against {right}")


def domain_of_its_own(rng: random.Random) -> Pair | None:
    """S6: the same maxima where the element's own acosh, log or root says that they are attained."""
    u = rng.choice([x, 2 * x, x + y, x - 3])
    c = rng.choice([0, sp.Rational(1, 2), 1, -1, -10, -1000])
    partial = rng.choice([sp.acosh] if c > 0 else [sp.acosh, sp.log, sp.sqrt])
    f, g = rng.choice([(sp.Max(u, c), u), (sp.Abs(u - c), u - c), (sp.Max(u - c, 0), u - c)])
    left, right = partial(u) + f, partial(u) + g
    return Pair("S6 an element's own domain", left, right, True, f"{left} against {right}")


def beside_a_zero(rng: random.Random) -> Pair | None:
    """Roots and logarithms beside a root of a value that is 0 on a region: they do not follow from it.

    A factor that is 0 up to a bound hides the difference from points that are small.
    """
    u, v = rng.sample([x, y, x + y, x - y], 2)
    nothing = rng.choice([u + sp.Abs(u), sp.Abs(u) - u, sp.Max(u, 0), (u + 1) ** 2 - u**2 - 2 * u - 1])
    hidden = sp.Max(v - rng.choice([0, 1, 10**6, 10**12]), 0) * rng.choice([1, sp.Heaviside(-u)])
    square = rng.choice([z**2 + 1, t**2 + 3, 1 + z**4])
    f, same, other = rng.choice([
        (sp.sqrt(square), sp.sqrt(4 * square) / 2, sp.sqrt(square + 1)),
        (sp.log(square), sp.log(2 * square) - sp.log(2), sp.log(square + 1)),
        (1 / sp.sqrt(square), sp.sqrt(square) / square, 1 / sp.sqrt(2 * square + 1)),
    ])  # fmt: skip
    equal = rng.random() < 0.4
    root, g = sp.sqrt(nothing), same if equal else other
    sides = [[root, hidden * e] for e in (f, g)]
    left, right = sides
    if rng.random() < 0.5:
        left, right = sum(left), sum(right)
    return Pair("S1 beside a root of 0", left, right, equal, f"{left} against {right}")


def known(
    family: str, left: Any, right: Any, rng: random.Random, expected: bool | None = None
) -> Pair | None:
    """The pair, if mpmath's values at random points agree with the expected answer.

    SymPy may have simplified it: √u √u becomes u, which is real for negative u too.
    """
    try:
        found = compare(left, right, rng, POINTS)
    except (StopIteration, KeyError):
        return None
    if found is None or (expected is not None and (found is True) != expected):
        return None
    return Pair(family, left, right, found is True, f"{left} against {right}")
