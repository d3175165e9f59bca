"""Functions of numbers, such as log Γ(4), computed when code is printed: no kernel computes one number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.core.graph import Node, rebuild
from symad.core.questions import Nodes, evaluate
from symad.evaluation.number_domains import as_float
from symad.ops.arrays.sources import Constant, constant
from symad.ops.elementwise.apply import Apply


def known_numbers(outputs: Sequence[Node]) -> Nodes:
    """Outputs with functions of constants replaced by their values in double precision."""
    return rebuild(outputs, {}, _known)


def _known(node: Node, args: Nodes) -> Node:
    values = [as_float(a.op.value) for a in args if isinstance(a.op, Constant)]
    if isinstance(node.op, Apply) and len(values) == len(args):
        with np.errstate(all="ignore"):
            return constant(float(evaluate(node.op, tuple(values))))
    return node if args == node.args else Node.of(node.op, args)
