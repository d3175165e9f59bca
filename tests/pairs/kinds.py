"""Families S3, S8, S9: integer inputs and indices, symbolic sizes, symbols that share a name."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import sympy as sp

import symad
from tests.pairs.pair import Pair

x, y = sp.symbols("x y", real=True)
p = sp.Symbol("p", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
k = sp.Symbol("k", integer=True)


def indexed(rng: random.Random) -> Pair | None:
    """Two look-ups that differ at one index of many, or at none."""
    size = rng.choice([5, 40, 100])
    place, change = rng.randrange(size), rng.choice([1.0, 1e-3])
    other = rng.choice(["same", "shifted", "changed", "changed"])

    def left(a: Any, i: Any) -> Any:
        return a[i] * 2

    def right(a: Any, i: Any) -> Any:
        found = a[i] + a[i]
        if other == "changed":
            return found + np.where(i == place, change, 0.0)
        return found + np.where(i < size, 0.0, 1.0) if other == "shifted" else found

    index = sp.Symbol("i", integer=True, nonnegative=True)
    a = sp.tensor.array.expressions.ArraySymbol("a", (size,))
    sides = [symad.trace(f, [a, index]) for f in (left, right)]
    text = f"a[i] of {size} elements, {other} at {place}"
    return Pair("S3 indices", *sides, other != "changed", text, hard=other == "shifted")


def whole_numbers(rng: random.Random) -> Pair | None:
    """Polynomials of an integer symbol that vanish at some of its values; parity; powers."""
    roots = rng.sample(range(-3, 9), rng.choice([2, 3, 4]))
    bump = sp.prod([k - r for r in roots])
    base = rng.choice([p**k, sp.exp(k * x), x * k, sp.cos(sp.pi * k) * x])
    left, right, equal = rng.choice([
        (base * (1 + bump), base, False), (base + bump, base, False),
        (base + sp.expand(bump), base + bump, True),
        (sp.cos(2 * sp.pi * k, evaluate=False) * x, x, True), (p**k * p, p ** (k + 1), True),
        (sp.Abs(x) ** k, sp.Pow(x, k), False), (sp.Pow(x, 2 * k, evaluate=False), sp.Abs(x) ** (2 * k), True),
        (sp.floor(sp.Rational(1, 2) * k), k / 2, False),
        (sp.Piecewise((x, sp.Eq(k, roots[0])), (y, True)), y, False),
    ])  # fmt: skip
    return Pair("S3 integer symbols", left, right, equal, f"{left} against {right}", hard=equal)


def matrix_powers(rng: random.Random) -> Pair | None:
    """Tr(A^N) with factors that are 1 at small N."""
    size = rng.choice([2, 3])
    a, power = sp.MatrixSymbol("A", size, size), sp.Symbol("N", integer=True, positive=True)
    low = rng.choice([1, 2])
    factor = 1 + prod(power - j for j in range(low, rng.choice([4, 5, 6])))
    plain = sp.Trace(a**power)
    if rng.random() < 0.3:
        return Pair(
            "S3 matrix powers", plain, sp.Trace((a**power).T), True, "Tr A^N and its transpose", hard=True
        )
    return Pair("S3 matrix powers", plain * factor, plain, False, f"Tr A^N times {factor}")


def any_size(rng: random.Random) -> Pair | None:
    """Factors that depend on the size and are 1 at small sizes, which are the usual ones to try."""
    a, b = sp.MatrixSymbol("A", n, n), sp.MatrixSymbol("B", n, n)
    vanish = sp.prod([n - j for j in rng.choice([(2, 3), (1, 2, 3), (2, 3, 4), (2, 3, 6), (3,)])])
    plain = rng.choice([a, a * b, a.T * b, a + b])
    if rng.random() < 0.4:
        right = {a: a.T.T, a * b: (b.T * a.T).T, a.T * b: (b.T * a).T, a + b: b + a}[plain]
        return Pair("S8 symbolic sizes", plain, right, True, f"{plain} against {right}")
    return Pair("S8 symbolic sizes", (1 + vanish) * plain, plain, False, f"{plain} times {1 + vanish}")


def namesakes(rng: random.Random) -> Pair | None:
    """Two different symbols of the same name."""
    first, second = (
        sp.Symbol("x", **a) for a in rng.sample([{"real": True}, {"positive": True}, {"negative": True}], 2)
    )
    f = rng.choice([lambda s: s, sp.Abs, lambda s: s**2 + 1, sp.exp, lambda s: sp.sqrt(s**2)])
    g = rng.choice([f, f, sp.Abs])
    pair = (f(first), g(second))
    if not all(s.free_symbols for s in pair):
        return None
    return Pair("S9 names", *pair, False, f"{pair[0]} of {first.assumptions0} against {pair[1]} of another x")
