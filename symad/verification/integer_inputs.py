"""Inputs that must be integers, as indices and matrix exponents, and the ranges to draw them from."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symad.graph import Node, topological
from symad.ops.gathering import Gather, ScatterAdd
from symad.ops.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.random import RandomOp
from symad.ops.selection import Condition
from symad.ops.sources import Input
from symad.verification.jumps import LooseSign, Rounded, WeakSign

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


def _integer_arguments(node: Node) -> list[tuple[int, int, int]]:
    """Which arguments of a node have to be integers, and their ranges."""
    if isinstance(node.op, Gather):
        return [(1, 0, int(node.args[0].shape[0]))]
    if isinstance(node.op, ScatterAdd):
        return [(0, 0, int(node.op.size))]
    if isinstance(node.op, (MatrixPower, MatrixPowerDerivative)):
        return [(len(node.args) - 1, 2, 5)]
    if isinstance(node.op, RandomOp):
        return [(position, 0, 2**16) for position in range(len(node.args))]
    return []
