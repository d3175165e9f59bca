"""Derivatives from elsewhere, as nodes: SymPy's own diff, and Dual numbers.

Neither uses a rule of the graph's forward or reverse mode. Both cost more, so both have budgets: an
explicit SymPy expression grows with the number of paths through the graph, and Dual numbers need one
evaluation for each element of ``wrt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import isfinite, isqrt
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.expressions import as_sympy
from symad.core.graph import Node, rebuild, topological
from symad.errors import SymadError
from symad.evaluation.node_numbers import NodeNumber
from symad.higher_order.adjugate import Adjugate
from symad.numbers.dual import Dual
from symad.numbers.number_domains import UndefinedValue
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.sources import ArrayConstant, Constant, constant, input_node, inputs_in, symbol_of
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.tracing.into_sympy.nodes import with_exact_floats
from symad.tracing.into_sympy.op_expressions import OpName
from symad.tracing.walk import Tracer
from symad.verification.budget import Meter
from symad.verification.rewriting.restated.by_elements import by_elements, flat_elements, scalar_operations

MAX_SYMPY_OPERATIONS = 600
"""The maximum number of operations of an explicit expression that is given to SymPy."""

MAX_OPERATIONS_TWICE = 30_000
"""The maximum of operations of all first derivatives times symbols for which SymPy takes second ones."""

MAX_ROWS_INVERTED = 2
"""The maximum order of a matrix inverted by entries: SymPy cancels quotients of sums at each pivot."""

SYMPY_STEPS, DUAL_STEPS = 60, 60
"""Steps for each operation that SymPy differentiates, and that Dual numbers repeat."""

MAX_DUAL_OPERATIONS = 20_000
"""The maximum of elements of wrt times scalar operations for which dual numbers are used."""

FEW_EVALUATIONS = 200
"""The same where the definitions of fused ops give another reference."""

UNUSABLE = (sympy.Derivative, sympy.Subs, sympy.DiracDelta, sympy.Integral, sympy.nan, sympy.zoo, sympy.oo)


class NoReference(SymadError):
    """This reference is not available; says why."""


def _largest_matrix(outputs: Sequence[Node]) -> int:
    """The most rows of a matrix that is solved with, or of which a determinant is taken."""
    eliminated = (Solve, Determinant, LogDeterminant, DeterminantSign, Adjugate)
    nodes = topological(outputs)
    return max((int(n.args[0].shape[-1]) for n in nodes if isinstance(n.op, eliminated)), default=0)


# ---- SymPy --------------------------------------------------------------------------------------


def _refuse_large(outputs: Sequence[Node]) -> None:
    """Refuse what SymPy takes too long for.

    Raises:
        NoReference: says why.
    """
    if _largest_matrix(outputs) > MAX_ROWS_INVERTED:
        raise NoReference(f"linear algebra on symbolic matrices of more than {MAX_ROWS_INVERTED} rows")
    if scalar_operations(outputs) > MAX_SYMPY_OPERATIONS:
        raise NoReference(
            f"more than {MAX_SYMPY_OPERATIONS} scalar operations, which SymPy's diff would expand"
        )
    if written_size(outputs) > 10 * MAX_SYMPY_OPERATIONS:
        raise NoReference(f"an explicit expression of far more than {MAX_SYMPY_OPERATIONS} operations")


class SympyReference:
    """Explicit scalar expressions of some outputs, to be differentiated by SymPy."""

    def __init__(self, outputs: Sequence[Node], wrt: Sequence[Node], meter: Meter) -> None:
        """Write the outputs out, entry by entry; what SymPy does is counted before it is asked.

        Raises:
            NoReference: they are too large, or have no explicit form.
        """
        self.meter = meter
        inputs = list(dict.fromkeys([*wrt, *inputs_in(outputs)]))
        _refuse_large(outputs)
        meter.spend(SYMPY_STEPS * scalar_operations(outputs))
        self.replaced: dict[Node, Node] = {}
        point: dict[Node, Number] = {}
        self.symbols: dict[Node, list[sympy.Expr]] = {}
        for node in inputs:
            made = [self._symbol(node, e) for e in flat_elements(node)]
            self.symbols[node] = made
            point[node] = np.array(made, dtype=object).reshape(node.shape) if node.shape else made[0]
        for node in topological(outputs):
            if isinstance(node.op, ArrayConstant) and node.op.array.dtype.kind == "f":
                point[node] = np.frompyfunc(_exact_number, 1, 1)(node.op.array)
        try:
            values = unchecked(with_exact_floats(outputs), point or {_anchor(): sympy.EulerGamma})
        except (
            SymadError, TypeError, ValueError, NotImplementedError, AttributeError, RecursionError,
        ) as problem:  # fmt: skip
            raise NoReference(f"no explicit expression: {problem}") from None
        self.expressions = [e for v in values for e in np.asarray(v, dtype=object).ravel()]
        if not all(isinstance(e, sympy.Expr) for e in self.expressions):
            raise NoReference("a truth value, which has no derivative in SymPy")
        self.wrt = [s for node in wrt for s in self.symbols[node]]
        if any(
            isinstance(e, UndefinedValue) or _tree_size(e) > MAX_SYMPY_OPERATIONS for e in self.expressions
        ):
            raise NoReference(f"an explicit expression of more than {MAX_SYMPY_OPERATIONS} operations")

    def _symbol(self, node: Node, part: Node) -> sympy.Symbol:
        """A real symbol for one element, with the assumptions of the input's symbol."""
        old = symbol_of(node)
        given = {k: getattr(old, f"is_{k}", None) for k in ("positive", "negative", "nonnegative", "integer")}
        symbol = sympy.Dummy("x", real=True, **{k: True for k, v in given.items() if v})
        self.replaced[input_node(symbol)] = part
        return symbol

    def first(self) -> list[Node]:
        """∂expression/∂symbol for all expressions and, inside, all symbols."""
        return self._traced([e for row in self._slopes for e in row])

    @cached_property
    def _slopes(self) -> list[list[sympy.Expr]]:
        """The first derivatives of each expression, as SymPy has them."""
        self.meter.spend(SYMPY_STEPS * sum(map(_tree_size, self.expressions)) * len(self.wrt))
        made = [[_slope(e, s) for s in self.wrt] for e in self._exact()]
        if any(e.has(sympy.Float) for row in made for e in row):  # all numbers were made exact before
            raise NoReference("a rule of a user's has floats, whose products SymPy rounds")
        return made

    def second(self) -> list[Node]:
        """∂²expression/∂symbol∂symbol of the one expression."""
        (slopes,) = self._slopes
        sizes = [_tree_size(e) for e in slopes]
        whole = sum(sizes) * len(self.wrt)
        if max(sizes, default=0) > 4 * MAX_SYMPY_OPERATIONS or whole > MAX_OPERATIONS_TWICE:
            raise NoReference("the first derivative of SymPy is too large to be differentiated again")
        self.meter.spend(SYMPY_STEPS * whole)
        return symmetric(
            self._traced([_slope(e, s) for i, e in enumerate(slopes) for s in self.wrt[: i + 1]])
        )

    def _exact(self) -> list[sympy.Expr]:
        """The expressions, numbers among them as SymPy's."""
        return [as_sympy(e) for e in self.expressions]

    def _traced(self, expressions: Sequence[sympy.Expr]) -> list[Node]:
        if any(e.has(*UNUSABLE) for e in expressions):
            raise NoReference("SymPy's derivative holds what has no value, such as DiracDelta or Derivative")
        try:
            tracer = Tracer()
            nodes = [tracer.trace(as_sympy(e)) for e in expressions]
        except SymadError as problem:
            raise NoReference(f"SymPy's derivative cannot be read: {problem}") from None
        return list(rebuild(nodes, self.replaced))


