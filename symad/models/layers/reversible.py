"""Reversible networks: the backward sweep recomputes the activations from the outputs.

    y_1 = x_1 + F(x_2, θ),   y_2 = x_2 + G(y_1, θ)
    x_2 = y_2 − G(y_1, θ),   x_1 = y_1 − F(x_2, θ)

The second line inverts the first for all F and G, because each adds to one half a function of the other
half. A chain of such blocks needs no stored activations: the inputs of a block follow from its outputs,
and its pullback starts from these inputs. Memory does not grow with the number of blocks; each F
and G runs once more. In floating point the inputs are recovered up to rounding, which grows with the inverses
of the blocks: gradients agree with those of stored activations to rounding if the inverses are
well-conditioned. Shapes: x_1, x_2 of any one shape; θ the arrays of one block. Source: Gomez, Ren, Urtasun &
Grosse, "The reversible residual network" (2017), equations 6-7 and algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Shape
from symad.core.graph import Graph, TupleOf
from symad.derivatives.sweeps import pullback, value_and_gradient
from symad.errors import ShapeError
from symad.tracing import trace

Part = Callable[..., Array]
"""F or G: (half, θ...) -> an array of the shape of the half."""


def forward(F: Part, G: Part, x1: Array, x2: Array, *theta: Array) -> tuple[Array, Array]:
    """(y_1, y_2) of a block: SymPy expressions, arrays or traced values."""
    y1 = x1 + F(x2, *theta)
    return y1, x2 + G(y1, *theta)


def inverse(F: Part, G: Part, y1: Array, y2: Array, *theta: Array) -> tuple[Array, Array]:
    """(x_1, x_2) of a block from its outputs."""
    x2 = y2 - G(y1, *theta)
    return y1 - F(x2, *theta), x2


@dataclass(frozen=True)
class ReversibleChain:
    """Blocks with common F and G and separate parameters, and a loss. Made by `reversible`.

    Args:
        run: (x_1, x_2, θ...) -> (y_1, y_2), one block.
        undo: (y_1, y_2, θ...) -> (x_1, x_2).
        pulled: (x_1, x_2, θ..., y_1_bar, y_2_bar) -> (y_1, y_2, x_1_bar, x_2_bar, θ_bar...).
        loss: (y_1, y_2, targets...) -> the value and its gradients by y_1 and y_2.
    """

    run: Callable[..., tuple[Array, Array]]
    undo: Callable[..., tuple[Array, Array]]
    pulled: Callable[..., tuple[Array, ...]]
    loss: Callable[..., tuple[Array, ...]]

    def apply(self, x1: Array, x2: Array, *theta: Array) -> tuple[Array, Array]:
        """The outputs of all blocks; θ with a leading axis for the blocks."""
        for layer in zip(*theta, strict=True):
            x1, x2 = self.run(x1, x2, *layer)
        return x1, x2

    def value_and_gradient(
        self, x1: Array, x2: Array, theta: Sequence[Array], targets: Sequence[Array] = ()
    ) -> tuple[Array, ...]:
        """The loss, then its gradients by x_1, x_2 and each θ; no activation is stored.

        Raises:
            ShapeError: the parameters have different numbers of blocks.
        """
        depths = {len(p) for p in theta}
        if len(depths) != 1:
            raise ShapeError(f"the parameters are of {sorted(depths)} blocks; give each one for every block")
        y1, y2 = self.apply(x1, x2, *theta)
        value, bar1, bar2 = self.loss(y1, y2, *targets)
        bars = tuple(np.zeros_like(p, dtype=float) for p in theta)
        for k in reversed(range(depths.pop())):
            layer = [p[k] for p in theta]
            y1, y2 = self.undo(y1, y2, *layer)
            _, _, bar1, bar2, *parts = self.pulled(y1, y2, *layer, bar1, bar2)
            for total, part in zip(bars, parts, strict=True):
                total[k] = part
        return (value, bar1, bar2, *bars)


def reversible(
    F: Part, G: Part, loss: Callable[..., Array], shapes: Sequence[Shape], targets: Sequence[Shape] = (),
    compiled: Callable[[Graph], Any] | None = None,
) -> ReversibleChain:  # fmt: skip
    """A chain of reversible blocks.

    Args:
        F: (x_2, θ...) -> an array of its shape, written with NumPy.
        G: (y_1, θ...) -> an array of its shape, written with NumPy.
        loss: (y_1, y_2, targets...) -> a scalar.
        shapes: the shapes of one half, then of each θ of one block.
        targets: the shapes of the targets.
        compiled: makes fast code of a graph, such as `symad.numeric.lower`; otherwise graphs are interpreted.
    """
    half, *theta = shapes
    make = compiled if compiled is not None else _interpreted

    def block(x1: Array, x2: Array, *p: Array) -> tuple[Array, Array]:
        return forward(F, G, x1, x2, *p)

    def back(y1: Array, y2: Array, *p: Array) -> tuple[Array, Array]:
        return inverse(F, G, y1, y2, *p)

    run, undo = (trace(f, [half, half, *theta]) for f in (block, back))
    scored = value_and_gradient(trace(loss, [half, half, *targets]), wrt=[0, 1])
    flat = Graph(scored.input_nodes, scored.output_nodes, TupleOf((None,) * 3), scored.name)
    return ReversibleChain(make(run), make(undo), make(pullback(run)), make(flat))


def _interpreted(graph: Graph) -> Graph:
    return graph
