"""Recurrences explained: the step and its adjoint as formulas, and the first and last steps as numbers.

For h_t = f(h_{t−1}, x_t, W) reverse mode runs backwards in time: the adjoint of h_t is what its uses outside
of the loop contribute, plus h̄_{t+1} ∂f/∂h_t; each step adds to W̄ (backpropagation through time).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from symad.core.graph import Graph, Node, Tangent
from symad.display.films import short
from symad.display.notation import MAX_FORMULA, Notation, read
from symad.display.recurrences import Recurrences, Values
from symad.display.tables import Math, Table
from symad.display.typesetting.derivation import written
from symad.display.typesetting.pieces import LatexAtom, Piece, accented, name_of, total, write
from symad.display.typesetting.recurrences import formal_names
from symad.higher_order.scan import Scan
from symad.numbers.values import unchecked
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import input_node
from symad.transforms.cotangents import pull

ENDS = 3
"""The number of steps that are shown at each end of a loop."""


def loop_tables(graph: Graph, runs: Recurrences, names: Notation, r: Values) -> Iterator[Table]:
    """A table for each loop that depends on inputs, from the adjoints of a scalar."""
    for node in names.rows:
        if isinstance(node.op, Scan) and node in runs.real and node in r and node.shape[0]:
            yield _table(graph, node, node.op, runs, names, r[node])


def step_lines(graph: Graph, runs: Recurrences, r: Values) -> dict[Node, list[tuple[Math, Math]]]:
    """The value and the adjoint of each state of the loops, for the boxes of a picture."""
    made: dict[Node, list[tuple[Math, Math]]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Scan) and node in r and node.shape[0]:
            state, (seed, *bars) = _state(graph, node), _backwards(node.op)
            totals = _totals(node, node.op, runs, r[node], (seed, bars[0]))
            pairs = enumerate(zip(runs.states[node], totals, strict=True), 1)
            adjoint = accented(r"\bar", state)
            made[node] = [(_line(state, k, h), _line(adjoint, k, bar)) for k, (h, bar) in pairs]
    return made


def _line(name: str, k: int, value: Any) -> Math:
    shown, named = short(value), read(f"{name}_{{{k}}}")
    return Math(f"{named.text} = {shown.text}", f"{named.latex} = {shown.latex}")


def _state(graph: Graph, node: Node) -> str:
    return formal_names(graph, node)[0][0].removesuffix("_{0}")


def _backwards(op: Scan) -> list[Any]:
    """The seed of a step's adjoint, and what the step adds to the adjoints of its inputs."""
    (output,) = op.body.output_nodes
    seed = input_node(sympy.Dummy(real=True), output.shape)
    return [seed, *pull([output], [seed], list(op.body.input_nodes))]


def _table(graph: Graph, node: Node, op: Scan, runs: Recurrences, names: Notation, r: Any) -> Table:
    state, (seed, *bars) = _state(graph, node), _backwards(op)
    totals = _totals(node, op, runs, r, (seed, bars[0]))
    steps = len(totals)
    every = [(k, *pair) for k, pair in enumerate(zip(runs.states[node], totals, strict=True), 1)]
    rows = [*every[:ENDS], ("…", "", ""), *every[-ENDS:]] if steps > 2 * ENDS else every
    headers = ("t", read(f"{state}_{{t}}"), read(accented(r"\bar", state) + "_{t}"))
    notes = tuple(_formulas(graph, node, op))
    return Table(f"The loop {names.math('s', node).text}, {steps} steps", headers, tuple(rows), notes)


def _totals(node: Node, op: Scan, runs: Recurrences, r: Any, step: tuple[Node, Tangent]) -> list[Any]:
    """The adjoint of each state: that of its uses outside of the loop, and that of the next state."""
    seed, bar = step
    first, *rest = (runs.states[a] for a in node.args)
    states, steps = runs.states[node], int(node.shape[0])
    totals: list[Any] = [None] * steps
    carried: Any = 0
    for k in reversed(range(steps)):
        totals[k] = r[k] + carried
        if isinstance(bar, Node):
            inner = [states[k - 1] if k else first, *(x[k] for x in rest[: op.slices]), *rest[op.slices :]]
            point = dict(zip(op.body.input_nodes, inner, strict=True)) | {seed: totals[k]}
            (carried,) = unchecked([bar], point)
    return totals


def _formulas(graph: Graph, node: Node, op: Scan) -> Iterator[Math]:
    """The step, and what one step adds to the adjoints of its inputs; long steps part by part.

    Each part and the new state have a name at the time t. Their adjoints are sums over the parts that use
    them, last first, as in reverse mode of the whole graph.
    """
    formal, pieces = formal_names(graph, node)
    (output,) = op.body.output_nodes
    state, inputs = formal[0].removesuffix("_{0}"), op.body.input_nodes
    parts = _parts(graph, op) | {output: state}
    known = dict(zip(inputs, pieces, strict=True))
    known |= {part: LatexAtom(f"{name}_{{t}}") for part, name in parts.items()}
    for part in parts:
        rest = {n: piece for n, piece in known.items() if n is not part}
        yield read(f"{write(known[part])} = {write(written(part, rest))}")
    terms: dict[Node, list[Piece]] = {}
    for part, name in reversed(parts.items()):
        seed = input_node(sympy.Dummy(real=True), part.shape)
        known[seed] = LatexAtom(accented(r"\bar", name) + "_{t}")
        if part is not output and part in terms:
            yield read(f"{write(known[seed])} = {_sum(terms[part], part)}")
        wrt = [n for n in (*parts, *inputs) if n is not part]
        for n, bar in zip(wrt, pull([part], [seed], wrt), strict=True):
            if isinstance(bar, Node) and (part is output or part in terms):
                terms.setdefault(n, []).append(written(bar, known))
    for k, (name, given) in enumerate(zip((state, *formal[1:]), inputs, strict=True)):
        below = "" if k > op.slices else "_{t - 1}" if k == 0 else "_{t}"
        formula = _sum(terms.get(given, []), given)
        if formula and len(formula) <= MAX_FORMULA:
            yield read(rf"{accented(chr(92) + 'bar', name)}{below} \mathrel{{+=}} {formula}")


def _sum(terms: Sequence[Piece], node: Node) -> str:
    return write(total([1] * len(terms), terms, [bool(node.shape)] * len(terms))) if terms else ""


MAX_WHOLE = 8
"""The number of operations of a step up to which it is one formula."""


def _parts(graph: Graph, op: Scan) -> dict[Node, str]:
    """The user's variables in a step that is too long for one formula, in the order of the step."""
    (output,) = op.body.output_nodes
    if sum(bool(n.args) for n in op.body.nodes) <= MAX_WHOLE:
        return {}
    taken = {str(s) for s in graph.inputs}
    names = {
        v.node: v.name
        for v in graph.variables
        if v.scope is output and v.node.args and not isinstance(v.node.op, ShapingOp) and v.name not in taken
    }
    once = Counter(names.values())
    return {n: name_of(names[n]) for n in op.body.nodes if n in names and once[names[n]] == 1 and n != output}
