"""Labels: inputs that a derivative is not taken by, and that conditions compare for equality.

For f(z, y) with a branch at y == 1 and the claim ∂f/∂z = g, this branch is no boundary: at y = 1 the claim
is about a function of z alone. No point that is drawn at random meets it. So labels are drawn from the
numbers that they are compared with, and keep their values at the points beside a point.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import sympy

from symad.core.claims import Derivative
from symad.core.graph import Node, topological
from symad.ops.basic.sources import ArrayConstant, inputs_in, symbol_of
from symad.ops.elementwise.selection import Compare
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number

MOST = 1000
"""The maximum number of elements of an array of which numbers are taken."""

USUAL = (0.0, 1.0)
"""The values of a label beside the one that it is compared with, and of two that are compared."""


def parameters(derivative: Derivative | None, inputs: Sequence[Node]) -> frozenset[sympy.Symbol]:
    """The symbols of the inputs that a derivative is not taken by, without directions; none for a value."""
    if derivative is None or derivative.kind in ("", "value"):
        return frozenset()
    moved = {symbol_of(n) for n in (*derivative.wrt, *derivative.v, *derivative.w)}
    return frozenset(symbol_of(n) for n in inputs) - moved


def labels_of(nodes: Sequence[Node], fixed: Collection[sympy.Symbol]) -> Mapping[Node, Array]:
    """The labels of some nodes, with the numbers from which they are drawn.

    Args:
        nodes: everything that is claimed, arguments first.
        fixed: the symbols of parameters.
    """
    found = dict[Node, set[float]]()
    asked = [n for n in nodes if isinstance(n.op, Compare) and n.op.relation in ("==", "!=")] if fixed else []
    for node in (*asked, *asked):  # twice: inputs that are compared with each other have the same numbers
        read = inputs_in([node])
        if all(symbol_of(n) in fixed for n in read):
            found |= dict.fromkeys(read, _numbers(node).union(*(found.get(n, set()) for n in read)))
    return {n: np.array(sorted(c if len(c) > 1 else {*c, *USUAL})) for n, c in found.items()}


def _numbers(node: Node) -> set[float]:
    """The numbers in a condition that are exact in floats, some of its arrays among them."""
    found = set[float]()
    for n in topological([node]):
        if isinstance(n.op, ArrayConstant) and n.op.array.dtype.kind in "iuf":
            found.update(map(float, n.op.array.ravel()[:MOST].tolist()))
        elif (c := number(n)) is not None and abs(c) < 2**53 and float(c) == c:
            found.add(float(c))
    return found
