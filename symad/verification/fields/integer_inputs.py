"""Inputs that must be integers, as indices and matrix exponents, and the ranges to draw them from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, Op, topological
from symad.core.nodes import Moved
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.basic.sources import Input, inputs_in
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Condition
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.discontinuities import Rounded
from symad.verification.terms.linear_terms import Terms, linear_terms


def integer_inputs(outputs: Sequence[Node]) -> dict[Node, tuple[int, int]]:
    """Inputs that are indices or matrix exponents, with the range to draw them from."""
    found: dict[Node, tuple[int, int]] = {}
    for node in topological(outputs):
        for argument, low, high in _integer_arguments(node):
            for source in _inputs_of_value(argument):
                old = found.get(source, (low, high))
                found[source] = max(low, old[0]), min(high, old[1])
    return found


MAX_INTEGER_CHOICES = 128
"""The maximum number of values that integer inputs have together, so that all are tried."""


def all_choices(ranges: Mapping[Node, tuple[int, int]]) -> list[dict[Node, Array]] | None:
    """All values of the integer inputs in their ranges; None where these are too many."""
    counts = {n: prod(n.shape) for n in ranges}
    total = 1
    for node, (low, high) in ranges.items():
        total *= max(1, high - low) ** counts[node]
        if total > MAX_INTEGER_CHOICES:
            return None
    spans = [[range(low, max(high, low + 1))] * counts[n] for n, (low, high) in ranges.items()]
    columns = [list(product(*span)) for span in spans]
    return [
        {n: np.array(v, dtype=np.int64).reshape(n.shape) for n, v in zip(ranges, choice, strict=True)}
        for choice in product(*columns)
    ]


def are_all_looked_at(outputs: Sequence[Node]) -> bool:
    """Whether the integer inputs of some nodes are indices of few values, so that all of them are tried."""
    open_ended = (MatrixPower, MatrixPowerDerivative, RandomOp)
    if any(isinstance(n.op, open_ended) and _integer_arguments(n) for n in topological(outputs)):
        return False
    return all_choices(integer_inputs(outputs)) is not None


def reads_inside(outputs: Sequence[Node]) -> Callable[[Mapping[Node, Number]], bool]:
    """Whether all known positions in several axes are inside of these at a point.

    At others a function has no value. Joined into one position, n i + j, they may be those of another row.
    A point may have the values of some inputs only.
    """
    places = [n for n in topological(outputs) if isinstance(n.op, Positions)]
    needed = {n: set(inputs_in([n])) for n in places}

    def inside(point: Mapping[Node, Number]) -> bool:
        known = [n for n in places if needed[n].issubset(point)]
        if not known:
            return True
        inputs = set().union(*(needed[n] for n in known))
        try:
            unchecked(known, {n: np.asarray(point[n], dtype=float)[()] for n in inputs})
        except (SymadError, ArithmeticError, ValueError):
            return False
        return True

    return inside


def _inputs_of_value(node: Node) -> list[Node]:
    """The inputs of which a value is made.

    Those that a condition, a step or an order stands before stay real: at integers alone, x (x − 1) is 0 for
    every choice between two rows.
    """
    found: list[Node] = []
    seen, waiting = {node}, [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part.op, Input):
            found.append(part)
        elif not (isinstance(part.op, (Condition, SortingPositions)) or _steps(part.op)):
            waiting += [arg for arg in part.args if arg not in seen]
            seen.update(part.args)
    return found


def _steps(op: Op) -> bool:
    return isinstance(op, Apply) and (fact(op.head).flat or op.head is Rounded)


def integer_positions(node: Node) -> list[int]:
    """Which arguments of a node have to be integers."""
    if isinstance(node.op, (Gather, ScatterAdd)):
        return [int(isinstance(node.op, Gather))]
    if isinstance(node.op, (MatrixPower, MatrixPowerDerivative)):
        return [len(node.args) - 1]
    return list(range(len(node.args))) if isinstance(node.op, RandomOp) else []


Ranged = tuple[Node, int, int]
"""A node whose values are integers, the least of them, and the first above the largest."""


def _integer_arguments(node: Node) -> list[Ranged]:
    """The parts of a node's arguments that have to be integers, with their ranges."""
    arguments = [node.args[k] for k in integer_positions(node)]
    if isinstance(node.op, (Gather, ScatterAdd)):
        count = node.args[0].shape[0] if isinstance(node.op, Gather) else node.op.size
        return _digits(arguments[0], int(count))
    low, high = (2, 8) if isinstance(node.op, (MatrixPower, MatrixPowerDerivative)) else (0, 2**16)
    return [(argument, low, high) for argument in arguments]


def _digits(index: Node, count: int) -> list[Ranged]:
    """The parts of a position in several axes that are joined: of n i + j, with j below n.

    Known parts, such as the rows 0, n, 2n of ``x[np.arange(3), j]``, limit the others.
    """
    while index.op.moves <= Moved.ALL:
        index = index.args[0]
    if isinstance(index.op, Positions):
        return [(a, 0, int(n)) for a, n in zip(index.args, index.op.shape, strict=True)]
    terms = linear_terms(index)
    known = [term for term in terms if not inputs_in([term[1]])]
    rest, largest = [term for term in terms if term not in known], _largest(known)
    whole = {(c > 0, c.denominator) for c, _ in terms} <= {(True, 1)}
    if not rest or not whole or largest is None or largest >= count:
        return [(index, 0, count)]
    strides = sorted(c for c, _ in terms)
    above = {c: next((s for s in strides if s > c), Fraction(count)) for c in strides}
    return [(m, 0, min(int(above[c] / c), (count - 1 - largest) // c + 1)) for c, m in rest]


def _largest(terms: Terms) -> Fraction | None:
    """The largest value of a sum of known nodes; numbers that do not fit their shape have none."""
    try:
        parts = [(c, np.max(np.asarray(unchecked([m], {})[0], dtype=float))) for c, m in terms]
    except (SymadError, ArithmeticError, ValueError):
        return None
    return sum((c * Fraction(float(part)) for c, part in parts), Fraction(0))
