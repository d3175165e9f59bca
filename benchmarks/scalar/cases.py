"""The scalar benchmark functions, each as SymPy mathematics.

Every case is a pair (expression, symbols). Expressions are built with ``sympy.evaluate(False)`` if that keeps
the sharing and the order of operations as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

Case = tuple[Any, list[sp.Symbol]]


def rosenbrock(n: int) -> Case:
    """Chained Rosenbrock: Σ 100(x_{i+1} − x_i²)² + (1 − x_i)²."""
    x = list(sp.symbols(f"x0:{n}", real=True))
    with sp.evaluate(False):
        terms = [100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n - 1)]
        return sp.Add(*terms), x


def speelpenning(n: int) -> Case:
    """The product of n variables."""
    x = list(sp.symbols(f"x0:{n}", real=True))
    with sp.evaluate(False):
        return sp.Mul(*x), x


def arm() -> Case:
    """Distance and pose error of a robot arm with six joints, by Denavit-Hartenberg matrices."""
    alpha = (1.5708, 0.3, 1.2, -1.4, 1.1, 0.2)
    d = (0.4, 0.1, 0.15, 0.35, 0.05, 0.12)
    a = (0.05, 0.45, 0.04, 0.1, 0.02, 0.03)
    q = list(sp.symbols("q1:7", real=True))
    with sp.evaluate(False):
        t: list[list[Any]] = [[sp.Integer(int(i == j)) for j in range(4)] for i in range(4)]
        for k in range(6):
            s, c = sp.sin(q[k]), sp.cos(q[k])
            sa, ca = float(np.sin(alpha[k])), float(np.cos(alpha[k]))
            joint = [
                [c, -s * ca, s * sa, a[k] * c],
                [s, c * ca, -c * sa, a[k] * s],
                [sp.Integer(0), sp.Float(sa), sp.Float(ca), sp.Float(d[k])],
                [sp.Integer(0), sp.Integer(0), sp.Integer(0), sp.Integer(1)],
            ]
            t = [[_dot(row, [joint[m][j] for m in range(4)]) for j in range(4)] for row in t]
        p = [t[i][3] for i in range(3)]
        target = (0.3, 0.5, 0.6)
        distance = sum(((p[i] - target[i]) ** 2 for i in range(3)), sp.Integer(0))
        pose = (t[0][0] - 1) ** 2 + t[1][0] ** 2 + t[2][2] ** 2
        return sp.sqrt(distance + 0.1 * pose), q


def _dot(row: list[Any], column: list[Any]) -> Any:
    """A scalar product without the terms that are zero by structure."""
    terms = []
    for u, v in zip(row, column, strict=True):
        if u == 0 or v == 0:
            continue
        terms.append(v if u == 1 else u if v == 1 else u * v)
    return terms[0] if len(terms) == 1 else sp.Add(*terms) if terms else sp.Integer(0)


def lstm(steps: int = 8, hidden: int = 4, inputs: int = 2) -> Case:
    """The squared error of an unrolled LSTM with scalar weights."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(steps, inputs)).round(3)
    weights: list[sp.Symbol] = []

    def weight(name: str) -> sp.Symbol:
        weights.append(sp.Symbol(name, real=True))
        return weights[-1]

    with sp.evaluate(False):
        w = {
            gate: [
                [weight(f"w{gate}{i}_{j}") for j in range(hidden + inputs)] for i in range(hidden)
            ]
            for gate in "ifgo"
        }
        b = {gate: [weight(f"b{gate}{i}") for i in range(hidden)] for gate in "ifgo"}
        v, c0 = [weight(f"v{i}") for i in range(hidden)], weight("c0")
        h: list[Any] = [sp.Integer(0)] * hidden
        c: list[Any] = [sp.Integer(0)] * hidden
        for row in data:
            state = [*h, *map(sp.Float, row)]

            def gate(name: str, i: int, state: list[Any] = state) -> Any:
                terms = [w[name][i][j] * state[j] for j in range(len(state)) if state[j] != 0]
                z = sp.Add(*terms, b[name][i])
                return sp.tanh(z) if name == "g" else 1 / (1 + sp.exp(-z))

            gates = {name: [gate(name, i) for i in range(hidden)] for name in "ifgo"}
            c = [
                gates["i"][i] * gates["g"][i]
                if c[i] == 0
                else gates["f"][i] * c[i] + gates["i"][i] * gates["g"][i]
                for i in range(hidden)
            ]
            h = [gates["o"][i] * sp.tanh(c[i]) for i in range(hidden)]
        return (sp.Add(*[v[i] * h[i] for i in range(hidden)], c0) - sp.Float(0.7)) ** 2, weights


