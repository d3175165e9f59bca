"""The domain of a function: outside of it a claim about the derivative says nothing.

log x has no value for x < 0, and so no derivative there: 1/|x| is as correct as 1/x. A formula without kinks
or roots that is wrong outside of the domain is also wrong inside, so that points outside can refute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input
from symad.verification.fields.prime_fields import Array
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
