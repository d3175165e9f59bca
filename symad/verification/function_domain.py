"""The domain of a function: outside of it a claim about the derivative says nothing.

log x has no value for x < 0, and so no derivative there: 1/|x| is as correct as 1/x. A formula without kinks
or roots that is wrong outside of the domain is also wrong inside, so that points outside can refute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from symad.core.arrays import Number
from symad.core.claims import Derivative
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input
from symad.verification.fields.prime_fields import Array
from symad.verification.points import PointSet
from symad.verification.terms.discontinuities import is_jump
from symad.verification.terms.positive_domains import is_partial
from symad.verification.values.scouting import as_floats

Holds: TypeAlias = Callable[[Mapping[Node, Any]], Array]


def have_values(function: Sequence[Node], point: Mapping[Node, Number]) -> Array:
    """For each element of some nodes, in order: true if it has a value in floats, perhaps an infinite one.

    Where an op has no value at all, one flag stands for all elements. Inputs that the point leaves out,
    because the derivative does not depend on them, are 1.
    """
    others = [n for n in topological(tuple(function)) if isinstance(n.op, Input) and n not in point]
    given = {node: as_floats(value) for node, value in point.items()}
    given.update({n: np.ones([int(d) for d in n.shape]) if n.shape else 1.0 for n in others})
    try:
        values = unchecked(function, given)
    except OverflowError:
        return np.ones(1, dtype=bool)
    except (SymadError, ArithmeticError, ValueError):
        return np.zeros(1, dtype=bool)
    return np.asarray(~np.isnan(np.concatenate([np.asarray(v, dtype=float).ravel() for v in values])))


def where_claimed(
    claim: Derivative | None, function: Sequence[Node], sides: Sequence[Node], domain: Node | None = None
) -> Holds | None:
    """A function from points to flags: the elements of a derivative claimed there; None for all, everywhere.

    Args:
        claim: the kind of derivative; None for claims about other things.
        function: the differentiated nodes; their sizes are numbers.
        sides: the nodes that are compared.
        domain: positive where something is claimed.
    """
    if domain is not None:
        return partial(_inside, domain, where_claimed(claim, function, sides))
    if claim is None or claim.kind == "value":
        return None
    if not any(is_jump(n) or is_partial(n) for n in topological(tuple(sides))):
        return None
    by_rows = claim.kind == "jacobian"

    def holds(point: Mapping[Node, Number]) -> Array:
        found = have_values(function, point)
        return found[:, None] if by_rows else np.asarray(found.all())

    return holds


def _inside(domain: Node, holds: Holds | None, point: Mapping[Node, Number]) -> Array:
    """Where something is claimed at a point that may lie outside of a domain."""
    if not PointSet((), 0, domain=domain).holds({n: as_floats(v) for n, v in point.items()}):
        return np.zeros((), dtype=bool)
    return np.ones((), dtype=bool) if holds is None else holds(point)
