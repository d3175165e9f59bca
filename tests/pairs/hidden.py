"""Families S4, S5: zeros and integers that no normal form shows, inside steps, signs and comparisons.

By an identity, h is 0 everywhere. Questions about f(h) are decided by f(0), and never by rounding.
"""

from __future__ import annotations

import random
from typing import Any

import sympy as sp

from tests.pairs.pair import Pair
from tests.pairs.roots import known

x, y = sp.symbols("x y", real=True)
p, q = sp.symbols("p q", positive=True)


def zero(rng: random.Random, u: Any, w: Any) -> Any:
    """An expression of a positive u and a real w that is 0 everywhere and that SymPy does not simplify."""
    found = [
        sp.atan(u) + sp.atan(1 / u, evaluate=False) - sp.pi / 2,
        sp.sqrt(u + 1 + 2 * sp.sqrt(u)) - 1 - sp.sqrt(u),
        sp.log(u**2 + u, evaluate=False) - sp.log(u, evaluate=False) - sp.log(u + 1, evaluate=False),
        sp.acosh(sp.cosh(u), evaluate=False) - u,
        sp.asin(w / sp.sqrt(1 + w**2)) - sp.atan(w),
        sp.asin(sp.tanh(w)) - 2 * sp.atan(sp.tanh(w / 2)),
        sp.sqrt(sp.exp(2 * w) + 2 + sp.exp(-2 * w)) - 2 * sp.cosh(w),
        sp.sqrt((u + 1) ** 2 - 4 * u) - sp.Abs(u - 1),
        sp.sin(w) ** 2 + sp.cos(w) ** 2 - 1,
        (w + 1) ** 3 - w**3 - 3 * w**2 - 3 * w - 1,
        sp.exp(w) * sp.exp(-w, evaluate=False) + sp.exp(w) - sp.exp(w) - 1,
        sp.atan((u + sp.Rational(1, 2)) / (1 - u / 2)) - sp.atan(u) - sp.atan(sp.Rational(1, 2)),
    ]
    return rng.choice(found[:-1])


def stepped(rng: random.Random) -> Pair | None:
    """A step function of a hidden zero against its value at 0, and against its value next to 0."""
    u, w = rng.choice([p, q, 1 + x**2, sp.exp(y), p * q]), rng.choice([x, y, x * y, x + y])
    h = zero(rng, u, w)
    if h == 0:
        return None
    s = rng.choice([-1, 1])
    f = rng.choice([
        lambda v: sp.sign(v, evaluate=False) ** 2,
        lambda v: sp.Piecewise((1, sp.Ge(v, 0, evaluate=False)), (0, True), evaluate=False),
        lambda v: sp.Piecewise((1, sp.Gt(v, 0, evaluate=False)), (0, True), evaluate=False),
        lambda v: sp.Piecewise((x, sp.Lt(v, 0, evaluate=False)), (y, True), evaluate=False),
        lambda v: sp.sign(s * v, evaluate=False),
        lambda v: 1 + sp.sign(v, evaluate=False) * x,
        lambda v: sp.Heaviside(v, 1, evaluate=False),
        lambda v: sp.Heaviside(v, 0, evaluate=False),
        lambda v: sp.floor(2 + v, evaluate=False) - sp.ceiling(2 + v, evaluate=False),
        lambda v: sp.ceiling(3 + v, evaluate=False),
    ])  # fmt: skip
    at_zero = f(sp.Integer(0)).doit()
    wrong = f(rng.choice([1, -1]) * sp.Rational(1, 9)).doit()
    other = wrong if rng.random() < 0.5 else at_zero
    return Pair("S4, S5 hidden zeros", f(h), other, other == at_zero, f"{f(h)} against {other}", hard=True)


def whole(rng: random.Random) -> Pair | None:
    """Step functions of hidden integers k: ⌈k⌉ = ⌊k⌋."""
    k = rng.choice([2, 3, 5])
    w = rng.choice([x, x + y])
    hidden = rng.choice([
        sp.log(p**k, evaluate=False) / sp.log(p),
        k + sp.atan(p) + sp.atan(1 / p) - sp.pi / 2,
        k * (sp.sin(w) ** 2 + sp.cos(w) ** 2),
        k + sp.sqrt(p + 1 + 2 * sp.sqrt(p)) - 1 - sp.sqrt(p),
    ])  # fmt: skip
    left = sp.ceiling(hidden, evaluate=False)
    floor = sp.floor(hidden, evaluate=False)
    right, equal = rng.choice(
        [(floor, True), (floor + 1, False), (sp.Integer(k), True), (sp.Integer(k + 1), False)]
    )
    return Pair("S4, S5 hidden zeros", left, right, equal, f"{left} against {right}", hard=True)


def powers(rng: random.Random) -> Pair | None:
    """Powers of x with a hidden even exponent, which are real for negative x too."""
    h = rng.choice([sp.sin(y) ** 2 + sp.cos(y) ** 2, sp.cosh(y) ** 2 - sp.sinh(y) ** 2])
    left = sp.Pow(x, 1 + h, evaluate=False)
    right, equal = rng.choice([(x * sp.Abs(x), False), (x**2, True)])
    return Pair("S4, S5 hidden zeros", left, right, equal, f"{left} against {right}", hard=True)


def zero_symbol(rng: random.Random) -> Pair | None:
    """A symbol that is zero by assumption."""
    z = sp.Symbol("z", zero=True)
    left = rng.choice([z + x, z * y + x, sp.exp(z) * x])
    right, equal = rng.choice([(x, True), (x + 1, False)])
    return Pair("S4, S5 hidden zeros", left, right, equal, f"{left} against {right}")


def jumps_apart(rng: random.Random) -> Pair | None:
    """Step functions and remainders of ordinary arguments; at a jump, which is no open set, some differ."""
    u = rng.choice([x, 2 * x, x + y, x / 3, p])
    left, right, equal = rng.choice([
        (sp.Mod(u, 3), sp.Mod(u, 2), False), (sp.floor(u), sp.ceiling(u) - 1, True),
        (sp.floor(u), sp.ceiling(u), False), (sp.floor(u + 3), sp.floor(u) + 3, True),
        (sp.floor(-u), -sp.ceiling(u), True), (sp.Mod(u, 2), sp.Mod(u + 4, 2), True),
        (u - sp.floor(u), sp.Mod(u, 1), True), (sp.floor(2 * u), 2 * sp.floor(u), False),
        (sp.sign(u) ** 2, sp.Integer(1), True), (sp.Mod(u, 4), sp.Mod(u, 2), False),
        (sp.floor(u) + sp.floor(u + sp.Rational(1, 2)), sp.floor(2 * u), True),
    ])  # fmt: skip
    return known("S5 steps", left, right, rng, equal)
