"""Graphs as programs with one statement for each node, in an order that depends only on the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from symad.core.contents import readers
from symad.core.dims import Dim, plus
from symad.core.graph import Graph, Node, Op, op_of, topological
from symad.core.identifiers import short_name
from symad.core.questions import question
from symad.derivatives.implicit import Root, residual_at, slope_at
from symad.errors import LoweringError
from symad.higher_order.scan import Scan, backwards
from symad.numeric.passes.bodies import LoopValue, pieces, values
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    NewAxis,
    Position,
    Read,
    Span,
    StepNumber,
    Value,
    row,
    whole,
)
from symad.numeric.program.loops import Carried, FindRoot, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Block, Comment, Statement, Store
from symad.numeric.scheduling.plans import number_of
from symad.numeric.scheduling.roles import NO_ROLES, Roles, name_of, stem_of
from symad.ops.arrays.softmax import Softmax
from symad.ops.arrays.stacking import Concatenate, Stack, concatenate
from symad.ops.basic.shaping import Broadcast, Reshape, reshape, slice_axis
from symad.ops.basic.sources import ArrayConstant, Input, Iota, Source, constant_value, symbol_of
from symad.ops.elementwise.apply import Apply


def schedule(graph: Graph, roles: Roles) -> Program:
    """The program of a prepared graph.

    Args:
        graph: all ops have rules in the target; recurrences are `Loop` or `Scan`.
        roles: the names of results and cotangents.
    """
    inputs = {node: Value(short_name(symbol_of(node)), node.shape) for node in graph.input_nodes}
    scope = Scope({node: Read(value) for node, value in inputs.items()}, roles)
    scope.compute(graph.output_nodes)
    results = tuple(scope.known[output] for output in graph.output_nodes)
    return Program(graph.name, tuple(inputs.values()), scope.block, results, graph.structure, roles.labels)


class Scope:
    """The nodes that have expressions so far, and the statements that compute them.

    The body of a loop has a scope of its own, since its nodes may be equal to nodes outside.
    """

    def __init__(self, known: dict[Node, Expression], roles: Roles) -> None:
        self.known = known
        self.roles = roles
        self.statements: list[Statement] = []
        self.places: dict[Node, tuple[Value, Position]] = {}
        """The nodes of a loop's body that are to be stored in each step, with their arrays and rows."""
        self.order: list[Node] = []
        self.scores: frozenset[Node] = frozenset()
        self.outputs: frozenset[Node] = frozenset()

    @cached_property
    def readers(self) -> dict[Node, list[Node]]:
        """For each node the nodes that read it."""
        return readers(self.order)

    @property
    def block(self) -> Block:
        """The statements so far."""
        return tuple(self.statements)

    def compute(self, outputs: Iterable[Node]) -> None:
        """Find expressions for some nodes and for the nodes that they need."""
        self.outputs = frozenset(outputs)
        self.order = topological(outputs)
        self.scores = frozenset(a for node in self.order if isinstance(node.op, Softmax) for a in node.args)
        for node in self.order:
            if node not in self.known:
                plan(node.op, node, self)
                if self.roles.value and self.roles.results.get(node) == self.roles.value:
                    self.statements.append(Comment(f"backwards: x_bar = ∂{self.roles.value}/∂x"))

    def assign(self, node: Node, expression: Expression) -> None:
        """Add the statement that computes a node, as a new value or into its row of a stored array."""
        if node in self.places:
            array, position = self.places.pop(node)
            self.statements.append(Store(array, position, expression))
            self.known[node] = row(Read(array), position)
            return
        value = self.value_of(node)
        self.statements.append(Assign(value, expression))
        self.known[node] = Read(value)

    def value_of(self, node: Node, default: str = "", variable: str = "") -> Value:
        """A new value for a node, named by its role, a variable, its op, or ``default``."""
        label = self.roles.results.get(node)
        if label:
            return Value(label, node.shape, True)
        if variable := variable or self.roles.variable(node):
            return Value(variable, node.shape)
        bar = ""
        if self.roles.primals:
            primals = (name_of(self.known.get(primal)) for primal in self.roles.primals_of(node))
            bar = next(filter(None, primals), "")
        if bar or node in self.scores:
            return Value(f"{bar}_bar" if bar else "S", node.shape)
        names = tuple([name_of(self.known[a]) for a in node.args])
        return Value(stem_of(node, names) or default, node.shape)

    def arguments(self, node: Node) -> tuple[Expression, ...]:
        """The expressions of a node's arguments."""
        return tuple([self.known[arg] for arg in node.args])


@question
def plan(op: Op, node: Node, scope: Scope) -> None:
    """Add the statements that compute ``node`` to the scope."""


@plan.dispatch
def plan_op(op: Op, node: Node, scope: Scope) -> None:
    """By default, an op is one statement."""
    scope.assign(node, Compute(op, scope.arguments(node), node.shape))


@plan.dispatch
def plan_source(op: Source, node: Node, scope: Scope) -> None:
    """A source is written where it is read."""
    scope.known[node] = Compute(op, (), node.shape)


