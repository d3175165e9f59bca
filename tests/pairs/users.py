"""Families S10, S11: derivative rules of users, and programs that are wrong in a small region.

A user's function has the values of a known function; its rule is SymPy's derivative of that function, or a
wrong one. A program has the derivative of a formula everywhere except near one point: a verdict "measured" is
allowed for it, and "certified" never.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import sympy as sp

import symad
from tests.pairs.pair import Pair

x, y = sp.symbols("x y", real=True)


def function_of_a_user(known: Any, slope: Any) -> Any:
    """A SymPy function with the values of one expression in x, and another expression as its derivative."""

    def fdiff(self: Any, argindex: int = 1) -> Any:
        return slope.subs(x, self.args[0])

    def evalf(self: Any, prec: int) -> Any:
        return known.subs(x, self.args[0])._eval_evalf(prec)

    return type("given", (sp.Function,), {"fdiff": fdiff, "_eval_evalf": evalf, "__module__": __name__})


def rules(rng: random.Random) -> Pair | None:
    """The derivatives of a formula with a user's function, whose rule is right or wrong."""
    known = rng.choice([sp.exp(x), sp.sin(x), sp.atan(x), x**3 + x, sp.tanh(2 * x), sp.exp(-(x**2))])
    right = sp.diff(known, x)
    far = sp.Piecewise((0, x < rng.choice([1, 5, 30])), (1, True))
    wrong = rng.choice([-right, 2 * right, right + sp.Rational(1, 10**6), right * (1 + x / 100), right + far])
    equal = rng.random() < 0.4
    made = function_of_a_user(known, right if equal else wrong)
    f = rng.choice([made(x), made(x) * y, sp.exp(y) * made(x) ** 2, made(x) + made(y)])
    text = f"{known} with the rule {right if equal else wrong}, in {f}"
    return Pair("S10 rules of users", f, None, equal, text, ask=lambda pair, seed: symad.check(f, seed=seed))


def programs(rng: random.Random) -> Pair | None:
    """The derivative of a formula as a program that is wrong near one point: sampling cannot certify it."""
    f, values, slope = rng.choice([
        (x**2, lambda v: v * v, lambda v: 2 * v), (x**3 - x, lambda v: v**3 - v, lambda v: 3 * v * v - 1),
        (x**2 / 2 + 3 * x, lambda v: v * v / 2 + 3 * v, lambda v: v + 3),
    ])  # fmt: skip
    place, width = rng.uniform(-60, 60), rng.choice([1e-2, 1e-3])
    kind = rng.choice(["gradient", "vjp", "jvp", "value"])

    def off(v: Any) -> Any:
        return (values(v) if kind == "value" else slope(v)) + (abs(v - place) < width)

    given: dict[str, Callable[..., Any]] = {
        "gradient": off, "value": off, "vjp": lambda v, bar: off(v) * bar, "jvp": lambda v, dot: off(v) * dot
    }  # fmt: skip
    text = f"the {kind} of {f}, off by 1 within {width} of {place}"

    def ask(pair: Pair, seed: int) -> Any:
        return symad.verify(f, x, **{kind: given[kind]}, hostile=False, seed=seed)

    return Pair("S11 programs", f, None, False, text, ask=ask)
