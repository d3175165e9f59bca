"""The tables of one graph at one point, one method for each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.dims import Dim, format_shape
from symad.core.graph import Graph, Node, Tangent
from symad.core.questions import flops as flops_of
from symad.cost import flops, live_curve, memory
from symad.display.latex import latex_name
from symad.display.modes import J_T, R_J, Direction, Mode, Modes
from symad.display.notation import MAX_FORMULA, Notation, read
from symad.display.recurrences import Recurrences, Values
from symad.display.tables import Math, Table, boxed
from symad.display.typesetting.derivation import written
from symad.display.typesetting.pieces import LatexAtom, Piece, accented, name_of, total, write
from symad.display.typesetting.recurrences import arguments_named, formal_names
from symad.errors import DerivativeError
from symad.higher_order.scan import Scan
from symad.numbers.dual import Dual
from symad.numbers.number_domains import domain_of
from symad.numbers.values import unchecked
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import input_node
from symad.tracing.wrt import scalar_output
from symad.transforms.cotangents import pull

# ---- recurrences explained -----------------------------------------------------------------------

# For h_t = f(h_{t−1}, x_t, W) reverse mode runs backwards in time: the adjoint of h_t is what its uses
# outside of the loop contribute, plus h̄_{t+1} ∂f/∂h_t; each step adds to W̄ (backpropagation through
# time).


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
    return boxed([read(f"{name}_{{{k}}}")], [value])


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
    given = arguments_named(graph, node).items()
    others = [f"{read(name).text} = {read(write(names.piece('s', arg))).text}" for arg, name in given]
    title = ", ".join((f"The loop {names.math('s', node).text}", f"{steps} steps", *others))
    return Table(title, headers, tuple(rows), notes)


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


MAX_SHOWN_DIRECTIONS = 3
"""The number of scalar inputs above which one direction is shown, all ones; also used for arrays."""

NEEDED = "Live: what is still needed, values with their tangents."
STORED = "Live: all states up to this one, and the adjoints in use."
STORED_DUAL = "Live: as in reverse mode, but Dual numbers."
STORED_THRICE = "Live: as in reverse mode, for each state also its adjoint and tangent."

S_K, OPERATIONS, LIVE = read("s_k"), "flops", "live bytes"


class TableWriter:
    """The tables of one graph at one point."""

    def __init__(self, graph: Graph, point: Mapping[Node, Number]) -> None:
        self.graph = graph
        try:
            scalar: Node | None = scalar_output(graph, "an adjoint")
        except DerivativeError:
            scalar = None
        self.runs = Recurrences(scalar, graph.output_nodes, point)
        self.names = Notation(self.runs, graph)
        self.one = domain_of(point.values()).number(1)
        self.directions = self._directions()
        self.modes = Modes(self.runs, self.directions, self.one)
        curve = live_curve(graph, self.runs.order)
        self.live = dict(zip(self.runs.order, curve, strict=True))

    def _directions(self) -> list[Direction]:
        inputs = self.graph.input_nodes
        if len(inputs) <= MAX_SHOWN_DIRECTIONS and not any(node.shape for node in inputs):
            pairs = zip(self.graph.inputs, inputs, strict=True)
            return [Direction(str(symbol), {node: self.one}) for symbol, node in pairs]
        return [Direction("1", {n: np.full(n.shape, self.one)[()] for n in inputs})]

    def tables(self, symbolic: str = "") -> list[Table]:
        """First order, then the Hessians of a scalar function, then the costs of whole derivatives.

        ``symbolic`` names inputs without whose values there are no tables of Hessians.
        """
        made = [self.forward()]
        if self.runs.output is not None:
            made.append(self.reverse())
            made += loop_tables(self.graph, self.runs, self.names, self.runs.reverse(self.one))
            forwards, notes = list(reversed(self._backwards())), {2: STORED_DUAL, 3: STORED_THRICE}
            for mode in () if symbolic else self.modes.second():
                if mode.copies in notes:
                    live = self.runs.stored(mode.copies)
                    made.append(self.second(mode, live, self._backwards(), notes[mode.copies]))
                else:
                    live = {n: mode.copies * self.live[n] for n in forwards}
                    made.append(self.second(mode, live, forwards, NEEDED))
            note = f"The tables of Hessians need numbers for {symbolic}." if symbolic else ""
            made.append(self.costs(note))
        return made

    # ---- first order -----------------------------------------------------------------------------

    def forward(self) -> Table:
        """s_k and t_k, side by side."""
        self.runs.operations.clear()
        found = [self.runs.forward(d.seeds) for d in self.directions]
        headers = [S_K, "is", "value", read("t_k")]
        headers += [_partial(d.name) for d in self.directions]
        rows = []
        for node in self.names.rows:
            names, value = self.names, self.runs.states[node]
            cells: list[Any] = [names.math("s", node), read(names.state(node)), value]
            cells += [read(names.tangent(node)), *(self._entry(node, t) for t in found)]
            own: Dim = flops_of(node.op, node)
            operations = own + self.runs.operations[node]
            rows.append((*cells, operations, self.live[node] * (1 + len(found))))
        title = "Forward mode: states and tangents"
        return Table(title, (*headers, OPERATIONS, LIVE), tuple(rows), (self._note(J_T), NEEDED))

    def reverse(self) -> Table:
        """r_k, from the output back to the inputs."""
        self.runs.operations.clear()
        found = self.runs.reverse(self.one)
        live = self.runs.stored(1)
        rules = ("rule", "shape") if self.names.arrays else ()
        headers = (read("r_k"), "is the sum over its uses", "value", *rules, OPERATIONS, LIVE)
        rows = [
            (
                self.names.math("r", n), read(self.names.adjoint(n)), self._entry(n, found),
                *((self.names.rules(n), format_shape(n.shape)) if rules else ()),
                self.runs.operations[n], live[n],
            )
            for n in self._backwards()
        ]  # fmt: skip
        notes = (self._note(R_J), STORED)
        return Table("Reverse mode: adjoints, last first", headers, tuple(rows), notes)

    def _note(self, note: Math) -> Math:
        """The recurrence, and how named arrays are written."""
        named = next(iter(self.names.named.values()), "")
        if not self.names.arrays or not named:
            return note
        letter, accent = ("t", r"\dot") if note is J_T else ("r", r"\bar")
        what = rf",\ {letter}_k \text{{ of }} {named} \text{{ is }} {accented(accent, named)}"
        return read(note.latex + what)

    # ---- second order ----------------------------------------------------------------------------

    def second(self, mode: Mode, live: Mapping[Node, Dim], order: Sequence[Node], note: str) -> Table:
        """Each state with its dual numbers, or its adjoints and tangents."""
        rows = []
        for n in order:
            cells = [Dual(*(v.get(n, 0) for v in values)) if len(values) == 2 else self._entry(n, *values)
                     for _, values in mode.columns]  # fmt: skip
            rows.append((self.names.math("s", n), *cells, mode.operations[n], live[n]))
        headers = (S_K, *(head for head, _ in mode.columns), OPERATIONS, LIVE)
        return Table(f"Hessian, {mode.title}", headers, tuple(rows), (mode.note, note))

    # ---- costs -----------------------------------------------------------------------------------

    def costs(self, note: str = "") -> Table:
        """Operations and peak memory of symad's graphs for whole derivatives."""
        from symad.derivatives.hessian import MODES, hessian
        from symad.derivatives.jacobian import gradient

        made = [("value", self.graph)]
        made += [(f"gradient, {m}", gradient(self.graph, mode=m)) for m in ("forward", "reverse")]
        made += [(f"Hessian, {m}", hessian(self.graph, mode=m)) for m in MODES]
        rows = tuple((name, flops(g), memory(g)) for name, g in made)
        title = "Whole derivatives, shared subexpressions computed once"
        return Table(title, ("graph", OPERATIONS, "peak bytes"), rows, (note,) if note else ())

    # ---- cells -----------------------------------------------------------------------------------

    def _backwards(self) -> list[Node]:
        return [n for n in reversed(self.names.rows) if n in self.runs.real]

    def _entry(self, node: Node, found: Values) -> Any:
        return found.get(node, 0) if node in self.runs.real else None


def _partial(name: str) -> Math:
    """The header of a column of tangents."""
    return read(r"\text{in }(1, \dots, 1)" if name == "1" else rf"\partial/\partial {latex_name(name)}")