def mlp() -> Case:
    """The mean squared loss of a 6-8-8-1 network on eight fixed samples, 137 scalar weights."""
    rng = np.random.default_rng(1)
    samples, targets = rng.normal(size=(8, 6)).round(3), rng.normal(size=8).round(3)
    weights: list[sp.Symbol] = []

    def layer(name: str, rows: int, columns: int) -> tuple[list[list[sp.Symbol]], list[sp.Symbol]]:
        w = [[sp.Symbol(f"{name}{i}_{j}", real=True) for j in range(columns)] for i in range(rows)]
        b = [sp.Symbol(f"{name}b{i}", real=True) for i in range(rows)]
        weights.extend([s for row in w for s in row] + b)
        return w, b

    first, second, third = layer("u", 8, 6), layer("v", 8, 8), layer("w", 1, 8)
    with sp.evaluate(False):
        losses = []
        for sample, target in zip(samples, targets, strict=True):
            state: list[Any] = [sp.Float(s) for s in sample]
            for (w, b), squash in ((first, True), (second, True), (third, False)):
                z = [
                    sp.Add(*[w[i][j] * state[j] for j in range(len(state))], b[i])
                    for i in range(len(b))
                ]
                state = [sp.tanh(value) for value in z] if squash else z
            losses.append((state[0] - sp.Float(target)) ** 2)
        return sp.Add(*losses) / 8, weights


def shared(depth: int) -> Case:
    """f ← sin(f)·f + f, repeated: a tree of 3^depth operations in 3·depth nodes."""
    x = sp.Symbol("x", real=True)
    f: Any = x
    for _ in range(depth):
        f = sp.sin(f) * f + f
    return f, [x]


def recurrence(steps: int) -> Case:
    """u, v ← sin(u)v + u/2, cos(u)v − v/3: millions of tree operations, a few nodes a step."""
    x, y = sp.symbols("x y", real=True)
    u: Any = x
    v: Any = y
    with sp.evaluate(False):
        for _ in range(steps):
            u, v = sp.sin(u) * v + u / 2, sp.cos(u) * v - v / 3
    return u + v, [x, y]


def chain(depth: int) -> Case:
    """f ← sin(f) + 1 without evaluation: its depth equals its length."""
    x = sp.Symbol("x", real=True)
    f: Any = x
    with sp.evaluate(False):
        for _ in range(depth):
            f = sp.Add(sp.sin(f, evaluate=False), 1, evaluate=False)
    return f, [x]


def pendulum(n: int) -> tuple[sp.Matrix, list[sp.Symbol]]:
    """The forcing vector of n links on a cart, with functions of time replaced by Symbols.

    It comes from SymPy's mechanics, and is differentiated with respect to coordinates and speeds.
    """
    from sympy.physics.mechanics import find_dynamicsymbols
    from sympy.physics.mechanics.models import n_link_pendulum_on_cart

    kane = n_link_pendulum_on_cart(n, cart_force=True, joint_torques=False)
    forcing = kane.forcing_full
    states = [*kane.q, *kane.u]
    names = {s: sp.Symbol(str(s.func), real=True) for s in states}
    for other in find_dynamicsymbols(forcing):
        names.setdefault(other, sp.Symbol(str(other.func), real=True))
    return forcing.xreplace(names), [names[s] for s in states]


CASES: dict[str, Callable[[], Case]] = {
    "rosenbrock 10": lambda: rosenbrock(10),
    "rosenbrock 100": lambda: rosenbrock(100),
    "rosenbrock 1000": lambda: rosenbrock(1000),
    "speelpenning 100": lambda: speelpenning(100),
    "speelpenning 300": lambda: speelpenning(300),
    "mlp": mlp,
    "arm": arm,
    "lstm": lstm,
}
