"""Family S2: branches whose values and conditions share subexpressions; right-hand sides by cases."""

from __future__ import annotations

import random
from itertools import pairwise, permutations
from typing import Any

import sympy as sp

from tests.pairs.pair import Pair
from tests.pairs.roots import known

x, y, z = sp.symbols("x y z", real=True)


def condition(rng: random.Random, symbols: list[Any]) -> Any:
    """A condition on the order of some symbols."""
    a, b = rng.sample(symbols, 2)
    return rng.choice([
        sp.Eq(a, sp.Max(a, b)), sp.Eq(b, sp.Max(a, b)), sp.Eq(a, sp.Min(a, b)), a > b, a >= b,
        sp.Max(a, b) > a, sp.Eq(a, sp.Max(*symbols)), sp.And(a > b, a > symbols[-1]), sp.Ne(a, sp.Max(a, b)),
    ])  # fmt: skip


def indicator(rng: random.Random, symbols: list[Any]) -> Any:
    """A number, or a small expression, that depends on a condition."""
    values = rng.choice([(1, 0), (0, 1), (3, 1), (2, 5), (1, -1), (sp.Rational(1, 2), 3)])
    if rng.random() < 0.2:
        values = (values[0] * symbols[0], values[1] + symbols[1] ** 2)
    c = condition(rng, symbols)
    if c in (sp.true, sp.false):
        return sp.sympify(values[0])
    return sp.Piecewise((values[0], c), (values[1], True))


def combination(a: Any, b: Any, rng: random.Random) -> Any:
    """An expression of two given ones."""
    return rng.choice([
        lambda: a / (a + b), lambda: a * b, lambda: a - b, lambda: a**2 + b, lambda: b / (a + b),
        lambda: a / (1 + b**2), lambda: sp.Max(a, b), lambda: sp.exp(a) * b, lambda: x * a / (a + b),
        lambda: (a - b) / (a + b), lambda: sp.Abs(a - b), lambda: a * x + b * y,
    ])()  # fmt: skip


def by_cases(rng: random.Random) -> Pair | None:
    """A combination against its value in each order of the symbols, with one case changed or none."""
    symbols = [x, y] if rng.random() < 0.9 else [x, y, z]
    left = combination(indicator(rng, symbols), indicator(rng, symbols), rng)
    cases = []
    for order in permutations(symbols):  # largest first
        ranks = {s: len(symbols) - k for k, s in enumerate(order)}
        piece = chosen(left, ranks)
        if piece is None or not piece.is_finite:
            return None
        cases.append((piece, sp.And(*[a > b for a, b in pairwise(order)])))
    if rng.random() < 0.5:
        k = rng.randrange(len(cases))
        cases[k] = (cases[k][0] + rng.choice([1, -1, x, sp.Rational(1, 1000)]), cases[k][1])
    last, _ = cases.pop()
    return known("S2 branches by cases", left, sp.Piecewise(*cases, (last, True)), rng)


def chosen(e: Any, ranks: dict[Any, int]) -> Any:
    """An expression with its conditions and extremes decided by an order of the symbols."""
    if isinstance(e, sp.Piecewise):
        for branch, c in e.args:
            if bool(decided(c, ranks)):
                return chosen(branch, ranks)
        return None
    if isinstance(e, (sp.Max, sp.Min)) and all(a in ranks for a in e.args):
        return (max if isinstance(e, sp.Max) else min)(e.args, key=ranks.__getitem__)
    if not e.args:
        return e
    args = [chosen(a, ranks) for a in e.args]
    if any(a is None for a in args):
        return None
    if isinstance(e, (sp.Max, sp.Min, sp.Abs)) and not all(a.is_number for a in args):
        return e.func(*args)
    made = e.func(*args)
    return None if made.has(sp.zoo, sp.nan, sp.oo) else made


def decided(c: Any, ranks: dict[Any, int]) -> bool:
    """The truth of a condition in one order of the symbols."""
    if c in (sp.true, sp.false):
        return bool(c)
    return bool(c.subs(ranks))


def weighted(rng: random.Random) -> Pair | None:
    """Weights of the winners of a maximum, as in its derivative."""
    g, h = sp.Max(x, y), sp.Max(x, y)
    c, d = rng.choice([(1, 1), (3, 1), (2, 2), (1, 2), (5, 3)])
    a = sp.Piecewise((c, sp.Eq(x, g)), (rng.choice([0, 1]), True))
    b = sp.Piecewise((d, sp.Eq(y, h)), (rng.choice([0, 1]), True))
    left = a / (a + b)
    values = [chosen(left, {x: 2, y: 1}), chosen(left, {x: 1, y: 2})]
    if rng.random() < 0.5:
        values = [sp.Integer(1), sp.Integer(0)]
    return known("S2 weights of winners", left, sp.Piecewise((values[0], x > y), (values[1], True)), rng)
