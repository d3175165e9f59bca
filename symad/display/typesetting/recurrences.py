"""Recurrences in formulas: ``scan(h₀, x, W)``, and below it the step h_t = f(h_{t−1}, x_t, W)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symad.core.graph import Graph, Node
from symad.display.typesetting.pieces import LatexAtom, Piece, name_of_input, write
from symad.display.typesetting.rules import WHOLE, operator, typeset
from symad.higher_order.scan import Scan
from symad.ops.basic.sources import Constant, Input

STATES = ("h", "s", "c", "z", r"\eta")
"""Letters for a state; the first one that is not an input is used."""

Loops = Mapping[Graph, str]
"""The index of each body, empty if there is only one body."""


def loops_of(graph: Graph) -> dict[Graph, str]:
    """All bodies of recurrences, nested ones after those that contain them."""
    bodies = list(dict.fromkeys(node.op.body for node in _scans(graph)))
    return {body: f"_{{{k}}}" if len(bodies) > 1 else "" for k, body in enumerate(bodies, 1)}


def _scans(graph: Graph) -> Iterator[Any]:
    for node in graph.nodes:
        if isinstance(node.op, Scan):
            yield node
            yield from _scans(node.op.body)


def scan_piece(node: Any, args: Sequence[Piece], loops: Loops) -> Piece:
    """All states: the operator of its step, applied to the first state, the inputs and the constants."""
    return operator("scan", args, loops.get(node.op.body, ""))


def formal_names(
    graph: Graph, node: Any, times: tuple[str, str] = ("t - 1", "t")
) -> tuple[list[str], list[Piece]]:
    """The names of the arguments of a step in its definition, and their pieces at the time t."""
    taken = {name_of_input(symbol) for symbol in graph.inputs}
    state = next((s for s in STATES if s not in taken), STATES[-1])
    count, names = 1 + node.op.slices, []
    pieces: list[Piece] = []
    for k, (arg, local) in enumerate(zip(node.args, node.op.body.input_nodes, strict=True)):
        name = state if k == 0 else _name_of(arg, f"x_{{{k}}}" if k < count else f"k_{{{k + 1 - count}}}")
        names.append(f"{state}_{{0}}" if k == 0 else name)
        at = times[min(k, 1)]
        places = (at, *[WHOLE] * len(local.shape))
        inner = f"{{{name}}}" if "_" in name else name
        pieces.append(
            LatexAtom(f"{inner}_{{{at}}}", base=name, places=places) if k < count else LatexAtom(name)
        )
    return names, pieces


def arguments_named(graph: Graph, node: Any) -> dict[Node, str]:
    """The arguments of a loop that its step calls by another name: h_0 for the first state."""
    names, _ = formal_names(graph, node)
    return {arg: name for arg, name in zip(node.args, names, strict=True) if _name_of(arg, "") != name}


def _name_of(arg: Node, otherwise: str) -> str:
    if isinstance(arg.op, Input):
        return name_of_input(arg.op.symbol)
    return write(typeset(arg.op, arg, ())) if isinstance(arg.op, Constant) else otherwise


def definitions(graph: Graph) -> Iterator[tuple[str, Graph, list[Piece]]]:
    """For each body the left side of its definition, the body, and the pieces of its inputs."""
    loops, found = loops_of(graph), set()
    for node in _scans(graph):
        if node.op.body not in found:
            found.add(node.op.body)
            names, pieces = formal_names(graph, node)
            state = names[0].removesuffix("_{0}")
            called = operator("scan", [LatexAtom(n) for n in names], loops[node.op.body])
            yield rf"{write(called)} \colon \quad {state}_{{t}}", node.op.body, pieces
