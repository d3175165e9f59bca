"""Recurrences evaluated for all steps at once, by Newton's method over the whole sequence (DEER).

    h_t = f(h_{t−1}, x_t, θ),  t = 1..T,   is   F(h) = (h_t − f(h_{t−1}, x_t, θ))_t = 0.

Newton's iterate linearizes f around the last trajectory h: with J_t = ∂f/∂h at (h_{t−1}, x_t),

    h'_t = J_t h'_{t−1} + (f(h_{t−1}, x_t) − J_t h_{t−1}),   h'_0 = h_0,

an affine recurrence, which `symad.functions.affine_scan` solves in O(log T) steps of whole arrays. Each
iteration makes at least one more step exact, so that T iterations suffice; if the recurrence forgets
its past, a few suffice. The derivatives are those of the root h of F, not of the iterations. Shapes: h (T,
n), x (T, ...), J (T, n, n). Source: Lim, Zhu, Selfridge & Kasim, "Parallelizing non-linear sequential models
over the sequence length" (2024), equations 3-6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.core.signatures import Traceable
from symad.derivatives.implicit import implicit
from symad.derivatives.jacobian import jacobian
from symad.derivatives.vmap import vmap
from symad.errors import EvaluationError
from symad.functions import affine_scan
from symad.tracing import trace
from symad.tracing.wrt import symbol_like

STEPS = 100
"""The maximum number of Newton iterations."""

TOLERANCE = 1e-13
"""The iterations end with a change smaller than this, relative to the largest state."""


@dataclass(frozen=True)
class Deer:
    """A recurrence whose states are computed together. Made by `deer`.

    Args:
        step: (h, x, θ...) -> f, the graph of one step.
        sweep: (h (T, n), h_0, x, θ...) -> the next iterate, as a function of arrays.
    """

    step: Graph
    sweep: Callable[..., np.ndarray]

    def solve(
        self, first: Array, inputs: Array, *parameters: Array, guess: Array | None = None
    ) -> tuple[Array, int]:
        """All states (T, n), and the number of iterations.

        Args:
            first: h_0 (n,).
            inputs: x (T, ...).
            parameters: θ.
            guess: a trajectory (T, n) to start from; zeros by default.

        Raises:
            EvaluationError: the iterations do not converge, or a state is not finite.
        """
        h = np.zeros((len(inputs), *np.shape(first))) if guess is None else np.asarray(guess)
        for iteration in range(1, STEPS + 1):
            with np.errstate(over="ignore", invalid="ignore"):
                new = self.sweep(h, first, inputs, *parameters)
                change = np.max(np.abs(new - h), initial=0.0)
            if not np.isfinite(change):
                raise EvaluationError(
                    f"DEER: a state is not finite after {iteration} iterations; the recurrence grows too "
                    "fast for a start far away: give a guess, or use functions.scan"
                )
            h = new
            if change <= TOLERANCE * (1 + np.max(np.abs(h), initial=0.0)):
                return h, iteration
        raise EvaluationError(
            f"DEER: no convergence in {STEPS} iterations; the last changed a state by {change:.1e}. Give a "
            "guess, or use functions.scan"
        )

    def graph(self, length: int) -> Graph:
        """(h_0, x, θ..., guess) -> h (T, n), differentiable: the root of F, found by `solve`."""
        state, inputs, *parameters = (node.shape for node in self.step.input_nodes)
        advance = vmap(self.step, (0, 0, *[None] * len(parameters)))

        def equations(h: Array, first: Array, x: Array, *theta: Array) -> Array:
            before = np.concatenate([first[None], h[:-1]])
            return h - advance(before, x, *theta)

        names = {"h"}
        shapes = [("h", (length, *state)), ("first", state), ("x", (length, *inputs))]
        shapes += [(str(s), p) for s, p in zip(self.step.inputs[2:], parameters, strict=True)]
        symbols = [symbol_like(name, shape, names if k else set()) for k, (name, shape) in enumerate(shapes)]

        def solver(guess: Array, first: Array, x: Array, *theta: Array) -> Array:
            start = np.reshape(guess, (length, *state))
            return self.solve(first, x, *theta, guess=start)[0].reshape(-1)

        return implicit(trace(equations, symbols), symbols[0], tuple(symbols[1:]), solver)


def deer(
    step: Traceable,
    inputs: Sequence[tuple[int, ...]] | None = None,
    compiled: Callable[[Graph], Callable[..., np.ndarray]] | None = None,
) -> Deer:
    """A recurrence for parallel evaluation.

    Args:
        step: an argument of `symad.trace`: (h (n,), x, θ...) -> the next state (n,).
        inputs: the inputs of a Python function.
        compiled: makes fast code of a graph, such as `symad.numeric.lower`; otherwise graphs are interpreted.

    Raises:
        EvaluationError: the step does not give one state of the shape of h, with one axis.
    """
    graph = trace(step, inputs)
    state, *others = (node.shape for node in graph.input_nodes)
    if len(state) != 1 or [o.shape for o in graph.output_nodes] != [state]:
        made = ", ".join(str(o.shape) for o in graph.output_nodes)
        raise EvaluationError(f"a step maps a state (n,) to the next one, but maps {state} to {made}")
    shared = [None] * (len(others) - 1)
    advance, slopes = vmap(graph, (0, 0, *shared)), vmap(jacobian(graph, 0), (0, 0, *shared))

    def sweep(h: Array, first: Array, x: Array, *theta: Array) -> Array:
        before = np.concatenate([first[None], h[:-1]])
        J = slopes(before, x, *theta)
        return affine_scan(J, advance(before, x, *theta) - np.einsum("tij,tj->ti", J, before), first)

    length = advance.outputs[0].shape[0]
    taken: set[str] = set()
    shapes = [("h", (length, *state)), ("first", state), ("x", (length, *others[0]))]
    shapes += [(str(s), p) for s, p in zip(graph.inputs[2:], others[1:], strict=True)]
    traced = trace(sweep, [symbol_like(name, shape, taken) for name, shape in shapes])
    return Deer(graph, compiled(traced) if compiled is not None else traced)
