"""Prints array graphs as array statements, one line per node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import sympy

from symad.core.graph import Graph, Node, topological
from symad.derivatives.root import Root
from symad.errors import LoweringError
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairSum, PairSumCotangent
from symad.higher_order.scan import Local, Scan
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.array_writer import ArrayWriter
from symad.numeric.numpy_arrays.module_parts import ModuleParts
from symad.numeric.numpy_arrays.ops import (  # noqa: F401  (register answers)
    spans,
    sparse,
)
from symad.numeric.numpy_arrays.ops.all_ops import emit
from symad.numeric.numpy_arrays.ops.root import root_lines
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.numpy_arrays.pairs.attention_printer import attention_lines
from symad.numeric.numpy_arrays.pairs.pair_sum_printer import pair_lines
from symad.numeric.numpy_arrays.placed_statements import Placed
from symad.numeric.numpy_arrays.plan import Plan
from symad.numeric.numpy_arrays.planning import plan_inside, plan_of
from symad.numeric.numpy_arrays.texts import Name, Turned, name_in
from symad.numeric.passes.loop import Loop
from symad.numeric.pipelines import DROP, PassReport, ProgramPass, functions, releases
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.statements import Free, Statement, assignments
from symad.numeric.program_passes.loops.open_loops import MakesBody
from symad.numeric.program_passes.memory.allocation import is_long, is_view
from symad.numeric.scheduling.blocks import NodeBlock, block_of, number_of
from symad.numeric.scheduling.roles import NO_ROLES, Roles, stem_of
from symad.numeric.targets.target import MatrixProduct
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input

MODULES = {"itertools", "functools", "threading", "sys", "comb", "csr_array", "lru_cache", "cupyx"}
"""Names that modules import; values have other names."""


class ArrayPrinter(ModuleParts):
    """Prints one module: its parts, and the texts of the nodes that have been printed so far."""

    def __init__(self, graph: Graph, library: ArrayLibrary, dtype: str) -> None:
        """A printer for a library and a floating-point type."""
        super().__init__(graph, library, dtype)
        self.text: dict[Node, str] = {}
        self.writer = ArrayWriter(self)
        """The writer of expressions."""
        self.scores: dict[Any, int] = {}
        """The numbers of the module's score functions of attention."""
        self.labels: dict[Node, str] = {}
        """The names of results by their roles."""
        self.roles = NO_ROLES
        """The names of values that variables of the user hold; see `Plan`."""
        self.before: list[str] = []
        """Statements that must precede the statement of the expression being printed."""
        self.bounds: Mapping[sympy.Symbol, int] = {}
        """The largest values of dimensions that change from block to block."""
        self.returned: set[Node] = set()
        """The nodes that allocated the memory of the results so far."""
        self.row_numbers: set[Node] = set()
        """Nodes that are read as row numbers only."""
        self.nesting = 0
        """The number of functions and loops around the statement being printed."""
        self.depth = 0
        """The number of those that are executed many times."""
        self.steps: dict[Value, Plan] = {}
        """The plans of steps and functions, each under the values that it is given, or writes to."""
        self.functions: dict[Value, str] = {}
        """The names of functions that have been printed."""
        self.function_results: dict[str, Sequence[Node]] = {}
        """The nodes that they return, by name."""
        self.called_names: list[str] = []
        """Those that the statement being printed calls."""
        self.computed: dict[int, Node] = {}
        """The results of the statement being printed, by their numbers."""
        self.own: list[Name] = []
        """Names that only the statement being printed uses."""
        self.ended: list[Name] = []
        """Such names of earlier statements, whose memory is not freed yet."""
        self.given: frozenset[Node] = frozenset()
        """The nodes that had values before the statements being printed."""
        self.block: NodeBlock = block_of((), ())
        self.plan: Plan | None = None
        self.users: dict[Node, list[Node]] = {}
        """See `Plan`."""
        self.over: dict[Node, Node] = {}
        """For a node, the operand that it overwrites."""
        self.at: Value | None = None
        """The value being printed."""
        self.placed = Placed(self.block.program, {}, {})
        """The statements of the program, by the nodes that they compute."""
        self.slots: dict[Node, str] = {}
        """For a node, the text of the array or view that it is written to."""
        self.views: list[Name] = []
        """The names of views that several operations write to."""
        self.floats: set[Node] = set()
        """Nodes with the module's dtype: some inputs of the body being printed, and results in rows."""
        self.whole: set[str] = set()
        """The names of the rows that a loop's step writes to; they are contiguous."""
        self.fixed: dict[str, Turned | Name] = {}
        """For a matrix that no step of the loops around changes, its transpose.

        A transpose that a step reads gets a name: the loop copies it to contiguous memory before its steps.
        """
        self.rows: list[Name] = []
        """Names that loops assigned to arrays and views; they are set to None when memory is freed."""
        self.needed: Sequence[sympy.Expr] = ()
        """The sizes that must not be negative in a call."""
        self.report: list[PassReport] | None = None
        """The lines of the passes on the function's program; passes on bodies of loops add none."""

    in_rows = True
    """Whether loops iterate over the rows of arrays; if not, they index arrays by the number of the step."""

    def prepared(self, graph: Graph) -> Graph:
        """A graph for a nested function, after the passes that the module's own graph went through."""
        from symad.numeric.passes import prepare

        return prepare(graph)

    def begin(self, graph: Graph, roles: Roles) -> list[Name]:
        """The names of a graph's inputs. The names of its results and of the user's variables are noted."""
        pairs = zip(graph.output_nodes, roles.labels, strict=False)
        self.labels = {node: label for node, label in pairs if label and node.args}
        self.roles = roles
        self.names.taken |= MODULES
        return [Name(self.symbols[symbol], stem=self.symbols[symbol]) for symbol in graph.inputs]

    def decorators(self, graph: Graph) -> list[str]:
        """The decorators of the module's function."""
        return []

    def own_name(self, stem: str = "") -> Name:
        """A fresh name that only the statements of one node use."""
        self.own.append(self.called(stem))
        return self.own[-1]

    def name_for(self, node: Node) -> Name:
        """A fresh name for the value of a node; a view of the same shape keeps the stem of its array."""
        stem = self.stem(node)
        if not stem and is_view(node) and node.shape == node.args[0].shape:
            made = self.value_name()
            return Name(made, made.number, self.stem_of_text(node.args[0]))
        return self.called(stem)

    def result_names(self, numbers: Iterable[int]) -> list[str]:
        """Fresh names for results of the statement being printed; ``_`` for those that it does not have."""
        named = {k: self.value_name() for k in numbers if k in self.computed}
        self.text |= {self.computed[k]: name for k, name in named.items()}
        return [named.get(k, "_") for k in numbers]

    def stem(self, node: Node) -> str:
        """The name stem of a node's value; may be empty."""
        names = tuple([self.stem_of_text(a) for a in node.args])
        return self.label(node) or stem_of(node, names)

    def stem_of_text(self, node: Node) -> str:
        """The name stem in the text of a node; empty if the text is no name."""
        text = self.text.get(node)
        return text.stem if isinstance(text, Name) else ""

    @contextmanager
    def inside(self, inputs: Mapping[Node, str], repeated: bool = True) -> Iterator[None]:
        """Print the body of a loop or function; only its inputs have texts at the start.

        A body is a graph of its own. Its nodes may be equal to nodes outside, whose texts do not apply. A
        ``repeated`` body is executed many times.
        """
        outer = self.text, self.row_numbers, self.own, self.views
        self.text, self.row_numbers, self.own, self.views = dict(inputs), set(), [], []
        self.nesting += 1
        self.depth += repeated
        yield
        self.depth -= repeated
        self.nesting -= 1
        self.text, self.row_numbers, self.own, self.views = outer

    @contextmanager
    def knowing(self, given: Mapping[Node, Node]) -> Iterator[None]:
        """Print the step of a loop; for its inputs ``given`` has the nodes outside."""
        yield

    def order(self, outputs: Sequence[Node]) -> list[Node]:
        """The nodes from which ``outputs`` are computed, in the order of their statements."""
        return topological(outputs)

    def statements(self, outputs: Sequence[Node], into: Sequence[Name | None] = ()) -> list[str]:
        """The statements that compute ``outputs``, and the nodes that these need.

        ``into``: for each output the array that it is written to; None for a new array.
        """
        names = into or [None] * len(outputs)
        places = [
            None if name is None else Value("", node.shape) for node, name in zip(outputs, names, strict=True)
        ]
        rooms = {place: name for place, name in zip(places, names, strict=True) if place and name}
        report, self.report = self.report, None
        with self.as_before():
            return self.lines_of(plan_of(self, outputs, dict.fromkeys(self.text), places, report), rooms)

    def know(self, plan: Plan) -> None:
        """Set the attributes that describe the nodes of a plan."""
        self.plan, self.block, self.row_numbers = plan, plan.block, plan.numbers
        self.users, self.roles = plan.users, plan.roles

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Restore the attributes of the current plan at the end."""
        around = self.own, self.ended, self.given, self.at, self.plan, self.roles
        yield
        self.own, self.ended, self.given, self.at, plan, self.roles = around
        if plan is None:
            self.plan, self.block, self.users = None, block_of((), ()), {}
        else:
            self.know(plan)

    def passes(self, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
        """The passes on the program of a block before it is printed."""
        made = functions(self.step, self.prepared, self.library.module == "numpy")
        return (made, DROP) if self.nesting else (made, DROP, releases(self.least_freed()))

    @property
    def step(self) -> MakesBody:
        """Makes and plans the steps of loops and the bodies of functions."""
        return partial(plan_inside, self)

    def label(self, node: Node) -> str:
        """The name stem of a node that does not depend on the names of arguments; may be empty."""
        label = self.labels.get(node) or self.roles.variable(node)
        if label or not isinstance(node.op, (Scan, Loop)):
            return label
        return self.roles.of_loop(node.op) or stem_of(node, ())

    def lines_of(self, plan: Plan, rooms: Mapping[Value, Name]) -> list[str]:
        """The lines of a plan. ``rooms``: the names of the arrays that results are written to."""
        with self.as_before():
            self.own, self.ended, self.given = [], [], frozenset(self.text)
            self.know(plan)
            return self.written(plan, rooms)

    def written(self, plan: Plan, rooms: Mapping[Value, Name]) -> list[str]:
        """The lines of a plan, after `know`."""
        around = self.over, self.placed, self.computed
        self.placed = Placed(plan.program, plan.block.nodes, rooms)
        self.over = self.placed.over
        lines: list[str] = []
        first = self.serial
        for statement in plan.program.statements:
            if isinstance(statement, Free):
                lines += self.free_lines(statement, first)
                continue
            lines += self.opened(statement)
            every = [(made, self.block.nodes.get(made.value)) for made in assignments(statement)]
            self.computed = {number_of(op_in(made.expression)): node for made, node in every if node}
            for made, node in every:
                if node is None or node in self.text:  # None: a step of a later node's value
                    continue
                self.at = made.value
                if isinstance(made.expression, Compute) and made.expression.functions:
                    self.called_names = [self.functions[value] for value in made.expression.functions]
                lines += self._with_own(node)
            lines += self.placed.closed(statement, self)
        self.over, self.placed, self.computed = around
        return lines

    def opened(self, statement: Statement) -> list[str]:
        """The lines of a statement without a node, and those before the lines of a statement's nodes."""
        return self.placed.opened(statement, self)

    def text_of(self, expression: Expression) -> str:
        """The text of a value, a view or a constant."""
        return self.placed.text_of(expression, self)

    def node_of(self, expression: Expression) -> Node | None:
        """The node of a value or of a constant; None for others."""
        if isinstance(expression, Read):
            return self.block.nodes.get(expression.value)
        return Node.of(expression.op, ()) if isinstance(expression, Compute) else None

    def _with_own(self, node: Node) -> list[str]:
        """The statements of one node. Names that no later statement reads are noted in ``ended``."""
        known = len(self.text)
        lines = self.placed.viewed(node, self)
        lines = self.statement(node) if lines is None else lines
        new = islice(reversed(self.text), len(self.text) - known)
        others = [n for n in new if n not in self.block.values and self.is_worth_freeing(n)]
        self.ended += self.own if self.own and self.is_worth_freeing(node) else []
        self.ended += [text for text in map(self.text.__getitem__, others) if isinstance(text, Name)]
        self.own = []
        return lines

    def free_lines(self, statement: Free, first: int) -> list[str]:
        """The lines that free memory: of the variables that loops left, and of values that end."""
        known = self.block.nodes
        ending = [known[value] for value in statement.values if value in known]
        nodes = [node for end in ending for node in self.placed.written_over(end)]
        others = [self.placed.texts.get(value) for value in statement.values if value not in known]
        texts = [*self.ended, *map(self.text.get, nodes), *others]
        names = {text for text in texts if isinstance(text, Name) and text.number > first}
        freed = sorted(names, key=lambda name: name.number)
        rows = list(dict.fromkeys(self.rows))
        self.rows, self.ended = [], []
        lines = [f"{' = '.join(rows)} = None"] if rows else []  # not del: without steps, none is assigned
        return [*lines, *([f"del {', '.join(freed)}"] if freed else [])]

    def least_freed(self) -> int:
        """The smallest number of elements of an array that a statement frees."""
        return 0

    def is_worth_freeing(self, node: Node) -> bool:
        """Whether the array of a node is so large that a statement frees it."""
        made = owner(node)
        return is_long(made.shape, self.least_freed()) or isinstance(made.op, Local)

    def names_inside(self, first: int) -> list[Name]:
        """The names of large arrays in the body being printed with a number above ``first``."""
        named = ((node, text) for node, text in self.text.items() if isinstance(text, Name))
        return [text for node, text in named if text.number > first and self.is_worth_freeing(node)]

    def statement(self, node: Node) -> list[str]:
        """The statements of one node; those of constants and sizes are none: readers write them."""
        if isinstance(node.op, Input):
            raise LoweringError(f"the graph uses {node.op.symbol}, which is none of its inputs")
        if isinstance(node.op, Root):
            name = self.name_for(node)
            lines = root_lines(node.op, self.library, node, name, self)
            self.text[node] = name
            return lines
        if isinstance(node.op, AttentionOp):
            return attention_lines(node.op, node, self)
        if isinstance(node.op, (PairSum, PairSumCotangent)):
            return pair_lines(node.op, node, self)
        expression = self.expression(node)
        if isinstance(node.op, (Constant, ArrayConstant, Dimension)):
            self.text[node] = expression
            return []
        needed, self.before = self.before, []
        return [*needed, self.assignment(node, expression)]

    def assignment(self, node: Node, expression: str) -> str:
        """The statement that assigns a node's value to its name."""
        self.text[node] = self.name_for(node)
        return f"{self.text[node]} = {expression}"

    def transposed(self, matrix: str) -> str:
        """The transpose of a matrix."""
        return Turned(matrix)

    def in_place_of(self, stands_for: Node) -> tuple[list[str], str]:
        """The statements of a definition, and the text of its result.

        Only the text of the result is kept: intermediate arrays may be overwritten or freed. The statements
        may read a node that has a text already, but only if a later statement reads it too: otherwise its
        array may be gone, and the node is computed again.
        """
        known, outer = self.text, (self.views, self.slots)
        self.text = {node: text for node, text in known.items() if self.is_kept(node)}
        self.views, self.slots = [], {}
        lines = self.statements((stands_for,))
        result, self.text = self.text[stands_for], known
        self.views, self.slots = outer
        self.own += [name for name in [name_in(result)] if name is not None]
        return lines, result

    def is_kept(self, node: Node) -> bool:
        """Whether the array of a node stays unchanged until the statement being printed is done."""
        if node in self.given:
            return True
        value = self.block.values.get(node)
        return value is not None and self.plan is not None and self.plan.outlives(value, self.at)

    def expression(self, node: Node) -> str:
        """The expression of a node, from the texts of its arguments."""
        return emit(node.op, self.library, node, tuple(self.text[a] for a in node.args), self)

    def sum_as_product(self, arg: Node, axes: tuple[int, ...]) -> MatrixProduct | None:
        """The sum of an array over some axes as a matrix product; None where that is not faster."""
        return None
