"""The tables of one graph at one point, one method for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import Number
from symad.core.dims import Dim, format_shape
from symad.core.graph import Graph, Node
from symad.core.questions import flops as flops_of
from symad.cost import flops, live_curve, memory
from symad.display.latex import latex_name
from symad.display.loops import loop_tables
from symad.display.modes import J_T, R_J, Direction, Mode, Modes
from symad.display.notation import Notation, read
from symad.display.recurrences import Recurrences, Values
from symad.display.tables import Math, Table
from symad.errors import DerivativeError
from symad.numbers.dual import Dual
from symad.numbers.number_domains import domain_of
from symad.tracing.wrt import scalar_output

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

    def tables(self) -> list[Table]:
        """First order, then the Hessians of a scalar function, then the costs of whole derivatives."""
        made = [self.forward()]
        if self.runs.output is not None:
            made.append(self.reverse())
            made += loop_tables(self.graph, self.runs, self.names, self.runs.reverse(self.one))
            forwards, notes = list(reversed(self._backwards())), {2: STORED_DUAL, 3: STORED_THRICE}
            for mode in self.modes.second():
                if mode.copies in notes:
                    live = self.runs.stored(mode.copies)
                    made.append(self.second(mode, live, self._backwards(), notes[mode.copies]))
                else:
                    live = {n: mode.copies * self.live[n] for n in forwards}
                    made.append(self.second(mode, live, forwards, NEEDED))
            made.append(self.costs())
        return made

    # ---- first order -----------------------------------------------------------------------------

    def forward(self) -> Table:
        """s_k and t_k, side by side."""
        self.runs.operations.clear()
        found = [self.runs.forward(d.seeds) for d in self.directions]
        headers = [S_K, "is", "value", self._accented(read("t_k"))]
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
        return Table(title, (*headers, OPERATIONS, LIVE), tuple(rows), (self._accented(J_T), NEEDED))

    def reverse(self) -> Table:
        """r_k, from the output back to the inputs."""
        self.runs.operations.clear()
        found = self.runs.reverse(self.one)
        live = self.runs.stored(1)
        rules = ("rule", "shape") if self.names.arrays else ()
        headers = (self._accented(read("r_k")), "is the sum over its uses", "value", *rules, OPERATIONS, LIVE)
        rows = [
            (
                self.names.math("r", n), read(self.names.adjoint(n)), self._entry(n, found),
                *((self.names.rules(n), format_shape(n.shape)) if rules else ()),
                self.runs.operations[n], live[n],
            )
            for n in self._backwards()
        ]  # fmt: skip
        notes = (self._accented(R_J), STORED)
        return Table("Reverse mode: adjoints, last first", headers, tuple(rows), notes)

    def _accented(self, note: Math) -> Math:
        """With dots and bars for tangents and adjoints where these are the names of arrays."""
        if not self.names.arrays:
            return note
        return read(note.latex.replace("t_", r"\dot{s}_").replace("r_", r"\bar{s}_"))

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

    def costs(self) -> Table:
        """Operations and peak memory of symad's graphs for whole derivatives."""
        from symad.derivatives.hessian import MODES, hessian
        from symad.derivatives.jacobian import gradient

        made = [("value", self.graph)]
        made += [(f"gradient, {m}", gradient(self.graph, mode=m)) for m in ("forward", "reverse")]
        made += [(f"Hessian, {m}", hessian(self.graph, mode=m)) for m in MODES]
        rows = tuple((name, flops(g), memory(g)) for name, g in made)
        title = "Whole derivatives, shared subexpressions computed once"
        return Table(title, ("graph", OPERATIONS, "peak bytes"), rows)

    # ---- cells -----------------------------------------------------------------------------------

    def _backwards(self) -> list[Node]:
        return [n for n in reversed(self.names.rows) if n in self.runs.real]

    def _entry(self, node: Node, found: Values) -> Any:
        return found.get(node, 0) if node in self.runs.real else None


def _partial(name: str) -> Math:
    """The header of a column of tangents."""
    return read(r"\text{in }(1, \dots, 1)" if name == "1" else rf"\partial/\partial {latex_name(name)}")
