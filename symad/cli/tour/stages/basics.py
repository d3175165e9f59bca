"""First stages: the chain rule, a valley to descend, an arm to move. They need no data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sympy

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage

Array = np.ndarray


@stage("chain rule", "f = x + x² at x = 3, every step of every mode", quick=True)
def chain_rule() -> TourModel:
    """x is used twice: the smallest graph with a fan-out."""
    x = sympy.Symbol("x", real=True)
    return TourModel(x + x**2, point=(3.0,), use=read_tables)


def read_tables(made: Made) -> list[Finding]:
    """Value and derivative as the tables of forward and reverse mode show them."""
    tables = made.graph.explain(x=3)
    forward, reverse = (dict((str(r[0].text), r) for r in t.rows) for t in tables.tables[:2])
    value, tangent = (float(v) for v in (forward["s_2"][2], forward["s_2"][4]))
    adjoint = float(reverse["r_0"][2])
    if made.out is not None:
        (made.out / "chain rule.md").write_text(tables.to_markdown(), encoding="utf-8")
    return [
        Finding(f"the value is {value:g}; 3 + 3² = 12", value == 12),
        Finding(f"forward mode carries the tangent 1 to {tangent:g}; 1 + 2·3 = 7", tangent == 7),
        Finding(f"reverse mode adds 6 and 1 at the fan-out: {adjoint:g}", adjoint == 7),
    ]


@stage("rosenbrock", "Rosenbrock's valley (1 − x)² + 100 (y − x²)², minimized by Newton's method", quick=True)
def rosenbrock() -> TourModel:
    """A narrow curved valley with its minimum 0 at (1, 1)."""
    x, y = sympy.symbols("x y", real=True)
    return TourModel((1 - x) ** 2 + 100 * (y - x**2) ** 2, point=(-1.2, 1.0), use=descend)


def descend(made: Made) -> list[Finding]:
    """Newton's method with our gradient and Hessian, against steepest descent."""
    gradient, hessian = symad.gradient(made.graph), symad.hessian(made.graph)
    point, steps = np.array([-1.2, 1.0]), 0
    while np.linalg.norm(gradient(*point)) > 1e-12 and steps < 50:
        point = point - np.linalg.solve(hessian(*point), gradient(*point))
        steps += 1
    slow = np.array([-1.2, 1.0])
    for _ in range(1000):
        slow = slow - 1e-3 * np.array(gradient(*slow))
    distance = float(np.linalg.norm(slow - 1))
    condition = np.linalg.cond(hessian(1.0, 1.0))
    return [
        Finding(
            f"Newton's method from (−1.2, 1) is at ({point[0]:.12g}, {point[1]:.12g}) after "
            f"{steps} steps; the minimum is (1, 1)",
            bool(np.allclose(point, 1, rtol=0, atol=1e-12)) and steps <= 7,
        ),
        Finding(
            f"steepest descent is still {distance:.2f} away after 1000 steps: the Hessian at the "
            f"minimum, [[802, −400], [−400, 200]], has condition number {condition:.0f}",
            bool(np.array_equal(hessian(1.0, 1.0), [[802, -400], [-400, 200]])),
        ),
    ]


LINKS = (1.0, 0.7, 0.4)
TARGET = (0.9, 1.2)


def hand(angles: tuple[sympy.Symbol, ...]) -> tuple[sympy.Expr, sympy.Expr]:
    """The position of the hand of a planar arm; each angle is relative to the previous link."""
    total, x, y = 0, 0, 0
    for length, angle in zip(LINKS, angles, strict=True):
        total = total + angle
        x, y = x + length * sympy.cos(total), y + length * sympy.sin(total)
    return x, y


@stage("arm", "a planar arm of three links reaches for a point", quick=True)
def arm() -> TourModel:
    """Half the squared distance of the hand from the target; angles in radians."""
    angles = sympy.symbols("theta_1:4", real=True)
    x, y = hand(angles)
    miss = ((x - TARGET[0]) ** 2 + (y - TARGET[1]) ** 2) / 2
    return TourModel(miss, point=(0.3, 0.4, 0.5), use=reach)


def reach(made: Made) -> list[Finding]:
    """Gauss-Newton on the position of the hand: least-norm steps, since the arm is redundant."""
    angles = sympy.symbols("theta_1:4", real=True)
    where = symad.trace(list(hand(angles)), inputs=list(angles))
    jacobian = symad.jacobian(where)
    q, steps = np.array([0.3, 0.4, 0.5]), 0
    while made.graph(*q) > 1e-30 and steps < 50:
        rest = np.array(where(*q)) - TARGET
        q = q - np.linalg.lstsq(jacobian(*q), rest, rcond=None)[0]
        steps += 1
    x, y = (float(v) for v in where(*q))
    stretched = np.linalg.matrix_rank(jacobian(0.3, 0.0, 0.0))
    if made.plots is not None:
        _draw_arm(q, made.plots)
    return [
        Finding(
            f"Gauss-Newton puts the hand to ({x:.9f}, {y:.9f}) in {steps} steps; the target is {TARGET}",
            abs(x - TARGET[0]) + abs(y - TARGET[1]) < 1e-12,
        ),
        Finding(
            f"stretched out, the arm cannot move along itself: its 2×3 Jacobian has rank {stretched}",
            bool(stretched == 1),
        ),
        Finding(f"{jacobian.report}", True),
    ]


def _draw_arm(q: Array, folder: Path) -> None:
    """The arm at rest and where it has reached."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 4))
    axes = figure.subplots()
    for angles, name in ((np.array([0.3, 0.4, 0.5]), "at first"), (q, "at last")):
        turns = np.cumsum(angles)
        xs = np.concatenate([[0], np.cumsum(LINKS * np.cos(turns))])
        ys = np.concatenate([[0], np.cumsum(LINKS * np.sin(turns))])
        axes.plot(xs, ys, "o-", label=name)
    axes.plot(*TARGET, "x", color="black", label="target")
    axes.set_aspect("equal")
    axes.legend()
    figure.savefig(folder / "arm reaching.svg")
