"""The variables of a traced function: names for the values in its graph and in the bodies of its loops.

Nodes of different bodies may be equal, so a name belongs to a node in one scope: the graph itself (None),
or the body that computes a first output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import NamedTuple

from symad.core.nodes import Node, Op, topological


class Variable(NamedTuple):
    """A name for a node; ``scope`` is the first output of the body that contains it, or None."""

    scope: Node | None
    node: Node
    name: str


Variables = tuple[Variable, ...]


def named(names: Mapping[Node, str], outputs: Iterable[Node]) -> Variables:
    """The variables of the graph that computes ``outputs``, with the names of nodes in any scope."""
    found = scopes(outputs).items() if names else ()
    return tuple(Variable(scope, n, names[n]) for scope, nodes in found for n in nodes if n in names)


def held(variables: Variables, outputs: Iterable[Node]) -> Variables:
    """Those variables whose nodes belong to the graph that computes ``outputs``."""
    found = scopes(outputs) if variables else {}
    return tuple(v for v in variables if v.node in found.get(v.scope, ()))


def scopes(outputs: Iterable[Node]) -> dict[Node | None, dict[Node, None]]:
    """The nodes of a graph and of the bodies of its loops, by scope, in the order of the graph."""
    found: dict[Node | None, dict[Node, None]] = {}
    open_: list[tuple[Node | None, tuple[Node, ...]]] = [(None, tuple(outputs))]
    while open_:
        scope, ends = open_.pop()
        inside = found.setdefault(scope, {})
        for node in topological(ends):
            inside[node] = None
            for name in _body_fields(type(node.op)):
                inner: tuple[Node, ...] = getattr(node.op, name).output_nodes
                open_ += [(inner[0], inner)] if inner[0] not in found else []
    return found


@cache
def _body_fields(kind: type[Op]) -> tuple[str, ...]:
    """The fields of an op that hold graphs, such as the body of a loop."""
    return tuple(f.name for f in fields(kind) if getattr(f.type, "__name__", f.type) == "Graph")
