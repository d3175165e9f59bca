"""The tables of one graph at one point, one method for each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.arrays import Array, Number
from symad.core.dims import Dim, format_shape
from symad.core.graph import Graph, Node
from symad.core.questions import flops as flops_of
from symad.cost import flops, live_curve, memory
from symad.display.latex import latex_name
from symad.display.loops import loop_tables
from symad.display.notation import Notation, read
from symad.display.recurrences import Recurrences, Values
from symad.display.tables import Math, Table
from symad.errors import DerivativeError
from symad.numbers.dual import Dual
from symad.numbers.number_domains import domain_of
from symad.tracing.wrt import scalar_output

if TYPE_CHECKING:
    import sympy as sp

MAX_SHOWN_DIRECTIONS = 3
"""The number of scalar inputs above which one direction is shown, all ones; also used for arrays."""

J_T = read(r"t_k = \sum_p \partial s_k/\partial s_p\, t_p")
R_J = read(r"r_p = \sum_k r_k\, \partial s_k/\partial s_p")
FOF = read(r"\partial_i\partial_j g_k = H_{kj}\,\partial_i g_{k-1} + J_k\,\partial_i\partial_j g_{k-1}")
FOR = read(r"r_{k-1} = (r^1 J_k,\ r^1 H_{kj} + r^2 J_k),\ r_m = (1, 0)")
ROF = read(r"r_{k-1} = ((r_k)_1 J_k + (r_k)_2 H_{ki},\ (r_k)_2 J_k),\ r_m = (0, 1)")
ROR = read(r"\dot r_k = J_k \dot r_{k-1},\ \dot s_{k-1} = r_k H_{ki} + \dot s_k J_k,\ \dot s_m = 0")
"""The recurrences, along a chain; J_k = ∂f_k and H_kj = ∂²f_k ∂g_{k-1}/∂x_j."""

NEEDED = "Live: what is still needed, values with their tangents."
STORED = "Live: all states up to this one, and the adjoints in use."
STORED_DUAL = "Live: as in reverse mode, but Dual numbers."
STORED_THRICE = "Live: as in reverse mode, for each state also its adjoint and tangent."

S_K, OPERATIONS, LIVE = read("s_k"), "flops", "live bytes"


@dataclass(frozen=True)
class Direction:
    """A tangent of the inputs, with a name: an input, or 1 for all ones."""

    name: str
    seeds: Values


class Writer:
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
        curve = live_curve(graph, self.runs.order)
        self.live = dict(zip(self.runs.order, curve, strict=True))

    def _directions(self) -> list[Direction]:
        inputs = self.graph.input_nodes
        if len(inputs) <= MAX_SHOWN_DIRECTIONS and not any(node.shape for node in inputs):
            pairs = zip(self.graph.inputs, inputs, strict=True)
            return [Direction(str(symbol), {node: self.one}) for symbol, node in pairs]
        return [Direction("1", {node: self._ones(node.shape) for node in inputs})]

    def _ones(self, shape: tuple[int, ...]) -> Array | float:
        return np.full(shape, self.one)[()]

    def tables(self) -> list[Table]:
        """First order, then the Hessians of a scalar function, then the costs of whole derivatives."""
        made = [self.forward()]
        if self.runs.output is not None:
            count = range(len(self.directions))
            made.append(self.reverse())
            made += loop_tables(self.graph, self.runs, self.names, self.runs.reverse(self.one))
            made += [self.forward_over_forward(i, j) for i in count for j in count if i <= j]
            for mode in (self.forward_over_reverse, self.reverse_over_forward, self.reverse_over_reverse):
                made += [mode(direction) for direction in self.directions]
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

    def forward_over_forward(self, i: int, j: int) -> Table:
        """s_k = Dual(g_k, ∂_j g_k) and t_k = Dual(∂_i g_k, ∂_i ∂_j g_k)."""
        first, second = self.directions[i], self.directions[j]
        self.runs.operations.clear()
        t_i = self.runs.forward(first.seeds)
        t_j, t_ij = self.runs.forward_over_forward(t_i, second.seeds)
        columns = (
            _pair("s_k", "g", _d(second.name, "g")),
            _pair("t_k", _d(first.name, "g"), _d(first.name, _d(second.name, "g"))),
        )
        rows = [
            (self.names.math("s", n), self._dual(n, self.runs.states, t_j), self._dual(n, t_i, t_ij),
             self.runs.operations[n], 4 * self.live[n])
            for n in self.names.rows
            if n in self.runs.real
        ]  # fmt: skip
        both = first.name if i == j else f"{first.name} and {second.name}"
        return self._hessian("forward over forward", both, columns, rows, (FOF, NEEDED))

    def forward_over_reverse(self, direction: Direction) -> Table:
        """s_k = Dual(g_k, ∂_j g_k), then r_k = Dual(∂f/∂s_k, ∂²f/∂s_k∂x_j)."""
        r = _pair("r_k", R, _d(direction.name, R))
        return self._dual_reverse("forward over reverse", direction, self.runs.forward_over_reverse, r, FOR)

    def reverse_over_forward(self, direction: Direction) -> Table:
        """s_k = Dual(g_k, ∂_i g_k), then the reverse of the dual program, seed (0, 1)."""
        r = _pair("r_k", _d(direction.name, R), R)
        return self._dual_reverse("reverse over forward", direction, self.runs.reverse_over_forward, r, ROF)

    def _dual_reverse(
        self,
        mode: str,
        direction: Direction,
        sweep: Callable[..., tuple[Values, Values]],
        r: Math,
        note: Math,
    ) -> Table:
        self.runs.operations.clear()
        t = self.runs.forward(direction.seeds)
        r1, r2 = sweep(self.one, t)
        live, states = self.runs.stored(2), self.runs.states
        rows = [
            (self.names.math("s", n), self._dual(n, states, t), self._dual(n, r1, r2),
             self.runs.operations[n], live[n])
            for n in self._backwards()
        ]  # fmt: skip
        columns = (_pair("s_k", "g", _d(direction.name, "g")), r)
        return self._hessian(mode, direction.name, columns, rows, (note, STORED_DUAL))

    def reverse_over_reverse(self, direction: Direction) -> Table:
        """r_k, then ṙ_k = J ṙ_{k−1} forwards, then ṡ_{k−1} = r_k H_ki + ṡ_k J_k backwards."""
        self.runs.operations.clear()
        r = self.runs.reverse(self.one)
        r_dot = self.runs.forward(direction.seeds)
        s_dot = self.runs.reverse_over_reverse(r, r_dot)
        live = self.runs.stored(3)
        columns = (read("r_k"), read(r"\dot r_k"), read(r"\dot s_k"))
        rows = [
            (
                self.names.math("s", n),
                *(self._entry(n, v) for v in (r, r_dot, s_dot)),
                self.runs.operations[n],
                live[n],
            )
            for n in self._backwards()
        ]
        return self._hessian("reverse over reverse", direction.name, columns, rows, (ROR, STORED_THRICE))

    def _hessian(
        self,
        mode: str,
        name: str,
        columns: tuple[Math, ...],
        rows: list[Any],
        notes: tuple[Any, ...],
    ) -> Table:
        where = "(1, ..., 1)" if name == "1" else name
        headers = (S_K, *columns, OPERATIONS, LIVE)
        return Table(f"Hessian, {mode}, direction {where}", headers, tuple(rows), notes)

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

    def _entry(self, node: Node, found: Values) -> sp.Expr:
        return found.get(node, 0) if node in self.runs.real else None

    def _dual(self, node: Node, values: Values, tangents: Values) -> Dual:
        return Dual(values.get(node, 0), tangents.get(node, 0))


R = r"\partial f/\partial s_k"


def _partial(name: str) -> Math:
    """The header of a column of tangents."""
    return read(r"\text{in }(1, \dots, 1)" if name == "1" else rf"\partial/\partial {latex_name(name)}")


def _d(name: str, of: str) -> str:
    return rf"\partial_{{{latex_name(name)}}} {of}"


def _pair(name: str, first: str, second: str) -> Math:
    return read(rf"{name} = ({first},\ {second})")
