"""Programs with a branch that is undefined, or has an infinite slope, where it is not taken.

A program comes with points and, for each, the expression that is used there alone. References are SymPy's
derivatives of that expression, in 30 digits.
"""

import random
from dataclasses import dataclass

import numpy as np
import sympy as sp

x, y = X = sp.symbols("x y", real=True)


@dataclass(frozen=True)
class Program:
    """``f``, and what is used of it at each point."""

    f: sp.Expr
    used: tuple[tuple[tuple[float, float], sp.Expr], ...]

    def right(self, point, expression):
        """Value, gradient (2,) and Hessian (2, 2) of what is used, at a point."""
        at = dict(zip(X, map(sp.Rational, point), strict=True))

        def number(e):
            return float(sp.N(e.subs(at), 30))

        gradient = [expression.diff(v) for v in X]
        hessian = [[number(g.diff(v)) for v in X] for g in gradient]
        return number(expression), np.array([number(g) for g in gradient]), np.array(hessian)


def program(seed: int) -> Program:
    """A random program of one of the kinds below."""
    rng = random.Random(seed)
    at = (rng.choice([-1.5, -0.5, 0.25, 1.0]), rng.choice([-0.75, 0.5, 1.25]))
    return KINDS[seed % len(KINDS)](rng, at)


def safe(rng):
    """A smooth function of x and y."""
    a, b = rng.choice([x, y, x * y, x + y]), rng.choice([x, y, x - y])
    return rng.choice([sp.sin(a) + b**2, sp.exp(a / 4) * b, a * b + 1, sp.cos(a) * sp.sin(b), sp.atan(a) + b])


def distance(rng, at):
    """A function that is 0 at a point, positive on one side of it, with its value."""
    u = x - sp.Rational(at[0])
    v = y - sp.Rational(at[1])
    return rng.choice([u, u + v, u * rng.choice([2, 3]), u + u * v])


def partial(rng, w):
    """A function of w whose slope is infinite at w = 0 (and which may have no value for w < 0)."""
    root = rng.choice([sp.sqrt(w), w ** sp.Rational(1, 3), sp.log(w), 1 / w, sp.sqrt(w) * sp.log(w)])
    return wrapped(rng, root)


def wrapped(rng, inner):
    """A smooth function of an inner node, used once or twice."""
    return rng.choice([inner, sp.exp(-inner), inner * safe(rng), sp.sin(inner) + inner, inner**2 + y])


def shared(rng, at):
    """The condition and the branch use one node: sqrt(w) > 0, exp(log(w)/2 + 5/2) > 1, ..."""
    w = distance(rng, at)
    node, bound = rng.choice([(sp.sqrt(w), 0), (sp.log(w), -5), (w ** sp.Rational(1, 3), sp.Rational(1, 9))])
    condition = rng.choice([node > bound, sp.exp((node - bound) / 2) > 1, node + 2 * w**2 > bound + 2 * w**2])
    other = safe(rng)
    return Program(sp.Piecewise((wrapped(rng, node), condition), (other, True)), ((at, other),))


def guarded(rng, at):
    """The condition is one on w; both branches are used at different points."""
    w = distance(rng, at)
    branch, other = partial(rng, w), safe(rng)
    f = sp.Piecewise((branch, w > 0), (other, True)) * rng.choice([1, safe(rng)])
    factor = f.args[0] if f.is_Mul and not f.args[0].has(sp.Piecewise) else 1
    factor = sp.Mul(*[a for a in f.args if not a.has(sp.Piecewise)]) if f.is_Mul else factor
    there = (at[0] + 1, at[1])
    return Program(f, ((at, other * factor), (there, branch * factor)))


def nested(rng, at):
    """A branch of a branch."""
    w = distance(rng, at)
    inner = sp.Piecewise((partial(rng, w), w > sp.Rational(1, 2)), (safe(rng) / w, w > 0), (safe(rng), True))
    other = safe(rng)
    return Program(sp.Piecewise((inner, sp.sqrt(w) > 0), (other, True)) + y, ((at, other + y),))


def extreme(rng, at):
    """An extreme or a clip that does not attain a node with an infinite slope."""
    w, scale = distance(rng, at), rng.choice([1, 2])
    above = sp.exp(safe(rng) / 8) + 1
    f, used = rng.choice(
        [
            (sp.Max(sp.sqrt(w), above), above),
            (sp.Max(scale * sp.log(w), -above), -above),
            (sp.Min(-sp.sqrt(w), -above), -above),
            (sp.Min(sp.Max(sp.log(w), -5), 1), sp.Integer(-5)),
            (sp.Min(1 / w**2, above), above),
        ]
    )
    factor = safe(rng)
    return Program(f * factor + x, ((at, used * factor + x),))


def plateau(rng, at):
    """A function with an infinite slope at the value of a plateau: sqrt(max(u, 0)), asin(clip(u, −1, 1))."""
    u = distance(rng, at) - 1  # −1 at the point
    flat = rng.choice([sp.Max(u, 0), sp.Abs(u) + u, 2 * (sp.Abs(u) + u), sp.Piecewise((u, u > 0), (0, True))])
    f = rng.choice(
        [
            sp.sqrt(flat),
            flat ** sp.Rational(1, 3),
            sp.log(1 + sp.sqrt(flat)),
            sp.asin(sp.Min(1, sp.Max(2 * u, -1))),
            sp.acos(sp.Min(1, sp.Max(3 * u, -1))),
            sp.sqrt(flat * 3) * sp.cos(flat),
        ]
    )
    factor = safe(rng)
    value = {sp.asin: -sp.pi / 2, sp.acos: sp.pi}.get(f.func, 0)
    return Program(f * factor + factor, ((at, value * factor + factor),))


def radius(rng, at):
    """An absolute value or a norm of a node that is infinite, or has no value, in a branch not taken."""
    w, v = distance(rng, at), rng.choice([x, y])
    u = rng.choice([sp.log(w), sp.sqrt(w) - 1, 1 / w, sp.log(w) * y]) - v
    r = rng.choice(
        [sp.Abs(u), sp.sqrt(u**2 + v**2), sp.sqrt(u**2 + v**2) ** 3, (u**4 + v**4) ** sp.Rational(1, 4)]
    )
    other = safe(rng)
    left = (at[0] - 1, at[1])
    return Program(sp.Piecewise((wrapped(rng, r), w > 0), (other, True)), ((at, other), (left, other)))


KINDS = [shared, guarded, nested, extreme, plateau, radius]
