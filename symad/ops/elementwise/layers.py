"""Values of layers: their derivatives are computed from values that are stored anyway."""

from __future__ import annotations

from symad.core.graph import Node
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import Constant, Input

SIMPLE = (ElementwiseOp, ShapingOp, Input, Constant)
MAX_OPS = 64
"""The maximum number of ops that are examined; longer elementwise formulas count as layers."""


def of_layer(x: Node) -> bool:
    """True if the array ``x`` comes from products, sums or loops, not from inputs by elementwise functions.

    1 − tanh² and σ (1 − σ) are then computed from the values of tanh and σ, so that their arguments need not
    be stored. They are accurate to an ulp of the largest slope, as in PyTorch and JAX. For other x, slopes
    have full relative accuracy.
    """
    if not x.shape:
        return False
    seen, waiting = {x}, [x]
    while waiting:
        node = waiting.pop()
        if not isinstance(node.op, SIMPLE) or len(seen) > MAX_OPS:
            return True
        new = [a for a in node.args if a not in seen]
        seen.update(new)
        waiting += new
    return False