@plan.dispatch
def plan_pack(op: Pack, node: Node, scope: Scope) -> None:
    """A result that packs entries is written where it is returned."""
    scope.known[node] = Compute(op, scope.arguments(node), node.shape)


@plan.dispatch
def plan_input(op: Input, node: Node, scope: Scope) -> None:
    """An input that is none of the graph's.

    Raises:
        LoweringError: always, as the other inputs have expressions.
    """
    raise LoweringError(f"the graph uses {op.symbol}, which is none of its inputs")


# ---- recurrences as loops ------------------------------------------------------------------------

# States that are read at all steps are the rows of one array h of T + 1 rows. Row 0 is the initial state, and
# step t computes row t + 1 from row t. So h[1:] are the states and h[:T] the states before each step, without
# a copy. If only the last state is read, the loop carries the state in a variable. A loop over reversed
# arrays runs backwards over the arrays themselves.


@plan.dispatch
def plan_scan(op: Scan, node: Node, scope: Scope) -> None:
    plan_loop_values([node], scope)


@plan.dispatch
def plan_loop(op: LoopValue, node: Node, scope: Scope) -> None:
    """One statement computes all values of the loop."""
    plan_loop_values(values(node), scope)


@dataclass(frozen=True)
class Clock:
    """The steps of a loop: its index t, the number of steps, and its direction.

    In step t, the loop reads row t of arrays in the order of memory. If ``turned``, the loop runs backwards
    and its first step is t = count − 1.
    """

    index: Value
    count: Dim
    turned: bool

    @property
    def now(self) -> Position:
        """The row of this step, in the order of memory."""
        return Position(0, self.index)

    @property
    def counted(self) -> Position:
        """The number of steps before this one."""
        return Position(plus(self.count, -1), self.index, -1) if self.turned else self.now

    @property
    def before(self) -> Position:
        """The row of the state before this step, in an array of count + 1 rows."""
        return Position(1, self.index) if self.turned else self.now

    @property
    def after(self) -> Position:
        """The row of the state after this step."""
        return self.now if self.turned else Position(1, self.index)

    @property
    def first(self) -> Position:
        """The row of the initial state."""
        return Position(self.count if self.turned else 0)

    @property
    def last(self) -> Position:
        """The row of the final state."""
        return Position(0 if self.turned else self.count)

    def at_step(self, x: Node, scope: Scope) -> Expression:
        """The expression by which a step reads its row of an array with one row for each step."""
        if isinstance(x.op, Iota):
            return StepNumber(self.counted)
        if self.turned and _reversed(x):
            return row(scope.known[x.args[0]], self.now)
        return row(scope.known[x], self.counted)

    def in_steps(self, expression: Expression) -> Expression:
        """An array in the order of memory as a view in the order of steps."""
        if not self.turned:
            return expression
        turned = Span(plus(self.count, -1), self.count, -1)
        return Index(expression, (turned, *whole(expression.shape[1:])))

    def rows(self, array: Expression, previous: bool) -> Expression:
        """The states after each step, or before each step, as rows of ``array``, in the order of memory."""
        start = 1 if previous == self.turned else 0
        return Index(array, (Span(start, self.count), *whole(array.shape[1:])))


def _reversed(x: Node) -> bool:
    return bool(x.args) and backwards(x) is x.args[0]


def plan_loop_values(nodes: Sequence[Node], scope: Scope) -> None:
    """Add the statements of one loop, and expressions for its values that are read."""
    op: Any = nodes[0].op
    args = nodes[0].args
    initial, xs, constants = pieces(op, args)
    used = [node for node in nodes if node in scope.readers]
    clock = Clock(Value("t", ()), xs[0].shape[0], any(map(_reversed, xs)))
    local_states, local_xs, local_constants = pieces(op, op.body.input_nodes)
    inside = Scope({}, scope.roles.inside(op.body.output_nodes[0]))
    inside.known |= {here: scope.known[c] for here, c in zip(local_constants, constants, strict=True)}
    inside.known |= {here: clock.at_step(x, scope) for here, x in zip(local_xs, xs, strict=True)}
    carried: list[tuple[Value, Expression, Node]] = []
    outputs = op.body.output_nodes
    stored: list[tuple[Node, Value, Position]] = []
    for k, (start, here) in enumerate(zip(initial, local_states, strict=True)):
        node = next((n for n in used if number_of(n.op) == k), None)
        stem = inside.roles.variable(here) or state_stem(clock, scope, nodes)
        if node is not None and not _last_only(node, scope):
            array = _all_states(node, start, stem, clock, scope)
            inside.known[here] = row(Read(array), clock.before)
            stored.append((outputs[k], array, clock.after))
        else:
            value = Value(stem, start.shape)
            inside.known[here] = Read(value)
            carried.append((value, scope.known[start], outputs[k]))
            if node is not None:
                _last_of(node, Read(value), scope)
    for node in used:
        if number_of(node.op) >= len(initial):
            stored.append((outputs[number_of(node.op)], _kept(node, clock, scope), clock.now))
    statement = _body(clock, inside, outputs, stored, carried)
    scope.statements.append(statement)


