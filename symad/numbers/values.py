"""Values of nodes, from the values of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import ArrayLike, Number
from symad.core.dims import is_concrete
from symad.core.graph import Graph, Node, topological
from symad.core.process import without_collecting
from symad.core.questions import evaluate
from symad.errors import EvaluationError
from symad.numbers.number_domains import FLOATS, AnyDomain, domain_of


def unchecked(
    outputs: Sequence[Node], point: Mapping[Node, Number], order: Sequence[Node] | None = None
) -> list[Any]:
    """The values of some nodes; `Undefined` if an exact value does not exist.

    ``order`` is the topological order of the outputs, if it is known already.
    """
    domain = domain_of(point.values())
    evaluated = _evaluated if domain is FLOATS else _paused
    return evaluated(outputs, point, topological(outputs) if order is None else order, domain)


def _evaluated(
    outputs: Sequence[Node], point: Mapping[Node, Number], order: Sequence[Node], domain: AnyDomain
) -> list[Number]:
    found: dict[Node, Number] = dict(point)
    with np.errstate(all="ignore"):
        for node in order:
            if node not in found:
                if node.shape and not is_concrete(node.shape):
                    raise EvaluationError(f"the size {node.shape} is not fixed by the arrays given")
                found[node] = value_of(node, found, domain)
    return [found[o] for o in outputs]


_paused = without_collecting(_evaluated)
"""The same for numbers that are objects: collections would traverse each of them, and free none."""


def outputs_at(graph: Graph, *values: Number) -> list[Any]:
    """The outputs of a graph at values of its inputs, as `unchecked` gives them."""
    return unchecked(graph.output_nodes, dict(zip(graph.input_nodes, values, strict=True)), graph.nodes)


def value_of(node: Node, found: Mapping[Node, Number], domain: AnyDomain) -> Any:
    """The value of one node from those of its arguments, constants in the numbers of a domain."""
    value = evaluate(node.op, tuple([found[a] for a in node.args]))
    return value if node.args else _known(value, domain)


def _known(value: ArrayLike, domain: AnyDomain) -> Any:
    """A constant in the number domain of this evaluation."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, np.ndarray):
        return domain.number(value)
    if value.dtype == bool:
        return value
    if domain is FLOATS:
        return value.astype(np.float64, copy=False)  # integers would overflow, and narrow floats lose digits
    return np.frompyfunc(lambda v: domain.number(v), 1, 1)(value.astype(object))
