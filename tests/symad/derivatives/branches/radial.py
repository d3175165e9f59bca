"""Functions of a norm or of an absolute value with their Taylor coefficients at 0, in many spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any

import mpmath
import numpy as np
import sympy as sp

import symad

t = sp.Symbol("t", real=True)
ORDERS = 6

s3, s5, s7 = map(sp.sqrt, (3, 5, 7))
FACTORS = (
    t**2,
    t**3,
    t**4,
    t**6,
    sp.exp(-(t**2)),
    sp.exp(-t),
    sp.cos(t),
    sp.cosh(t),
    sp.log(1 + t**2),
    1 / (1 + t**2 / 2),
    sp.sqrt(1 + t**2),
    t * sp.sin(t),
    1 + s3 * t,
    (1 + s5 * t + 5 * t**2 / 3) * sp.exp(-s5 * t),
    (1 + s7 * t + 14 * t**2 / 5 + 7 * s7 * t**3 / 15) * sp.exp(-s7 * t),
    2 + t**4,
)

SPELLINGS: dict[str, Callable[[Any], Any]] = {
    "norm": lambda u: np.linalg.norm(u),
    "root of squares": lambda u: np.sqrt(np.sum(u**2)),
    "root of a product": lambda u: np.sqrt(u @ u),
    "root of terms": lambda u: np.sqrt(sum(u[i] * u[i] for i in range(u.shape[0]))),
    "norms of rows": lambda u: np.linalg.norm(u.reshape(1, -1), axis=1),
}
SIZES: dict[str, Callable[[Any], Any]] = {
    "absolute value": lambda u: np.abs(u[0]),
    "root of a square": lambda u: np.sqrt(u[0] ** 2),
}


@dataclass(frozen=True)
class Case:
    """f(u) = F(‖u‖), with ‖u‖² spelled in another way where F has even powers."""

    function: sp.Expr
    size: int
    norm: str
    square: str

    def graph(self) -> symad.Graph:
        """The function as a user writes it."""
        F = sp.lambdify(t, self.function, "numpy")
        even = sp.Symbol("even")
        G = sp.lambdify((t, even), self.function.subs(t**2, even).subs(t**4, even**2), "numpy")

        def f(u: Any) -> Any:
            r = (SPELLINGS | SIZES)[self.norm](u)
            square = u @ u if self.square == "product" else np.sum(u * u)
            return np.sum(F(r) if self.square == "none" else G(r, square))

        return symad.trace(f, [(self.size,)])


def coefficients(function: sp.Expr) -> list[mpmath.mpf]:
    """F(0), F'(0), …, F^(6)(0) to 50 digits."""
    with mpmath.workdps(50):
        return [mpmath.mpf(sp.N(sp.diff(function, t, k).subs(t, 0), 50)) for k in range(ORDERS + 1)]


def along(function: sp.Expr, line: list[int]) -> list[tuple[float, bool]]:
    """The derivatives of s ↦ F(‖s v‖) of orders 1 to 6, and whether they exist.

    Where one does not, that of |u| counts, whose slope at 0 is 0.
    """
    length = mpmath.sqrt(sum(v * v for v in line))
    found, exists = list[tuple[float, bool]](), True
    for k, value in enumerate(coefficients(function)):
        exists = exists and (k % 2 == 0 or abs(value) < mpmath.mpf(10) ** -40)
        found.append((float(value * length**k) if k % 2 == 0 else 0.0, exists))
    return found[1:]


def cases(count: int, seed: int) -> list[Case]:
    """Random products and sums of two functions."""
    random, made = Random(seed), list[Case]()
    while len(made) < count:
        a, b = random.choice(FACTORS), random.choice(FACTORS)
        function = random.choice((a * b, a + b, a))
        size = random.choice((1, 2, 3))
        norm = random.choice([*SPELLINGS, *(SIZES if size == 1 else ())])
        made.append(Case(function, size, norm, random.choice(("none", "product", "sum"))))
    return made


def nested(case: Case, line: list[int], orders: int, turns: Sequence[str]) -> list[float]:
    """The derivatives of s ↦ f(s v) at 0, by modes in turn."""
    f = case.graph()
    g = symad.trace(lambda s: f(s * np.array(line, float)), [()])
    found = []
    for _, turn in zip(range(orders), cycle(turns), strict=False):
        if turn == "forward":
            h = symad.pushforward(g)
            g = symad.trace(lambda s, h=h: h(s, 1.0)[1], [()])
        else:
            h = symad.gradient(g)
            g = symad.trace(lambda s, h=h: h(s), [()])
        found.append(float(g(0.0)))
    return found