def _slope(expression: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """SymPy's derivative, a sum term by term.

    A term is differentiated by ``_eval_derivative``, the rule that ``diff`` calls. For a product ``diff``
    would take the rule for n-th derivatives, and then ask whether the result is zero; both take longer.
    """
    terms = sympy.Add.make_args(expression)
    if expression.has(OpName):
        raise NoReference("it holds an op that SymPy has no derivative of")
    slopes = [term._eval_derivative(symbol) for term in terms]
    return expression.diff(symbol) if None in slopes else sympy.Add(*slopes)


def symmetric(lower: Sequence[Node]) -> list[Node]:
    """All entries of a symmetric matrix, row by row, from those up to the diagonal."""
    count = isqrt(2 * len(lower))
    places = ((max(i, j), min(i, j)) for i in range(count) for j in range(count))
    return [lower[i * (i + 1) // 2 + j] for i, j in places]


def _exact_number(value: float) -> sympy.Expr:
    """The rational number that a float is."""
    return sympy.Rational(*value.as_integer_ratio()) if isfinite(value) else as_sympy(value)


def _anchor() -> Node:
    return Node.of(Constant(sympy.EulerGamma, "symbol"))


def written_size(outputs: Sequence[Node]) -> int:
    """The operations of the longest entry written out as a tree, counted on the graph: 0 if not known."""
    sides = by_elements(outputs) or [[o] for o in outputs if not o.shape]
    entries = [e for side in sides for e in side]
    sizes: dict[Node, int] = {}
    for node in topological(entries):
        sizes[node] = 1 + sum(sizes[a] for a in node.args)
    return max((sizes[e] for e in entries), default=0)


def _tree_size(expression: sympy.Basic) -> int:
    """The number of operations of an expression as a tree, each distinct part visited once."""
    sizes: dict[sympy.Basic, int] = {}
    stack = [expression]
    while stack:
        current = stack[-1]
        missing = [a for a in getattr(current, "args", ()) if a not in sizes]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        sizes[current] = 1 + sum(sizes[a] for a in getattr(current, "args", ()))
    return sizes[expression]


# ---- Dual numbers -------------------------------------------------------------------------------


class DualReference:
    """Derivatives by Dual numbers whose parts are nodes."""

    def __init__(
        self, outputs: Sequence[Node], wrt: Sequence[Node], meter: Meter, most: int = MAX_DUAL_OPERATIONS
    ) -> None:
        """``outputs`` as functions of ``wrt``, by at most ``most`` operations; sizes must be numbers."""
        self.outputs, self.wrt, self.meter, self.most = outputs, wrt, meter, most
        self.inputs = list(dict.fromkeys([*wrt, *inputs_in(outputs)]))
        self.elements = {node: flat_elements(node) for node in self.inputs}

    def first(self) -> list[Node]:
        """∂output/∂element for all output elements and, inside, all elements of wrt."""
        count = self._count()
        self._check(count)
        columns = [self._tangents([self._unit(k)]) for k in range(count)]
        return [part for row in zip(*columns, strict=True) for part in row]

    def second(self) -> list[Node]:
        """The Hessian of the one output, row by row, by nested Dual numbers."""
        count = self._count()
        self._check(4 * count * count)
        units = [self._unit(k) for k in range(count)]
        return symmetric([self._tangents([u, v])[0] for i, u in enumerate(units) for v in units[: i + 1]])

    def along(self, directions: Sequence[Sequence[Node]]) -> list[Node]:
        """The first or second derivatives of all output elements along one or two given directions."""
        self._check(4 ** (len(directions) - 1))
        return self._tangents(
            [
                {w: list(map(NodeNumber, flat_elements(d))) for w, d in zip(self.wrt, v, strict=True)}
                for v in directions
            ]
        )

    def _count(self) -> int:
        return sum(len(self.elements[w]) for w in self.wrt)

    def _check(self, evaluations: int) -> None:
        count = evaluations * scalar_operations(self.outputs)
        if count > self.most:
            raise NoReference(f"{evaluations} evaluations of Dual numbers are too many")
        self.meter.spend(DUAL_STEPS * count)

    def _unit(self, position: int) -> Direction:
        """The direction of one element of wrt, numbered over all of them."""
        found: Direction = {}
        for node in self.wrt:
            count = len(self.elements[node])
            found[node] = [NodeNumber(constant(1)) if k == position else 0 for k in range(count)]
            position -= count
        return found

    def _tangents(self, directions: Sequence[Direction]) -> list[Node]:
        """The derivative of all output elements in one direction, or in two."""
        point: dict[Node, Number] = {}
        for node in self.inputs:
            numbers = np.empty(len(self.elements[node]), dtype=object)
            for k, part in enumerate(self.elements[node]):
                numbers[k] = _seeded(NodeNumber(part), [d[node][k] if node in d else 0 for d in directions])
            point[node] = numbers.reshape(node.shape) if node.shape else numbers[0]
        try:
            values = unchecked(self.outputs, point)
        except (SymadError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise NoReference(f"Dual numbers do not apply: {problem}") from None
        return [
            _part(v, len(directions)) for value in values for v in np.asarray(value, dtype=object).ravel()
        ]


Direction = dict[Node, "list[Any]"]
"""For inputs the tangent of each element: a number, or 0 for none."""


def _seeded(value: NodeNumber, tangents: Sequence[Number]) -> Number:
    """Dual(x, u), or Dual(Dual(x, u), Dual(v, 0)), whose tangent's tangent is the second derivative."""
    if len(tangents) == 1:
        return Dual(value, tangents[0])
    u, v = tangents
    return Dual(Dual(value, u), v if isinstance(v, int) else Dual(v, 0))


def _part(value: Number, depth: int) -> Node:
    """The tangent of the given depth; what is known to be zero is the constant 0."""
    for _ in range(depth):
        value = value.tangent if isinstance(value, Dual) else 0
    if isinstance(value, NodeNumber):
        return value.node
    if isinstance(value, (int, float)):
        return constant(value)
    raise NoReference("Dual numbers do not apply: a value is undefined")


def packed(entries: Sequence[Node], shape: Sequence[int]) -> Node:
    """Scalar nodes as an array of a shape; a scalar for the shape ()."""
    return pack_scalars(entries, tuple(shape)) if shape else entries[0]
