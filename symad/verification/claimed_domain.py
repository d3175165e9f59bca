"""The domain of a claim: a condition on the inputs, as SymPy or as a Python function of them.

The domain bounds the inputs, and interval arithmetic every value: a clip whose bound is never reached, or a
branch that is never taken, is removed, unless the alternative may be undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import sympy
from sympy.assumptions.assume import AppliedPredicate

from symad.core.arrays import Array
from symad.core.graph import Graph, Node, topological
from symad.core.identifiers import brief, listed
from symad.core.signatures import Where
from symad.errors import SymadError, TraceError
from symad.evaluation.decided import can_be_decided, decided, taken
from symad.numbers.values import unchecked
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import ElementwiseOp, mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Source, constant, inputs_in
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select, compare, indicator, select
from symad.tracing import as_graph, trace
from symad.verification.certificate.expression_text import text_of
from symad.verification.claims import with_inputs_of
from symad.verification.measuring.call_users_code import refuse_arguments
from symad.verification.terms.discontinuities import jumps
from symad.verification.values.domains import margins
from symad.verification.values.point_set import FloatPoint
from symad.verification.values.ranges import Box, box_within, ranges


def needed_condition(where: Where) -> Where:
    """The condition; None for one that always holds, such as x² ≥ 0 for a real x.

    Raises:
        TraceError: it holds nowhere.
    """
    if not isinstance(where, (bool, np.bool_, sympy.logic.boolalg.BooleanAtom)):
        return where
    if not where:
        raise TraceError("verify: where= is false everywhere, so that the claim would be about no point")
    return None


def condition_of(graph: Graph, where: Where) -> Node:
    """1 where a condition holds and 0 elsewhere, as a scalar node; see `read_condition`."""
    return _of_all(read_condition(graph, where))


def _of_all(holds: Node) -> Node:
    """1 where all elements are 1: one node, of which `box_within` reads what each element says."""
    return reduce(lambda node, _: Node.of(Product(), (node,)), holds.shape, holds)


def read_condition(graph: Graph, where: Any) -> Node:
    """1 where a condition holds and 0 elsewhere, for each of its elements, on the inputs of a graph.

    Args:
        graph: a graph with the inputs that the condition is about.
        where: a SymPy condition, or a function of all inputs in their order; an array of conditions holds
            if all its elements hold.

    Raises:
        TraceError: ``where`` is not a condition on these inputs.
        TypeError: ``where`` is a function of other arguments.
    """
    if isinstance(where, sympy.logic.boolalg.Boolean) and not isinstance(where, sympy.Symbol):
        read = _read_sympy(where)
    elif callable(where) and not isinstance(where, sympy.Basic):
        refuse_arguments(where, [str(symbol) for symbol in graph.inputs], "where=")
        try:
            read = trace(lambda *values: np.where(where(*values), 1, 0), list(graph.inputs))
        except TypeError as problem:
            if isinstance(problem, SymadError):
                raise
            raise TraceError(f"verify: where= is no condition on real inputs: {problem}") from problem
    else:
        told = "a SymPy condition or a function of the inputs"
        several = isinstance(where, (list, tuple, set))
        hint = "; join several conditions by sympy.And(...)" if several else ""
        raise TraceError(f"verify: where= is {told}, not {brief(where)}{hint}")
    foreign = [s for s in with_inputs_of(graph, read).inputs if s not in graph.inputs]
    if foreign:
        raise TraceError(
            f"verify: where= is about {', '.join(map(str, foreign))}, but the inputs are "
            f"{listed(graph.inputs)}"
        )
    return with_inputs_of(graph, read).output_nodes[0]


def _read_sympy(where: sympy.Basic) -> Graph:
    """1 where a SymPy condition holds and 0 elsewhere; ``Q.positive_definite(A)`` may be a part of an And."""
    parts = where.args if isinstance(where, sympy.And) else (where,)
    known = sympy.Q.positive_definite
    definite = [p for p in parts if isinstance(p, AppliedPredicate) and p.function == known]
    rest = sympy.And(*[p for p in parts if p not in definite])
    if other := next((p for p in parts if isinstance(p, AppliedPredicate) and p not in definite), None):
        raise TraceError(
            f"verify: where={other} is no condition on values; use one such as x > 0 or "
            "Q.positive_definite(A), a symbol with the assumption, or a formula with the property: "
            "(A + A.T)/2 for a symmetric A"
        )
    matrices = [p.arg for p in definite]
    if not matrices:
        return as_graph(sympy.Piecewise((1, where), (0, True)))
    if any(not isinstance(m, sympy.MatrixSymbol) for m in matrices):
        raise TraceError(f"verify: where={where}: Q.positive_definite is read of an input, a MatrixSymbol")
    read = trace(lambda *values: np.where(_all_definite(values), 1, 0), matrices)
    if rest == sympy.true:
        return read
    other = as_graph(sympy.Piecewise((1, rest), (0, True)))
    both = mul(read.output_nodes[0], other.output_nodes[0])
    inputs = dict.fromkeys((*read.input_nodes, *other.input_nodes))
    return Graph(tuple(inputs), (both,))


def _all_definite(matrices: tuple[Any, ...]) -> sympy.Basic | Array | bool:
    """The condition that the symmetric parts have positive leading minors (Sylvester's criterion)."""
    holds: Any = True
    for matrix in matrices:
        rows, columns = matrix.shape
        if not isinstance(rows, int) or rows != columns:
            raise TraceError(
                f"verify: where=Q.positive_definite(A) needs a square A of known size, not {matrix.shape}"
            )
        part = matrix + matrix.T
        for k in range(1, rows + 1):
            holds = (np.linalg.det(part[:k, :k]) > 0) & holds
    return holds


def implied_domain(function: Sequence[Node]) -> tuple[Node, str] | None:
    """The domain that logarithms, roots and inverse functions leave a scalar function, in words, too.

    Outside of it the function has no value, so that nothing is claimed of its derivatives. The boundary
    counts as inside where it may hold an open set: √max(x, 0) and atan(log(max(x, 0))) have values on all of
    x < 0. None where there is no bound, or where a part without a value may not reach the result: a branch
    that is not taken, or an element that is not read.
    """
    nodes = topological(function)
    found = [m.inside for m in margins(nodes) if m.always and isinstance(m.of.op, (Apply, Pow))]
    bounds = [b for b in found if inputs_in([b])]
    everywhere = all(isinstance(n.op, (Source, ElementwiseOp, Einsum)) for n in nodes)
    branches = any(isinstance(n.op, Select) for n in nodes)
    scalar = [y.shape for y in function] == [()] and (everywhere or not any(b.shape for b in bounds))
    if not bounds or branches or not scalar:
        return None
    relations = [">=" if jumps(b) else ">" for b in bounds]
    holds = (indicator(compare(r, b, constant(0))) for r, b in zip(relations, bounds, strict=True))
    domain = reduce(mul, map(_of_all, holds))
    told = [f"{text_of(b)} {r} 0" for r, b in zip(relations, bounds, strict=True)]
    return domain, " and ".join(dict.fromkeys(told))


def with_values_of(function: Sequence[Node]) -> Callable[[FloatPoint], bool]:
    """A function that is True for points at which no element is NaN; inputs that points leave out are 1.

    log x has no value for x < 0, and so no derivative there: 1/|x| is as correct as 1/x.
    """
    inputs = inputs_in(tuple(function))
    ones = {n: np.ones([int(d) for d in n.shape]) if n.shape else 1.0 for n in inputs}

    def valued(point: FloatPoint) -> bool:
        try:
            values = unchecked(function, {**ones, **point})
        except OverflowError:
            return True
        except (SymadError, ArithmeticError, ValueError):
            return False
        return not any(np.isnan(np.asarray(v, dtype=float)).any() for v in values)

    return valued


# ---- clips and branches that the domain of a claim decides are removed ---------------------------


RULED_OUT = "without clips and branches that the domain rules out by intervals"
"""What is said of a test of such sides."""

Pair = tuple[Node, Node]


def restricted(sides: Pair, condition: Node) -> Pair:
    """Both sides where the condition holds, and 0 elsewhere."""
    holds = compare(">", condition, constant(0))
    left, right = (
        select(broadcast_to(holds, y.shape), y, broadcast_to(constant(0), y.shape))
        if y.shape
        else select(holds, y, constant(0))
        for y in sides
    )
    return left, right


def ruled(sides: Pair, condition: Node) -> Pair:
    """Both sides without the clips and branches that a condition rules out; the same where it rules none."""
    left, right = settled(sides, box_within(condition, inputs_in(sides)))
    return left, right


def settled(nodes: Sequence[Node], box: Box) -> Sequence[Node]:
    """The nodes without the clips and branches that the box rules out; the same ones if there are none."""
    if not box or not any(map(can_be_decided, topological(nodes))):
        return nodes
    known = ranges(nodes, box)
    return decided(Graph((), tuple(nodes)), known, taken).output_nodes if known else nodes
