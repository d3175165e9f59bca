"""Mutation testing of the verifier: it must refute wrong derivatives, and must not refute right ones.

The derivatives of many expressions are taken by SymPy and mutated at random places in more than twenty ways.
Whether a mutant really differs is determined without symad: mpmath evaluates both formulas at random real
points to 50 digits. Then `symad.verify` judges the mutant.

Usage: python benchmarks/verification/mutation_testing.py [--expressions 260] [--mutants 6] [--seed 0]
Exits 1 if a mutant that differs is not refuted, or a formula that does not differ is refuted.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpmath
import sympy as sp
from sympy.core.relational import Relational

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import symad  # noqa: E402
from tests.known.scalar_functions import FUNCTIONS  # noqa: E402

x, y, z = sp.symbols("x y z", real=True)
p, q = sp.symbols("p q", positive=True)

# ---- expressions --------------------------------------------------------------------------------


def expressions(count: int, rng: random.Random) -> list[tuple[Any, Any]]:
    """Pairs of an expression and a variable: published ones, then random compositions."""
    found = []
    for case in FUNCTIONS:
        found.extend((case.expression, v) for v in (case.wrt if isinstance(case.wrt, list) else [case.wrt]))
    while len(found) < count:
        expression = random_expression(rng, rng.randrange(2, 5))
        if symbols := sorted(expression.free_symbols, key=str):
            found.append((expression, rng.choice(symbols)))
    return found[:count]


def random_expression(rng: random.Random, depth: int) -> Any:
    """A random composition that is real on an open set."""
    if depth == 0:
        return rng.choice([x, y, z, p, q, sp.Integer(2), sp.Integer(3), sp.Rational(1, 2)])
    a, b = random_expression(rng, depth - 1), random_expression(rng, rng.randrange(depth))
    return rng.choice(
        [
            lambda: a + b, lambda: a * b, lambda: a - b, lambda: a / (1 + b**2), lambda: sp.sin(a),
            lambda: sp.cos(a + b), lambda: sp.exp(-(a**2)), lambda: sp.tanh(a), lambda: sp.log(1 + a**2),
            lambda: sp.sqrt(1 + a**2), lambda: sp.atan(a), lambda: a**2 * b, lambda: sp.exp(a) * b,
            lambda: sp.erf(a), lambda: sp.asinh(a) + b, lambda: sp.Max(a, b), lambda: sp.Abs(a) * b,
        ]
    )()  # fmt: skip


# ---- mutations ----------------------------------------------------------------------------------

Edit = Callable[[Any, random.Random], Any]
"""Changes a subexpression; returns None if the edit does not apply."""

SWAPS = {
    sp.sin: sp.cos, sp.cos: sp.sin, sp.tanh: sp.sinh, sp.sinh: sp.cosh, sp.cosh: sp.sinh, sp.exp: sp.sinh,
    sp.log: sp.asinh, sp.atan: sp.asinh, sp.asinh: sp.atan, sp.erf: sp.tanh, sp.tan: sp.sin, sp.Abs: sp.sign,
    sp.sign: sp.Abs, sp.sec: sp.tan, sp.Heaviside: sp.sign, sp.gamma: sp.digamma, sp.Max: sp.Min,
    sp.Min: sp.Max, sp.cot: sp.csc, sp.csc: sp.cot, sp.sech: sp.tanh, sp.coth: sp.csch, sp.erfc: sp.erf,
}  # fmt: skip


def _number(e: Any) -> bool:
    return isinstance(e, sp.Rational) and e != 0


def _without(e: Any, rng: random.Random) -> list[Any]:
    args = list(e.args)
    args.pop(rng.randrange(len(args)))
    return args


def flip_term(e: Any, rng: random.Random) -> Any:
    if not e.is_Add:
        return None
    args = list(e.args)
    k = rng.randrange(len(args))
    return sp.Add(*args[:k], -args[k], *args[k + 1 :])


def drop_term(e: Any, rng: random.Random) -> Any:
    return sp.Add(*_without(e, rng)) if e.is_Add else None


def repeat_term(e: Any, rng: random.Random) -> Any:
    return e + rng.choice(e.args) if e.is_Add else None


def drop_factor(e: Any, rng: random.Random) -> Any:
    return sp.Mul(*_without(e, rng)) if e.is_Mul else None


def repeat_factor(e: Any, rng: random.Random) -> Any:
    return e * rng.choice(e.args) if e.is_Mul else None


def invert_factor(e: Any, rng: random.Random) -> Any:
    return e / rng.choice(e.args) ** 2 if e.is_Mul else None


def sum_for_product(e: Any, rng: random.Random) -> Any:
    return sp.Add(*e.args) if e.is_Mul else None


def product_for_sum(e: Any, rng: random.Random) -> Any:
    return sp.Mul(*e.args) if e.is_Add else None


def number_plus_one(e: Any, rng: random.Random) -> Any:
    return e + 1 if _number(e) else None


def number_doubled(e: Any, rng: random.Random) -> Any:
    return 2 * e if _number(e) else None


def number_negated(e: Any, rng: random.Random) -> Any:
    return -e if _number(e) else None


def number_slightly_off(e: Any, rng: random.Random) -> Any:
    return e * (1 + sp.Rational(1, 10**12)) if _number(e) else None


def exponent_plus_one(e: Any, rng: random.Random) -> Any:
    return e.base ** (e.exp + 1) if e.is_Pow else None


def exponent_minus_one(e: Any, rng: random.Random) -> Any:
    return e.base ** (e.exp - 1) if e.is_Pow else None


def exponent_negated(e: Any, rng: random.Random) -> Any:
    return e.base**-e.exp if e.is_Pow else None


def power_dropped(e: Any, rng: random.Random) -> Any:
    return e.base if e.is_Pow else None


def function_swapped(e: Any, rng: random.Random) -> Any:
    if e.func not in SWAPS:
        return None
    return SWAPS[e.func](*(e.args if e.func in (sp.Max, sp.Min) else e.args[:1]))


def function_dropped(e: Any, rng: random.Random) -> Any:
    return e.args[0] if isinstance(e, sp.Function) and len(e.args) == 1 else None


def argument_negated(e: Any, rng: random.Random) -> Any:
    return e.func(-e.args[0]) if isinstance(e, sp.Function) and len(e.args) == 1 else None


def argument_doubled(e: Any, rng: random.Random) -> Any:
    return e.func(2 * e.args[0]) if isinstance(e, sp.Function) and len(e.args) == 1 else None


def argument_shifted(e: Any, rng: random.Random) -> Any:
    shift = sp.Rational(1, 10**8)
    return e.func(e.args[0] + shift) if isinstance(e, sp.Function) and len(e.args) == 1 else None


def variable_replaced(e: Any, rng: random.Random) -> Any:
    return rng.choice([s for s in (x, y, z, p, q) if s != e]) if e.is_Symbol else None


def variable_scaled(e: Any, rng: random.Random) -> Any:
    return 2 * e if e.is_Symbol else None


def relation_turned(e: Any, rng: random.Random) -> Any:
    return e.negated if isinstance(e, Relational) else None


def branches_swapped(e: Any, rng: random.Random) -> Any:
    if not isinstance(e, sp.Piecewise) or len(e.args) != 2:
        return None
    (a, condition), (b, rest) = (pair.args for pair in e.args)
    return sp.Piecewise((b, condition), (a, rest))


def pi_rounded(e: Any, rng: random.Random) -> Any:
    return sp.Rational("3.14159265358979") if e is sp.pi else None


def differentiated_again(e: Any, rng: random.Random) -> Any:
    if not isinstance(e, sp.Function) or not e.free_symbols:
        return None
    made = e.diff(rng.choice(sorted(e.free_symbols, key=str)))
    return None if made.has(sp.Derivative, sp.Subs, sp.DiracDelta) else made


MUTATIONS: tuple[Edit, ...] = (
    flip_term, drop_term, repeat_term, drop_factor, repeat_factor, invert_factor, sum_for_product,
    product_for_sum, number_plus_one, number_doubled, number_negated, number_slightly_off, exponent_plus_one,
    exponent_minus_one, exponent_negated, power_dropped, function_swapped, function_dropped, argument_negated,
    argument_doubled, argument_shifted, variable_replaced, variable_scaled, relation_turned, branches_swapped,
    pi_rounded, differentiated_again,
)  # fmt: skip


def places(e: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """All subexpressions with their paths."""
    stack: list[tuple[tuple[int, ...], Any]] = [((), e)]
    while stack:
        path, part = stack.pop()
        yield path, part
        stack.extend(((*path, k), a) for k, a in enumerate(part.args))


def replaced(e: Any, path: tuple[int, ...], new: Any) -> Any:
    """The expression with the part at a path replaced."""
    if not path:
        return new
    args = list(e.args)
    args[path[0]] = replaced(args[path[0]], path[1:], new)
    return e.func(*args)


def mutant(e: Any, edit: Edit, rng: random.Random) -> Any:
    """The expression with one edit at a random place where it applies; None if there is none."""
    found = [(path, edit(part, rng)) for path, part in places(e)]
    found = [(path, new) for path, new in found if new is not None]
    if not found:
        return None
    try:
        made = replaced(e, *rng.choice(found))
    except (TypeError, ValueError):
        return None
    unusable = made.has(sp.zoo, sp.nan, sp.oo, sp.I) or not isinstance(made, sp.Expr)
    return None if unusable or made == e else made


# ---- do they differ? (without symad) --------------------------------------------------------------


BRANCHES = (sp.Max, sp.Min, sp.Abs, sp.sign, sp.Heaviside, sp.Piecewise)
"""Expressions with these functions may differ in a small region only, so that more points are needed."""


def differ(a: Any, b: Any, rng: random.Random) -> bool | None:
    """Whether two expressions differ by more than 1e-30 at some random point; None if no point is usable."""
    symbols, functions = _functions(a, b)
    usable, wanted = 0, 600 if a.has(*BRANCHES) or b.has(*BRANCHES) else 12
    with mpmath.workdps(50):
        for _ in range(5 * wanted):
            point = [_coordinate(s, rng) for s in symbols]
            try:
                u, v = (mpmath.mpmathify(f(*point)) for f in functions)
            except (ValueError, ZeroDivisionError, TypeError, OverflowError, mpmath.libmp.NoConvergence):
                continue
            if any((isinstance(w, mpmath.mpc) and w.imag != 0) or not mpmath.isfinite(w) for w in (u, v)):
                continue
            usable += 1
            if abs(u - v) > mpmath.mpf(10) ** -30 * max(abs(u), abs(v)):
                return True
            if usable >= wanted:
                break
    return False if usable else None


def differ_at(a: Any, b: Any, point: dict[str, str]) -> bool:
    """Whether two expressions differ at a point that somebody names: in a region too small for `differ`."""
    symbols, functions = _functions(a, b)
    with mpmath.workdps(50):
        at = [mpmath.mpf(sp.Rational(point[str(s)]).p) / sp.Rational(point[str(s)]).q for s in symbols]
        u, v = (mpmath.mpmathify(f(*at)) for f in functions)
        return bool(abs(u - v) > mpmath.mpf(10) ** -30 * max(abs(u), abs(v)))


def _functions(a: Any, b: Any) -> tuple[list[Any], list[Any]]:
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    return symbols, [sp.lambdify(symbols, e, modules=["mpmath", EXTRA]) for e in (a, b)]


EXTRA = {
    "Heaviside": lambda u, h=0.5: mpmath.mpf(u > 0),
    "loggamma": mpmath.loggamma,
    "sinc": mpmath.sinc,
    "airyai": mpmath.airyai,
    "airyaiprime": lambda u: mpmath.airyai(u, derivative=1),
    "LambertW": mpmath.lambertw,
    "polygamma": mpmath.psi,
    "expint": mpmath.expint,
}
"""Functions that SymPy does not translate to mpmath."""


def _coordinate(symbol: Any, rng: random.Random) -> Any:
    """A random real number, which is a tie only by accident."""
    if symbol.is_integer:
        return mpmath.mpf(rng.randrange(1, 9))
    value = mpmath.mpf(rng.random()) * rng.choice([1, 3, 15])
    return value if symbol.is_positive or rng.random() < 0.5 else -value


# ---- the run ------------------------------------------------------------------------------------


@dataclass
class Tally:
    """The counts of verdicts."""

    originals: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)
    equivalent: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    without_point: int = 0
    faults: list[str] = field(default_factory=list)

    def count(self, text: str, kind: str, status: str, differs: bool) -> None:
        """Count one mutant."""
        self.kinds[kind] += 1
        (self.different if differs else self.equivalent)[status] += 1
        if differs and status != "refuted":
            self.faults.append(f"{kind}: {text} differs, but is {status}")
        if not differs and status == "refuted":
            self.faults.append(f"{kind}: {text} does not differ, but is refuted")


def run(count: int, mutants: int, seed: int) -> Tally:
    """Mutate the derivatives of ``count`` expressions, ``mutants`` times each."""
    rng = random.Random(seed)
    tally = Tally()
    for number, (expression, variable) in enumerate(expressions(count, rng)):
        derivative = expression.diff(variable)
        if derivative.has(sp.Derivative, sp.Subs, sp.DiracDelta):
            continue
        tally.originals[_verdict(expression, variable, derivative, seed).status] += 1
        edits = [MUTATIONS[(number * mutants + k) % len(MUTATIONS)] for k in range(3 * mutants)]
        made = 0
        for edit in edits:
            changed = mutant(derivative, edit, rng)
            if changed is None or made == mutants:
                continue
            made += 1
            differs = differ(derivative, changed, rng)
            if differs is None:
                tally.without_point += 1
                continue
            verdict = _verdict(expression, variable, changed, seed)
            status = verdict.status
            if status == "refuted" and not differs:
                differs = differ_at(derivative, changed, verdict.witness.point)
            tally.count(f"d/d{variable} {expression} = {changed}", edit.__name__, status, differs)
    return tally


def _verdict(expression: Any, variable: Any, candidate: Any, seed: int) -> Any:
    symbols = {variable} | expression.free_symbols | candidate.free_symbols  # a mutant may have more of them
    inputs = sorted(symbols, key=str)
    return symad.verify(expression, variable, gradient=candidate, inputs=inputs, seed=seed)


def main() -> int:
    """Run the test and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--expressions", type=int, default=260)
    parser.add_argument("--mutants", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    tally = run(options.expressions, options.mutants, options.seed)
    total = sum(tally.different.values())
    print(f"{sum(tally.originals.values())} right derivatives: {dict(tally.originals)}")
    print(f"{len(tally.kinds)} kinds of mutations")
    print(f"{total} mutants that differ: {dict(tally.different)}")
    print(f"{sum(tally.equivalent.values())} mutants that do not differ: {dict(tally.equivalent)}")
    if tally.without_point:
        print(f"{tally.without_point} mutants have no real value where the original has one; left out")
    refuted = tally.different["refuted"] / total if total else 1.0
    wrong = tally.originals["refuted"] + tally.equivalent["refuted"]
    print(f"refuted of those that differ: {100 * refuted:.2f} %; right ones refuted: {wrong}")
    print(f"{time.perf_counter() - start:.1f} s, seed {options.seed}")
    for fault in tally.faults:
        print("FAULT", fault)
    return 1 if tally.faults or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
