"""Graphs as programs with one statement for each node, in an order that depends only on the graph."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from symad.core.contents import readers
from symad.core.graph import Graph, Node, Op, topological
from symad.core.identifiers import short_name
from symad.core.questions import question
from symad.errors import LoweringError
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, Expression, Position, Read, Value, row
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Comment, Statement, Store
from symad.numeric.scheduling.roles import Roles, name_of, stem_of
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.sources import Input, Source, symbol_of


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
