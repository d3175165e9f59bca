"""Inputs that must be integers, as indices and matrix exponents, and the ranges to draw them from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
import sympy

from symad.core.graph import Node, topological
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.random import RandomOp
from symad.ops.basic.sources import Input
from symad.ops.elementwise.selection import Condition
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.discontinuities import LooseSign, Rounded, WeakSign

STEPS = {sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, WeakSign, LooseSign, Rounded}


def integer_inputs(outputs: Sequence[Node]) -> dict[Node, tuple[int, int]]:
    """Inputs that are indices or matrix exponents, with the range to draw them from."""
    found: dict[Node, tuple[int, int]] = {}
    for node in topological(outputs):
        for position, low, high in _integer_arguments(node):
            for source in _inputs_of_value(node.args[position]):
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


def _inputs_of_value(node: Node) -> list[Node]:
    """The inputs of which a value is made.

    Those that a condition or a step stands before stay real: at integers alone, x (x − 1) is 0 for
    every choice between two rows.
    """
    found: list[Node] = []
    seen, waiting = {node}, [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part.op, Input):
            found.append(part)
        elif not isinstance(part.op, Condition) and getattr(part.op, "head", None) not in STEPS:
            waiting += [arg for arg in part.args if arg not in seen]
            seen.update(part.args)
    return found


def integer_positions(node: Node) -> list[int]:
    """Which arguments of a node have to be integers."""
    return [position for position, _, _ in _integer_arguments(node)]


def _integer_arguments(node: Node) -> list[tuple[int, int, int]]:
    """Which arguments of a node have to be integers, and their ranges."""
    if isinstance(node.op, Gather):
        return [(1, 0, int(node.args[0].shape[0]))]
    if isinstance(node.op, ScatterAdd):
        return [(0, 0, int(node.op.size))]
    if isinstance(node.op, (MatrixPower, MatrixPowerDerivative)):
        return [(len(node.args) - 1, 2, 8)]
    if isinstance(node.op, RandomOp):
        return [(position, 0, 2**16) for position in range(len(node.args))]
    return []
