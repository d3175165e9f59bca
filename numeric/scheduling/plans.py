"""The programs of array code: the nodes of a function or of a step, after all passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import sympy

from symad.core.contents import inner_graphs
from symad.core.graph import Graph, Node, Op, Structure
from symad.core.interning import field_names
from symad.core.nodes import Moved
from symad.cost import schedule
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import unread
from symad.higher_order.scan import LoopOp
from symad.numeric.program.expressions import Compute, Expression, Read, Value, zeros
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Together
from symad.numeric.scheduling.roles import NO_ROLES, Roles, stem_of
from symad.numeric.stages import PassReport, ProgramPass, run_program_passes
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, constant_value

# ---- one statement for each node -----------------------------------------------------------------


def number_of(op: Op | None) -> int:
    """The number of a result among those of its op; 0 for ops with one result."""
    return getattr(op, op.several[0]) if op is not None and op.several else 0


def _kernel_of(op: Op) -> tuple[object, ...]:
    """What the results of one loop or kernel have in common."""
    return type(op), *(getattr(op, name) for name in field_names(type(op)) if name not in op.several)


@dataclass(frozen=True)
class NodeBlock:
    """A program of nodes, with the value of each node."""

    program: Program
    values: dict[Node, Value]
    nodes: dict[Value, Node]


def _zeros(node: Node) -> list[int]:
    """The arguments of attention that are 0: for these it has a case, so that they need no statement."""
    filled = {a for a in node.args if isinstance(a.op, Broadcast) and constant_value(a.args[0]) == 0}
    return [k for k, a in enumerate(node.args) if a in filled and isinstance(node.op, AttentionOp)]


def block_of(
    order: Sequence[Node],
    outputs: Iterable[Node],
    given: Collection[Node] | Mapping[Node, Value] = (),
    structure: Structure | None = None,
    stems: Callable[[Node], str] = lambda node: "",
) -> NodeBlock:
    """The program of some nodes. The results of one loop or kernel are one `Together` statement.

    Args:
        order: the nodes, each after its arguments.
        outputs: the nodes that are results.
        given: nodes that have values already, perhaps with these values.
        structure: the structure of the results.
        stems: the name stem of a node.
    """
    known: dict[Node, Expression] = {}
    values: dict[Node, Value] = {}
    inputs: list[Value] = []
    statements: list[list[Assign]] = []
    together: dict[tuple[object, ...], list[Assign]] = {}
    inside = given if isinstance(given, Mapping) else {}
    for node in order:
        value = values[node] = inside.get(node) or Value(stems(node), node.shape)
        if node in given:
            inputs.append(value)
            known[node] = Read(value)
            continue
        args = [known[a] for a in node.args]
        for position in (*unread(node.op), *_zeros(node)):
            args[position] = zeros(args[position].shape)
        expression = Compute(node.op, tuple(args), node.shape)
        known[node] = expression if node.op.stored else Read(value)
        assign = Assign(value, expression)
        group = together.setdefault((*_kernel_of(node.op), node.args), []) if node.op.several else []
        if not group:
            statements.append(group)
        group.append(assign)
    results = tuple([known[output] for output in outputs])
    made = tuple([group[0] if len(group) == 1 else Together(tuple(group)) for group in statements])
    program = Program("", tuple(inputs), made, results, structure)
    return NodeBlock(program, values, {value: node for node, value in values.items()})


# ---- values that are read as row numbers only ----------------------------------------------------


def only_indices(order: Sequence[Node], outputs: Sequence[Node]) -> set[Node]:
    """The nodes of an order, arguments first, that are read as row numbers only.

    Such nodes need no conversion to the dtype of the module. In bfloat16, token numbers above 256 would not
    be exact. All other integers need it: an operation with single precision would give double precision.
    """
    computed = {*outputs, *_inner_nodes(order)}
    for node in reversed(order):
        if node.op.moves <= Moved.SOME and node not in computed:
            continue
        numbers = node.op.row_numbers
        computed.update(arg for k, arg in enumerate(node.args) if k not in numbers)
    return {node for node in order if node not in computed}


def _inner_nodes(order: Iterable[Node]) -> set[Node]:
    """The nodes in the bodies of loops and parts. The same nodes may occur outside of the bodies."""
    found: set[Node] = set()
    for op in {node.op for node in order}:
        for body in inner_graphs(op):
            found |= {*body.nodes, *_inner_nodes(body.nodes)}
    return found


Passes: TypeAlias = "Callable[[Plans, Sequence[Value | None]], tuple[ProgramPass, ...]]"
"""The passes on the program of a block, whose results are written to given places."""


@dataclass
class Plans:
    """Makes the programs of one module, and keeps what its text needs to know of their values.

    Attributes:
        passes: the passes on the program of a block.
        roles: the names of values that variables of the user hold.
        least_freed: the smallest number of elements of an array that a statement frees.
        labels: the names of results by their roles.
        nodes: the nodes of the values of all programs so far; other values are steps of these.
        arguments: for a node's value the values of its arguments.
        outputs: for values that a block is given, or writes to, its results.
        numbers: values, and ops of constants, that are read as row numbers only.
        bounds: the largest values of dimensions that change from block to block.
        depth: the number of loops and functions around the block that are executed many times.
        nesting: the number of all loops and functions around it.
    """

    passes: Passes
    roles: Roles = NO_ROLES
    least_freed: int = 0
    labels: Mapping[Node, str] = field(default_factory=dict)
    nodes: dict[Value, Node] = field(default_factory=dict)
    arguments: dict[Value, tuple[Value, ...]] = field(default_factory=dict)
    outputs: dict[Value, Sequence[Node]] = field(default_factory=dict)
    numbers: set[Value | Op] = field(default_factory=set)
    bounds: Mapping[sympy.Symbol, int] = field(default_factory=dict)
    depth: int = 0
    nesting: int = 0

    def program(self, graph: Graph, report: list[PassReport] | None = None) -> Program:
        """The program of a graph after all graph passes."""
        pairs = zip(graph.output_nodes, self.roles.labels, strict=False)
        self.labels = {node: label for node, label in pairs if label and node.args}
        given = {node: Value("", node.shape) for node in graph.input_nodes}
        made = self._block(graph.output_nodes, given, [None] * len(graph.output_nodes), report)
        return replace(made, inputs=tuple(given.values()))

    def step(
        self,
        results: Sequence[Node],
        given: Mapping[Node, Value],
        places: Sequence[Value | None],
        bounds: Mapping[sympy.Symbol, int] | None = None,
        repeated: bool = True,
    ) -> Program:
        """The program of a step of a loop, or of a function; see `MakesBody`."""
        with self._inside(results[0], self.bounds if bounds is None else bounds, repeated):
            return self._block(results, given, places)

    @contextmanager
    def _inside(self, first: Node, bounds: Mapping[sympy.Symbol, int], repeated: bool) -> Iterator[None]:
        around = self.roles, self.bounds
        self.roles, self.bounds = self.roles.inside(first), bounds
        self.depth, self.nesting = self.depth + repeated, self.nesting + 1
        yield
        self.depth, self.nesting = self.depth - repeated, self.nesting - 1
        self.roles, self.bounds = around

    def definition(self, stands_for: Node, given: Mapping[Node, Value]) -> Program:
        """The program of the definition of an op, from the values of its arguments."""
        self.nesting += 1
        made = self._block((stands_for,), given, [None])
        self.nesting -= 1
        return made

    def order(self, outputs: Sequence[Node]) -> list[Node]:
        """The order of the nodes, chosen to keep the largest number of live bytes small."""
        return schedule(Graph((), tuple(outputs)))

    def _block(
        self,
        outputs: Sequence[Node],
        given: Mapping[Node, Value],
        places: Sequence[Value | None],
        report: list[PassReport] | None = None,
    ) -> Program:
        self.outputs |= dict.fromkeys((*given.values(), *(p for p in places if p is not None)), outputs)
        order = self.order(outputs)
        block = block_of(order, outputs, given, stems=self.label)
        self.nodes |= block.nodes
        found = only_indices(order, outputs)
        self.numbers |= {n.op if isinstance(n.op, ArrayConstant) else block.values[n] for n in found}
        for node, value in block.values.items():
            if node not in given:
                self.arguments[value] = tuple([block.values[a] for a in node.args])
        return run_program_passes(block.program, self.passes(self, places), report, check=False)

    def label(self, node: Node) -> str:
        """The name stem of a node that does not depend on the names of arguments; may be empty."""
        label = self.labels.get(node) or self.roles.variable(node)
        if label or not isinstance(node.op, LoopOp):
            return label
        return self.roles.of_loop(node.op) or stem_of(node, ())
