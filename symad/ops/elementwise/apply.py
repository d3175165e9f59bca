"""Functions applied to each element: any scalar SymPy function, with its derivative from SymPy.

One op serves all functions. The partial derivatives of a head come from SymPy once and are kept as a
graph; a better-conditioned form (tanh' = 1 − tanh², from the output) can be registered
in `SLOPES` and takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy

from symad.core.dims import Shape, size
from symad.core.graph import Node, shape
from symad.core.questions import (
    Array,
    Count,
    Nodes,
    Tangent,
    Values,
    chosen,
    evaluate,
    flops,
)
from symad.numbers.number_domains import apply as apply_values
from symad.ops.basic.arithmetic import (
    ElementwiseOp,
    common_shape,
)


@dataclass(frozen=True, eq=False)
class Apply(ElementwiseOp):
    """head(x_1, ..., x_k) for a scalar SymPy function head."""

    head: Any

    @property
    def branches(self) -> bool:  # type: ignore[override]  # of one head
        """Whether the head is that of a step or an extreme."""
        return self.head in CHOICES


def apply(head: type[sympy.Basic], *args: Node) -> Node:
    """The function of these arguments, elementwise.

    In a traced function the names of SymPy's functions are stand-ins (`symad.tracing.sympy_heads`); the
    op holds the function itself.
    """
    return Node.of(Apply(getattr(head, "stands_for", head)), args)


Slope = Callable[[Node, Nodes, int], Tangent]
SLOPES: dict[sympy.FunctionClass, Slope] = {}
"""Better-conditioned forms of ∂head/∂x_i, from the value y, the arguments and i."""


def slope(*heads: type[sympy.Basic]) -> Callable[[Slope], Slope]:
    """Register the partial derivatives of some heads."""

    def register(rule: Slope) -> Slope:
        for head in heads:
            SLOPES[head] = rule
        return rule

    return register


Choice = Callable[[Node, int], "Node | None"]
CHOICES: dict[sympy.FunctionClass, Choice] = {}
"""For steps and extremes the answers to `symad.core.questions.chosen`, from the value y and k."""


def choice(*heads: type[sympy.Basic]) -> Callable[[Choice], Choice]:
    """Register the conditions under which the arguments of some heads count."""

    def register(rule: Choice) -> Choice:
        for head in heads:
            CHOICES[head] = rule
        return rule

    return register


# ---- answers ------------------------------------------------------------------------------------


@shape(Apply)
def apply_shape(op: Apply, args: Nodes) -> Shape:
    return common_shape(f"{op.head.__name__}", args)


@chosen.dispatch
def apply_chosen(op: Apply, y: Node, k: int) -> Node | None:
    """The registered condition of a step or an extreme."""
    return CHOICES[op.head](y, k) if op.branches else None


@flops.dispatch
def apply_flops(op: Apply, y: Node) -> Count:
    return size(y.shape)


@evaluate.dispatch
def apply_evaluate(op: Apply, values: Values) -> Array:
    return apply_values(op.head, values)
