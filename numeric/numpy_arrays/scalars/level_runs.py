"""Scalar graphs as runs: equal operations on the same level, side by side in one vector of values.

A value's level is one more than the highest level of its operands. Operations of one kind on one level do
not depend on each other: they become one array operation with adjacent results. In a run the operations are
sorted by the places of their operands, so that regular programs (stencils, chains, layers) read slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import Graph, Node, Op, op_of, topological
from symad.errors import LoweringError
from symad.numbers.number_domains import as_float
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select

Array = np.ndarray


OpName: TypeAlias = "str | tuple[str, Any] | sympy.FunctionClass"
"""An arithmetic operation, the number of an input, the bytes of a constant, or a SymPy function."""

MIN_SAME_CONSTANT = 16
"""From this many operations with the same constant on, they form a run that needs no places for it.

Ten levels take 1.16 of the time with 4 such operations each, 0.96 with 8, 0.85 with 16, 0.77 with 32
(bench_scalar_thresholds.py, "constants").
"""

SHORT_POWERS = (2, 3, 4, Fraction(1, 2))
"""Exponents of powers that are computed by products or a square root."""

MODERATE = 2.0**30
"""C: where x² > C⁴, a number c between 1/C and C does not count in √(x² + c²).

Origin: c²/x² is then 2⁻⁶⁰, and all of these are normal in single precision, too.
"""

RELATIONS = {"<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal"}


@dataclass(frozen=True)
class LevelRun:
    """``values[start : start + n] = function(values[operands[0]], ...)`` with n places each."""

    function: OpName
    """The name of an arithmetic operation, or a SymPy head."""
    start: int
    operands: tuple[Array, ...]

    @property
    def count(self) -> int:
        """The number of results."""
        return len(self.operands[0])


@dataclass(frozen=True)
class VectorPlan:
    """One vector of ``size`` values: the inputs, then the constants, then the results of all runs."""

    inputs: int
    constants: tuple[float, ...]
    runs: tuple[LevelRun, ...]
    size: int
    results: Array
    """The places of the outputs."""
    extra: tuple[float, ...] = ()
    """Numbers stored after all values, for other code to use."""


class NumberedSteps:
    """Operations with one or two operands (a selection has three), numbered in order."""

    def __init__(self) -> None:
        self.operations: list[tuple[Any, tuple[int, ...]]] = []
        self.numbers: dict[tuple[OpName, tuple[int, ...]], int] = {}
        self.constants: dict[float, int] = {}
        self.inputs = 0

    def value(self, function: OpName, *operands: int) -> int:
        """The number of an operation, which is added if it is new."""
        key = (function, operands)
        if key not in self.numbers:
            self.numbers[key] = len(self.operations)
            self.operations.append(key)
        return self.numbers[key]

    def constant(self, number: float) -> int:
        """The number of a constant."""
        return self.value(("constant", np.float64(number).tobytes()))

    def joined(self, function: str, parts: Sequence[int]) -> int:
        """The operation on all parts, as a balanced tree: its depth is the number of levels."""
        while len(parts) > 1:
            pairs = [self.value(function, *parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
            parts = [*pairs, *parts[len(parts) - len(parts) % 2 :]]
        return parts[0]

    def add(self, node: Node, args: Sequence[int]) -> int:
        """Σ ± terms."""
        op = op_of(node, Add)
        return self._two_kinds(op.signs, args, ("add", "subtract", "negative"))

    def product(self, node: Node, args: Sequence[int]) -> int:
        """Π factors^±1."""
        op = op_of(node, Mul)
        return self._two_kinds(op.powers, args, ("multiply", "divide", "reciprocal"))

    def _two_kinds(self, weights: Sequence[int], args: Sequence[int], names: tuple[str, str, str]) -> int:
        over = [a for w, a in zip(weights, args, strict=True) if w == 1]
        under = [a for w, a in zip(weights, args, strict=True) if w == -1]
        if not under:
            return self.joined(names[0], over)
        below = self.joined(names[0], under)
        if not over:
            return self.value(names[2], below)
        return self.value(names[1], self.joined(names[0], over), below)

    def power(self, node: Node, args: Sequence[int]) -> int:
        """A power; small exponents are computed by products."""
        exponent = constant_value(node.args[1])
        if exponent in SHORT_POWERS[:3] and not isinstance(exponent, float):
            square = self.value("multiply", args[0], args[0])
            if exponent == 2:
                return square
            return self.value("multiply", square, args[0] if exponent == 3 else square)
        if exponent == SHORT_POWERS[3]:
            return self.value("sqrt", args[0])
        return self.value("power", *args)

    def applied(self, node: Node, args: Sequence[int]) -> int:
        """A function by its SymPy head."""
        head = op_of(node, Apply).head
        if head in (sympy.Max, sympy.Min):
            return self.joined("maximum" if head is sympy.Max else "minimum", args)
        for k, a in enumerate(node.args if head is hypot else ()):
            c = constant_value(a)
            if isinstance(c, (int, float, Fraction)) and 1 / MODERATE <= abs(float(c)) <= MODERATE:
                return self._hypot_of_number(args[1 - k], float(c))
        return self.value(head, *args)

    def _hypot_of_number(self, x: int, c: float) -> int:
        """√(x² + c²), or |x| where x² is no float; hypot takes three times as long."""
        square = self.joined("add", [self.constant(c * c), self.value("multiply", x, x)])
        root = self.value("sqrt", self.value("minimum", square, self.constant(MODERATE**4)))
        return self.value("maximum", root, self.value(sympy.Abs, x))

    def node(self, node: Node, args: Sequence[int]) -> int:
        """The number of the last operation of a node, after all its operations are added."""
        op = node.op
        if isinstance(op, Constant):
            return self.constant(as_float(op.value))
        writers: dict[type[Op], Callable[..., int]] = {
            Add: self.add,
            Mul: self.product,
            Pow: self.power,
            Apply: self.applied,
        }
        write = writers.get(type(op))
        if write is not None:
            return int(write(node, args))
        if isinstance(op, Compare):
            return self.value(RELATIONS[op.relation], *args)
        if isinstance(op, Logic):
            if op.kind == "not":
                return self.value("logical_not", *args)
            return self.joined(f"logical_{op.kind}", args)
        if isinstance(op, Select):
            return self.value("where", *args)
        raise LoweringError(f"the op {type(op).__name__} has no form in runs")


def plan(graph: Graph, outputs: Sequence[Node]) -> VectorPlan:
    """The runs of a graph of scalars that compute some of its nodes.

    Raises:
        LoweringError: an op is not a function of scalars.
    """
    program, results = steps_of(graph, outputs)
    return placed(program, results, len(graph.input_nodes))


def steps_of(graph: Graph, outputs: Sequence[Node]) -> tuple[NumberedSteps, list[int]]:
    """The operations of a graph of scalars, inputs first, and the numbers of some of its nodes."""
    program = NumberedSteps()
    number = {node: program.value(("input", k)) for k, node in enumerate(graph.input_nodes)}
    for node in topological(outputs):
        if node not in number:
            number[node] = program.node(node, [number[a] for a in node.args])
    return program, [number[o] for o in outputs]


def placed(program: NumberedSteps, results: Sequence[int], inputs: int) -> VectorPlan:
    """The operations in runs, with a place for every value."""
    operations = program.operations
    level = [0] * len(operations)
    groups: dict[tuple[int, OpName], list[int]] = {}
    place = np.zeros(len(operations), dtype=np.int64)
    constants: list[float] = []
    for k, (function, operands) in enumerate(operations):
        if not operands:
            if function[0] == "input":
                place[k] = function[1]
            else:
                place[k] = inputs + len(constants)
                constants.append(float(np.frombuffer(function[1])[0]))
            continue
        level[k] = 1 + max(level[o] for o in operands)
        groups.setdefault((level[k], function), []).append(k)
    size = inputs + len(constants)
    runs = []
    for (_, function), members in sorted(groups.items(), key=lambda item: item[0][0]):
        table = place[np.array([operations[k][1] for k in members])]
        for part in _parts(table, inputs, inputs + len(constants)):
            rows = table[part]
            order = np.lexsort(rows.T[::-1])
            place[np.array(members)[part[order]]] = size + np.arange(len(part))
            runs.append(LevelRun(function, size, tuple(rows[order].T.copy())))
            size += len(part)
    return VectorPlan(inputs, tuple(constants), tuple(runs), size, place[np.array(results, dtype=np.int64)])


def _parts(table: Array, first: int, end: int) -> list[Array]:
    """The operand places, split into runs: rows with one constant in `MIN_SAME_CONSTANT` rows are separate.

    Args:
        table: the places of the operands, (rows, operands).
        first: the place of the first constant.
        end: the place after the last constant.
    """
    rest = np.ones(len(table), dtype=bool)
    found = []
    if len(table) > MIN_SAME_CONSTANT:
        for column in table.T:
            constants = np.where((first <= column) & (column < end) & rest, column, -1)
            numbers, counts = np.unique(constants, return_counts=True)
            for number in numbers[(counts >= MIN_SAME_CONSTANT) & (numbers >= 0)]:
                found.append(np.flatnonzero(constants == number))
                rest[found[-1]] = False
    return [*found, np.flatnonzero(rest)] if rest.any() else found
