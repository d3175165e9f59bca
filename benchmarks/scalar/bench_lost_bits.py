"""Bits that values and derivatives lose to rounding: symad's code against SymPy's `diff` with `lambdify`.

31 formulas: 26 of Hamming, "Numerical Methods for Scientists and Engineers" (1987), chapter 3, as the
rewriting literature has them (Panchekha et al., "Automatically improving accuracy for floating-point
expressions", PLDI 2015), and five common ones. Each is evaluated at 60 points whose absolute values are
log-uniform over the decades given; the reference has 120 digits. Bits lost: log2(|error|/|value|) + 53, from
0 to 53 (no digit, or NaN). Derivatives: all first, and all second ones, by all inputs. Points whose reference
is no normal number of float64 are left out.

Printed for each order: the mean, the mean of the worst points, and how many formulas have a mean below 1.

With --box, symad knows where the inputs lie: between the ends of the decades, with their signs (one kernel
for each combination of signs).

Usage: python benchmarks/scalar/bench_lost_bits.py [--formula NAME] [--rows] [--box] [--backend numpy|c|runs]
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

import symad
from symad.numeric import lower

POINTS, DIGITS, BITS = 60, 120, 53
A, B, C, E, N, X, Y = (sp.Symbol(n, real=True) for n in ("a", "b", "c", "e", "n", "x", "y"))


@dataclass(frozen=True)
class Formula:
    """A formula and the decades of its inputs; ``signs``: which signs each of them has."""

    value: sp.Expr
    decades: dict[sp.Symbol, tuple[float, float]]
    signs: str = "+"
    holds: Callable[..., bool] = lambda *point: True


def _of(value: sp.Expr, signs: str = "+", holds: Any = lambda *point: True, **decades: Any) -> Formula:
    names = {s.name: s for s in value.free_symbols}
    return Formula(value, {names[k]: v for k, v in sorted(decades.items())}, signs, holds)


def _quadratic(sign: int) -> sp.Expr:
    return (-B + sign * sp.sqrt(B**2 - 4 * A * C)) / (2 * A)


LARGE, SMALL, WIDE = (0, 15), (-12, -1), (-12, 12)
FORMULAS: dict[str, Formula] = {
    "2sqrt": _of(sp.sqrt(X + 1) - sp.sqrt(X), x=LARGE),
    "2isqrt": _of(1 / sp.sqrt(X) - 1 / sp.sqrt(X + 1), x=LARGE),
    "2cbrt": _of(sp.cbrt(X + 1) - sp.cbrt(X), x=LARGE),
    "2nthrt": _of((X + 1) ** (1 / N) - X ** (1 / N), x=LARGE, n=(0, 2)),
    "2frac": _of(1 / (X + 1) - 1 / X, x=LARGE),
    "3frac": _of(1 / (X + 1) - 2 / X + 1 / (X - 1), x=(0.5, 12)),
    "2log": _of(sp.log(X + 1) - sp.log(X), x=LARGE),
    "2atan": _of(sp.atan(X + 1) - sp.atan(X), x=LARGE, signs="±"),
    "2sin": _of(sp.sin(X + E) - sp.sin(X), "±", x=(-3, 3), e=SMALL),
    "2cos": _of(sp.cos(X + E) - sp.cos(X), "±", x=(-3, 3), e=SMALL),
    "2tan": _of(sp.tan(X + E) - sp.tan(X), "±", x=(-3, 3), e=SMALL),
    "cos2": _of((1 - sp.cos(X)) / X**2, "±", x=(-12, 1)),
    "exp2": _of(sp.exp(X) - 2 + sp.exp(-X), "±", x=(-12, 2)),
    "expm1": _of(sp.exp(X) - 1, "±", x=(-12, 2)),
    "expax": _of(sp.exp(A * X) - 1, "±", x=(-8, 1), a=(-4, 1)),
    "expq2": _of(sp.exp(X) / (sp.exp(X) - 1), "±", x=(-12, 2)),
    "expq3": _of(
        E * (sp.exp((A + B) * E) - 1) / ((sp.exp(A * E) - 1) * (sp.exp(B * E) - 1)),
        a=(-2, 2), b=(-2, 2), e=SMALL,
    ),
    "invcot": _of(1 / X - sp.cot(X), "±", x=(-12, 0)),
    "logq": _of(sp.log((1 - E) / (1 + E)), "±", e=SMALL),
    "logs": _of((N + 1) * sp.log(N + 1) - N * sp.log(N) - 1, n=(0, 15)),
    "qlog": _of(sp.log(1 - X) / sp.log(1 + X), "±", x=SMALL),
    "quadm": _of(_quadratic(-1), "±", lambda a, b, c: b * b > 4 * a * c, a=(-3, 3), b=(-2, 6), c=(-3, 3)),
    "quadp": _of(_quadratic(1), "±", lambda a, b, c: b * b > 4 * a * c, a=(-3, 3), b=(-2, 6), c=(-3, 3)),
    "sintan": _of((X - sp.sin(X)) / (X - sp.tan(X)), "±", x=(-12, 0)),
    "sqrtexp": _of(sp.sqrt((sp.exp(2 * X) - 1) / (sp.exp(X) - 1)), "±", x=(-12, 2)),
    "tanhf": _of((1 - sp.cos(X)) / sp.sin(X), "±", x=(-12, 0)),
    "squares": _of((X + E) ** 2 - X**2, x=(-3, 3), e=SMALL),
    "conjugate": _of(sp.sqrt(X**2 + 1) - X, x=(0, 12)),
    "log sigma": _of(sp.log(1 - 1 / (1 + sp.exp(-X))), "±", x=(-3, 3)),
    "mean exp": _of((sp.exp(X) - 1) / X, "±", x=(-12, 2)),
    "hypot": _of(sp.sqrt(X**2 + Y**2), "±", x=(-200, 200), y=(-200, 200)),
}  # fmt: skip


def points_of(name: str) -> list[list[float]]:
    """60 points of a formula: the same ones in each run."""
    formula, rng, found = FORMULAS[name], random.Random(name), []
    while len(found) < POINTS:
        point = []
        for low, high in formula.decades.values():
            size = 10 ** rng.uniform(low, high)
            point.append(-size if formula.signs == "±" and rng.random() < 0.5 else size)
        if formula.holds(*point):
            found.append(point)
    return found


@cache
def derivatives(name: str, order: int) -> list[sp.Expr]:
    """The value, or all partial derivatives of an order, as SymPy finds them."""
    formula = FORMULAS[name]
    found = [formula.value]
    for _ in range(order):
        found = [sp.diff(f, s) for f in found for s in formula.decades]
    return found


@cache
def references(name: str, order: int) -> list[list[Any]]:
    """The values with 120 digits; by points."""
    made = [sp.lambdify(list(FORMULAS[name].decades), f, "mpmath") for f in derivatives(name, order)]
    with mpmath.workdps(DIGITS + 700):  # exp(-1000) beside 1
        return [[_real(f, point) for f in made] for point in points_of(name)]


def _real(f: Callable[..., Any], point: Sequence[float]) -> Any:
    try:
        value = mpmath.mpmathify(f(*map(mpmath.mpf, point)))
    except ZeroDivisionError:
        return None
    return value if isinstance(value, mpmath.mpf) else None


def lost(made: float, right: Any) -> float | None:
    """The bits lost; None where the reference is no normal number."""
    if right is None or not 2.3e-308 < abs(right) < 1.7e308:
        return None
    if not math.isfinite(made):
        return BITS
    error = abs((mpmath.mpf(made) - right) / right)
    return 0.0 if error == 0 else min(max(float(mpmath.log(error, 2)) + BITS, 0.0), BITS)


Code = Callable[..., Any]


def sympy_code(name: str, order: int) -> Code:
    """`diff` and `lambdify` with common subexpressions."""
    formula = FORMULAS[name]
    return sp.lambdify(list(formula.decades), derivatives(name, order), "numpy", cse=True)


def symad_code(name: str, order: int, backend: str = "numpy", boxes: bool = False) -> Code:
    """What `lower` makes of the function, its gradient or its Hessian."""
    formula, inputs = FORMULAS[name], list(FORMULAS[name].decades)
    graph = symad.trace(formula.value, inputs)
    if order:
        graph = (symad.gradient if order == 1 else symad.hessian)(graph, inputs)

    @cache
    def kernel(*negative: bool) -> Code:
        sides = [[10.0**low, 10.0**high] for low, high in formula.decades.values()]
        signed = [(-b, -a) if minus else (a, b) for (a, b), minus in zip(sides, negative, strict=True)]
        return lower(graph, backend, box=dict(zip(inputs, signed, strict=True)) if boxes else None)

    def values(*point: float) -> np.ndarray:
        found = kernel(*(v < 0 if boxes else False for v in point))(*point)
        return np.ravel(np.hstack([np.ravel(v) for v in np.atleast_1d(found)]))

    return values


def table(code: Callable[[str, int], Code], names: Sequence[str]) -> dict[str, list[list[float]]]:
    """For each formula the bits lost at each point, by orders."""
    return {name: [points_lost(code(name, k), name, k) for k in range(3)] for name in names}


def points_lost(code: Code, name: str, order: int) -> list[float]:
    """The bits lost at each point, the mean of the entries."""
    found = []
    for point, right in zip(points_of(name), references(name, order), strict=True):
        with np.errstate(all="ignore"):
            made = np.ravel(code(*map(np.float64, point)))
        bits = [b for b in (lost(float(v), r) for v, r in zip(made, right, strict=True)) if b is not None]
        if bits:
            found.append(sum(bits) / len(bits))
    return found


def _summary(rows: dict[str, list[list[float]]], order: int) -> str:
    means = [float(np.mean(r[order])) for r in rows.values() if r[order]]
    worst = [max(r[order]) for r in rows.values() if r[order]]
    return f"{np.mean(means):5.1f} / {np.mean(worst):4.1f} / {sum(m < 1 for m in means):2d}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--formula", choices=FORMULAS, action="append")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--box", action="store_true", help="tell symad where the inputs lie")
    parser.add_argument("--rows", action="store_true", help="a row for each formula")
    given = parser.parse_args()
    names = given.formula or list(FORMULAS)
    mpmath.mp.dps = DIGITS
    made = {
        "SymPy diff + lambdify": table(sympy_code, names),
        "symad": table(lambda name, k: symad_code(name, k, given.backend, given.box), names),
    }
    if given.rows or given.formula:
        print(f"{'bits lost, means':12s}" + "".join(f"{who:>26s}" for who in made))
        for name in names:
            cells = [" ".join(f"{np.mean(r[name][k]):7.1f}" for k in range(3)) for r in made.values()]
            print(f"{name:14s}" + "".join(f"{cell:>26s}" for cell in cells))
        print()
    print(f"{'mean / worst / below 1':24s}" + "".join(f"{w:>22s}" for w in ("value", "1st", "2nd")))
    for who, rows in made.items():
        print(f"{who:24s}" + "".join(f"{_summary(rows, k):>22s}" for k in range(3)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