def state_stem(clock: Clock, scope: Scope, nodes: Sequence[Node]) -> str:
    """The name stem of the states: that of a result, else h, or h_bar if the loop runs backwards."""
    found = next((scope.roles.results[n] for n in nodes if n in scope.roles.results), None)
    return found or ("h_bar" if clock.turned else "h")


def _last_only(node: Node, scope: Scope) -> bool:
    """Whether the last state is the only state that is read."""
    if node.shape[0] == 0:
        return False
    last = slice_axis(node, 0, plus(node.shape[0], -1), 1)
    return node not in scope.outputs and all(reader is last for reader in scope.readers[node])


def _last_of(node: Node, state: Expression, scope: Scope) -> None:
    """Note the expression of the last state, of a loop whose other states are not read."""
    last = slice_axis(node, 0, plus(node.shape[0], -1), 1)
    scope.known[last] = Index(state, (NewAxis(), *whole(state.shape)))
    scope.known[node] = state  # stands for all states, as only the last one is read


def _all_states(node: Node, start: Node, stem: str, clock: Clock, scope: Scope) -> Value:
    """Allocate the array of all states; the states after and before each step become views of it."""
    array = Value(stem, (plus(clock.count, 1), *start.shape))
    zero = is_zero(start)
    scope.statements.append(Allocate(array, zeros=zero))
    if not zero:
        scope.statements.append(Store(array, clock.first, scope.known[start]))
    scope.known[node] = clock.in_steps(clock.rows(Read(array), previous=False))
    if node.shape[0] == 0:
        return array
    first = reshape(start, (1, *start.shape))
    before = concatenate([first, slice_axis(node, 0, 0, plus(node.shape[0], -1))])
    scope.known[before] = clock.in_steps(clock.rows(Read(array), previous=True))
    return array


def _kept(node: Node, clock: Clock, scope: Scope) -> Value:
    """Allocate the array of a value that is stored in each step."""
    op = op_of(node, LoopValue)
    inner = op.body.output_nodes[op.k].op
    function = inner.head.__name__ if isinstance(inner, Apply) else "a"
    array = scope.value_of(node, "a_bar" if clock.turned else function, scope.roles.of_loop(op))
    scope.statements.append(Allocate(array))
    scope.known[node] = clock.in_steps(Read(array))
    return array


def is_zero(node: Node) -> bool:
    """Whether all elements are 0 by construction."""
    if isinstance(node.op, ArrayConstant):
        return not node.op.array.any()
    if isinstance(node.op, (Stack, Concatenate, Reshape)):
        return all(map(is_zero, node.args))
    return isinstance(node.op, Broadcast) and constant_value(node.args[0]) == 0


def _body(
    clock: Clock,
    inside: Scope,
    outputs: Sequence[Node],
    stored: Sequence[tuple[Node, Value, Position]],
    carried: Sequence[tuple[Value, Expression, Node]],
) -> Loop:
    for output, array, position in stored:
        if output not in inside.known:
            inside.places.setdefault(output, (array, position))
    wanted = dict(inside.places)
    inside.compute([*(o for o, _, _ in stored), *(o for _, _, o in carried)])
    for output, array, position in stored:
        if wanted.get(output) != (array, position) or output in inside.places:
            inside.statements.append(Store(array, position, inside.known[output]))
    states = tuple(Carried(value, start, inside.known[output]) for value, start, output in carried)
    return Loop(clock.index, clock.count, clock.turned, states, inside.block)


# ---- roots by Newton's method on the statements of the residual and its derivative ---------------


@plan.dispatch
def plan_root(op: Root, node: Node, scope: Scope) -> None:
    """Add the statement of one problem, or a loop over the problems of a batch.

    Raises:
        LoweringError: the root has a solver of the user.
    """
    if op.solver is not None:
        raise LoweringError("implicit with a solver of your own cannot be written as standalone code")
    value = scope.value_of(node, "root")
    if not any(op.batched):
        scope.statements.append(find_root(op, value, scope.arguments(node)))
        scope.known[node] = Read(value)
        return
    index, one = Value("t", ()), Value("root", node.shape[1:])
    now = Position(0, index)
    pairs = zip(scope.arguments(node), op.batched, strict=True)
    args = tuple([row(arg, now) if flag else arg for arg, flag in pairs])
    body = (find_root(op, one, args), Store(value, now, Read(one)))
    scope.statements += [Allocate(value), Loop(index, node.shape[0], False, (), body)]
    scope.known[node] = Read(value)


def find_root(op: Root, value: Value, args: tuple[Expression, ...]) -> FindRoot:
    """The statement of one problem, from the expressions of the guess and the parameters."""
    local = op.residual.input_nodes
    unknown = Value("x", local[0].shape)
    inside = Scope(dict(zip(local, (Read(unknown), *args[1:]), strict=True)), NO_ROLES)
    residual, slope = residual_at(op, local[0], local[1:]), slope_at(op, local[0], local[1:])
    inside.compute((residual, slope))
    return FindRoot(value, unknown, args[0], inside.block, inside.known[residual], inside.known[slope])
