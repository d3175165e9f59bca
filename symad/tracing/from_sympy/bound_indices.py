"""Bound indices, and expressions under them as arrays with one axis for each index they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, singledispatch
from typing import Any

import sympy

from symad.core.dims import Dim, as_dim, same_dim
from symad.core.graph import Node
from symad.errors import TraceError
from symad.ops.basic.arithmetic import add
from symad.ops.basic.sources import dimension, iota
from symad.ops.elementwise.selection import compare
from symad.tracing.cheapest_contraction import Labeled, aligned
from symad.tracing.from_sympy.range_sums import unknown_symbols
from symad.tracing.index_ranges import IndexRange, reach
from symad.tracing.walk import Tracer, lift, operands


class IndexScope:
    """Bound indices and the values of expressions under them."""

    def __init__(self, tracer: Tracer, ranges: Sequence[IndexRange] = (), guarded: bool = False) -> None:
        """``ranges``: outermost first. ``guarded``: inside a branch of a Piecewise."""
        self.tracer = tracer
        self.ranges = tuple(ranges)
        self.guarded = guarded
        self.boxes = tuple(self._box(k) for k in range(len(self.ranges)))
        self.starts: dict[sympy.Expr, sympy.Expr] = {r.index: r.low for r in self.boxes}
        self.sizes: dict[sympy.Expr, Dim] = {r.index: self._count(r) for r in self.boxes}
        self.triangular = {r.index for r, box in zip(self.ranges, self.boxes, strict=True) if r != box}
        self._values: dict[int, Labeled] = {}
        self._alive: list[Any] = []

    def _box(self, k: int) -> IndexRange:
        """The smallest range that contains all values of an index, for all values of the outer ones."""
        r = self.ranges[k]
        outer = self.ranges[:k]
        low, high = reach(r.low, outer, False), reach(r.high, outer, True)
        for bound in (r.low, r.high):
            if unknown := unknown_symbols(bound, self.tracer, outer):
                name = min(map(str, unknown))
                raise TraceError(
                    f"the range ({r.index}, {r.low}, {r.high}) depends on {name}, which is not a "
                    "dimension of an input; "
                    f"bounds are numbers or dimensions: replace {name} with .subs, or declare "
                    f"IndexedBase(..., shape=({name},))"
                )
        if low is None or high is None:
            raise TraceError(
                f"the range ({r.index}, {r.low}, {r.high}) is not affine in the indices around it"
            )
        return IndexRange(r.index, low, high)

    def _count(self, box: IndexRange) -> Dim:
        count = as_dim(sympy.expand(box.high - box.low + 1))
        if isinstance(count, int) and count < 0:
            raise TraceError(
                f"the range ({box.index}, {box.low}, {box.high}) runs backwards; SymPy gives it a "
                "meaning by .doit()"
            )
        return count

    def inside(self, ranges: Sequence[IndexRange]) -> IndexScope:
        """This scope with more indices bound."""
        return IndexScope(self.tracer, (*self.ranges, *ranges), self.guarded)

    def behind_conditions(self) -> IndexScope:
        """This scope inside a branch of a Piecewise."""
        return self if self.guarded else IndexScope(self.tracer, self.ranges, True)

    # ---- values

    def value(self, expression: sympy.Basic) -> Labeled:
        """The array of an expression; each distinct subexpression is visited once, without recursion."""
        values = self._values
        stack: list[tuple[sympy.Basic, tuple[sympy.Basic, ...] | None]] = [(expression, None)]
        while stack:
            current, below = stack.pop()
            if id(current) in values:
                continue
            if below is None:
                below = parts(current, self)
                missing = [(o, None) for o in reversed(below) if id(o) not in values]
                if missing:
                    stack.append((current, below))
                    stack.extend(missing)
                    continue
            values[id(current)] = read(current, tuple([values[id(o)] for o in below]), self)
            self._alive.append((current, below))
        return values[id(expression)]

    def index_value(self, index: sympy.Expr) -> Labeled:
        """The values of a bound index, along its own axis."""
        start = dimension(sympy.sympify(self.starts[index], strict=True))
        return Labeled(add(iota(self.sizes[index]), start), (index,))

    def elementwise(self, make: Callable[..., Node], *values: Labeled) -> Labeled:
        """A maker applied to arrays that are broadcast to common axes."""
        labels = self.joint(values)
        node = make(*(aligned(v, labels, self.sizes) for v in values))
        return Labeled(node, labels if node.shape else ())

    def joint(self, values: Sequence[Labeled]) -> tuple[sympy.Basic, ...]:
        """The union of the indices of some arrays, outermost first."""
        found = {label for v in values for label in v.labels}
        return tuple(r.index for r in self.ranges if r.index in found)

    def boxes_agree(self, i: sympy.Basic, j: sympy.Basic) -> bool:
        """True if two indices take the same values."""
        same_start = sympy.expand(self.starts[i] - self.starts[j]) == 0
        return same_start and same_dim(self.sizes[i], self.sizes[j])

    def masks(self, ranges: Sequence[IndexRange]) -> list[Labeled]:
        """For each bound that depends on an outer index, the condition that the index satisfies it."""
        found = []
        for r in ranges:
            for relation, bound in ((">=", r.low), ("<=", r.high)):
                if any(bound.has(o.index) for o in self.ranges):
                    found.append(
                        self.elementwise(
                            partial(compare, relation), self.index_value(r.index), self.value(bound)
                        )
                    )
        return found


# ---- expressions under indices ------------------------------------------------------------------


@singledispatch
def parts(expression: sympy.Basic, scope: IndexScope) -> tuple[sympy.Basic, ...]:
    """The subexpressions whose values `read` needs."""
    return operands(expression, scope.tracer)


@singledispatch
def read(expression: sympy.Basic, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """The array of an expression, from those of its parts: scalar functions act elementwise.

    Raises:
        TraceError: an expression with bound indices is not a scalar function of its parts.
    """
    labels = scope.joint(args)
    if labels and any(arg.node.shape and not arg.labels for arg in args):
        raise TraceError(
            f"{expression} mixes the indices {', '.join(map(str, labels))} with whole arrays; write "
            "elements, as in A[i, j]"
        )
    return scope.elementwise(lambda *nodes: lift(expression, nodes, scope.tracer), *args)
