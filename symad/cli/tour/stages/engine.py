"""Stages of the engine: memory policies, parallel recurrences, two adjoints, reversible blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symad
from symad import functions
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.core.dims import Dim
from symad.core.signatures import Memory
from symad.derivatives.memory_plans import draw_plans, memory_plan, memory_plans
from symad.models.layers import neural_ode
from symad.models.layers.reversible import forward, reversible
from symad.models.sequences.deer import deer

Array = np.ndarray

POLICIES: tuple[Memory, ...] = ("recompute", 5, "sqrt", "binomial", ("binomial", 4))


def numbers(*shape: int) -> Array:
    """Fixed data."""
    return np.random.default_rng(5).normal(size=shape)


def cell(W: Array, U: Array) -> Callable[[Array, Array], Array]:
    """One step of a tanh network."""

    def step(h: Array, x: Array) -> Array:
        return np.tanh(W @ h + U @ x)

    return step


def last_state(length: Dim, memory: Memory, n: int = 3, d: int = 2) -> symad.Graph:
    """|h_T|² of a tanh network under a policy."""

    def loss(W: Array, U: Array, first: Array, xs: Array) -> Array:
        return np.sum(functions.fold(cell(W, U), first, xs, memory) ** 2)

    return symad.trace(loss, inputs=[(n, n), (n, d), (n,), (length, d)])


@stage("memory", "reverse mode through a long recurrence, keeping √T states or a few")
def memory_policies() -> TourModel:
    """Six steps with every √T-th state kept."""
    return TourModel(
        last_state(6, "sqrt"),
        point=(numbers(3, 3) / 2, numbers(3, 2), numbers(3), numbers(6, 2)),
        wrt=["W", "first"],
        check=last_state(2, "sqrt", 1, 1),
        use=keep_little,
    )


def keep_little(made: Made) -> list[Finding]:
    """Compares the gradients of all policies, and their costs at 10⁴ steps."""
    point = numbers(3, 3) / 2, numbers(3, 2), numbers(3), numbers(24, 2)
    expected = symad.gradient(last_state(24, "all"), wrt="W")(*point)
    worst = 0.0
    for memory in POLICIES:
        gradient = symad.gradient(last_state(24, memory), wrt="W")
        worst = max(worst, float(np.abs(gradient(*point) - expected).max() / np.abs(expected).max()))
    plans = [memory_plan(10_000, memory) for memory in ("sqrt", "binomial", ("binomial", 6))]
    kept = ", ".join(f"{plan.peak} ({plan.recomputations / plan.length:.1f} T)" for plan in plans)
    found = memory_plans(symad.gradient(last_state(24, ("binomial", 4)), wrt="W"))[0]
    if made.plots is not None:
        draw_plans([memory_plan(400, memory) for memory in POLICIES], made.plots / "memory.png")
    return [
        Finding(f"the gradients of {len(POLICIES)} policies differ by {worst:.1e} relative", worst < 1e-12),
        Finding(f"states kept for 10⁴ steps (steps run again): {kept}", plans[1].peak < 30),
        Finding(f"the report of a graph: {found}", found.peak <= 4),
    ]


@stage("parallel recurrence", "all states of a recurrence at once, by Newton's method on the sequence")
def parallel() -> TourModel:
    """The affine recurrence that each iteration solves."""

    def f(a: Array, b: Array, first: Array) -> Array:
        return np.sum(functions.affine_scan(a, b, first) ** 2)

    graph = symad.trace(f, inputs=[(5, 2, 2), (5, 2), (2,)])
    small = symad.trace(lambda a, b: np.sum(functions.affine_scan(a, b) ** 2), inputs=[(2,), (2,)])
    return TourModel(graph, point=(numbers(5, 2, 2) / 2, numbers(5, 2), numbers(2)), check=small, use=newton)


def newton(made: Made) -> list[Finding]:
    """DEER against the loop."""
    n, d, length = 4, 3, 2000
    W, U = 0.9 * np.linalg.qr(numbers(n, n))[0], numbers(n, d)
    first, xs = numbers(n), np.random.default_rng(6).normal(size=(length, d))

    def step(h: Array, x: Array, W: Array, U: Array) -> Array:
        return np.tanh(W @ h + U @ x)

    states, iterations = deer(step, [(n,), (d,), (n, n), (n, d)]).solve(first, xs, W, U)
    apart = np.abs(states - functions.scan(cell(W, U), first, xs)).max()
    told = f"{length} steps of a tanh network in {iterations} iterations, {apart:.1e} from the loop"
    return [Finding(told, bool(apart < 1e-12) and iterations < 20)]


@stage("neural ode", "discretize then differentiate, or the other way round: the two adjoints")
def two_adjoints() -> TourModel:
    """Four Runge-Kutta steps of a field with two layers."""
    return TourModel(
        solution(4),
        point=(numbers(2), numbers(3, 2), numbers(2, 3)),
        check=solution(1, method="euler", n=1),
        use=adjoints,
    )


def field(x: Array, t: Array, W: Array, V: Array) -> Array:
    """V tanh(W x + t)."""
    return V @ np.tanh(W @ x + t)


def solution(steps: int, memory: Any = "all", method: str = "rk4", n: int = 2) -> symad.Graph:
    """|x(1)|²."""

    def loss(x: Array, W: Array, V: Array) -> Array:
        return np.sum(neural_ode.integrate(field, x, (W, V), (0.0, 1.0), steps, method, memory) ** 2)

    return symad.trace(loss, inputs=[(n,), (2 * n - 1, n), (n, 2 * n - 1)])


def adjoints(made: Made) -> list[Finding]:
    """Their difference falls with the order of the method."""
    x, W, V = numbers(2), numbers(3, 2), numbers(2, 3)
    apart = []
    for steps in (10, 20):
        exact = symad.gradient(solution(steps), wrt="W")(x, W, V)
        end = neural_ode.integrate(field, x, (W, V), (0.0, 1.0), steps)
        back = neural_ode.adjoint(field, end, 2 * end, (W, V), (0.0, 1.0), steps)[2]
        apart.append(np.abs(back - exact).max() / np.abs(exact).max())
    order = np.log2(apart[0] / apart[1])
    told = f"the continuous adjoint is off by {apart[0]:.1e}, with steps of half the size by {apart[1]:.1e}"
    return [Finding(f"{told}: order {order:.1f}", 3.5 < order < 5.5)]


@stage("reversible", "blocks that are inverted in the backward sweep: no activation is stored")
def reversible_blocks() -> TourModel:
    """Two blocks and a loss."""
    point = numbers(2), numbers(2) + 1, numbers(2, 2, 2) / 2, numbers(2, 2, 2) / 3
    return TourModel(blocks(2, 2), point=point, wrt=[0, 1, 2, 3], check=blocks(1, 1), use=invert)


def blocks(depth: int, n: int) -> symad.Graph:
    """y_1 · y_2 after some blocks."""

    def loss(x1: Any, x2: Any, W: Array, V: Array) -> Array:
        for k in range(depth):
            x1, x2 = forward(tanh_part, sine_part, x1, x2, W[k], V[k])
        return np.sum(x1 * x2)

    return symad.trace(loss, inputs=[(n,), (n,), (depth, n, n), (depth, n, n)])


def tanh_part(x: Array, W: Array, V: Array) -> Array:
    """The function f = tanh(W x)."""
    return np.tanh(W @ x)


def sine_part(y: Array, W: Array, V: Array) -> Array:
    """The function g = sin(V y)."""
    return np.sin(V @ y)


def invert(made: Made) -> list[Finding]:
    """The gradient without stored activations, and how well the inputs come back."""
    halves = [(2,), (2, 2), (2, 2)]
    chain = reversible(tanh_part, sine_part, lambda y1, y2: np.sum(y1 * y2), halves)
    x1, x2, W, V = numbers(2), numbers(2) + 1, numbers(2, 2, 2) / 2, numbers(2, 2, 2) / 3
    found = chain.value_and_gradient(x1, x2, (W, V))[1:]
    expected = symad.gradient(made.graph)(x1, x2, W, V)
    apart = max(float(np.abs(f - e).max()) for f, e in zip(found, expected, strict=True))
    back = chain.apply(x1, x2, W, V)
    for k in (1, 0):
        back = chain.undo(*back, W[k], V[k])
    lost = float(np.abs(np.stack(back) - np.stack([x1, x2])).max())
    return [
        Finding(f"the inputs come back from the outputs to {lost:.1e}", lost < 1e-14),
        Finding(f"gradients with and without stored activations differ by {apart:.1e}", apart < 1e-12),
    ]
