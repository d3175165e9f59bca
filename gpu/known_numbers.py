"""Arrays whose elements are one number that is known when code is printed: no kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.graph import Node
from symad.core.questions import evaluate
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import Constant


def filled(node: Node) -> Any:
    """The number that all elements of an array equal by construction; None if there is no such number.

    In a sum or product, only operands are seen that show their number.
    """
    op = node.op
    if not isinstance(op, (Add, Mul)) or not node.shape:
        return _shown(node)
    values = [_shown(arg) for arg in node.args]
    if not all(isinstance(value, (int, float)) for value in values):
        return None
    with np.errstate(all="ignore"):
        return float(evaluate(op, tuple(map(float, values))))


def _shown(node: Node) -> Any:
    """The number that an array repeats; None for others."""
    while isinstance(node.op, (Broadcast, Reshape, Slice)):
        node = node.args[0]
    return node.op.value if isinstance(node.op, Constant) and not isinstance(node.op.value, bool) else None
