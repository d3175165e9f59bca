"""The writer of array modules for speed: the names, kinds and places of a program's values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from symad.core.dims import Dim, Shape
from symad.core.graph import Graph
from symad.numeric.fusion.nest import is_chain
from symad.numeric.modules.module_text import Names
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value, parts, values_read
from symad.numeric.program.loops import Blocks, DefineFunction, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Statement, assignments, every_statement
from symad.numeric.program_passes.memory.allocation import is_fresh, is_long, is_view
from symad.numeric.scheduling.plans import Plans
from symad.numeric.scheduling.roles import stem_of
from symad.numeric.stages import PassReport
from symad.numeric.targets.constants import constant_text
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.target import NUMPY, Level, MatrixProduct, NumPy, Text
from symad.numeric.targets.writer import Writer
from symad.ops.basic.shaping import Reshape
from symad.ops.basic.sources import ArrayConstant, Constant
from symad.ops.elementwise.selection import Condition
from symad.ops.sparse.csr import IntArray, as_slice

MODULES = {"itertools", "functools", "threading", "sys", "comb", "csr_array", "lru_cache", "cupyx"}
"""Names that modules import; values have other names."""


@dataclass(frozen=True)
class Fast(NumPy):
    """NumPy, or a library with its interface, in text that is written for speed."""


FAST_NUMPY = Fast("numpy", NUMPY.functions, "np.inf", "np.nan", np="np")


def part_of(expression: Expression) -> Index | None:
    """The index of an expression that is a view, perhaps a reshaped one; None for others."""
    reshaped = isinstance(expression, Compute) and isinstance(expression.op, Reshape)
    shown = expression.args[0] if isinstance(expression, Compute) and reshaped else expression
    return shown if isinstance(shown, Index) else None


class ArrayWriter(Writer):
    """Writes one module from its programs."""

    reads_well = False

    def __init__(self, graph: Graph, dtype: str, plans: Plans, target: Fast = FAST_NUMPY) -> None:
        """A writer for a library and a floating-point type."""
        super().__init__(target, dtype, Names())
        self.graph, self.plans = graph, plans
        self.imports = {self.library}
        self.settings: list[str] = []
        """Statements after the constants; the module executes them once."""
        self.symbols = {s: self.names.of(s) for s in (*graph.inputs, *sorted(graph.dims, key=str))}
        """The names of inputs and dimensions."""
        self.scores: dict[Any, int] = {}
        """The numbers of the module's score functions of attention."""
        self.serial = 0
        """The number of names given to values so far."""
        self.numbered: dict[str, int] = {}
        """For each name that a statement assigns, its number."""
        self.stems: dict[Value, str] = {}
        """The name stems of named values."""
        self.kinds: dict[Value, str] = {}
        """The types of values, where they are known."""
        self.whole: set[str] = set()
        """The names of the rows that a loop's step writes to; they are contiguous."""
        self.fixed: dict[str, str] = {}
        """For a matrix that no step of the loops around changes, the name of its transpose, if it has one."""
        self.transposes: set[str] = set()
        """The texts of transposed named matrices."""
        self.parts_of: dict[str, tuple[str, int]] = {}
        """For the text of a part of an array, the array and the number of axes that are indexed."""
        self.before: list[str] = []
        """Statements that must precede the statement of the expression being written."""
        self.functions: dict[Value, tuple[str, DefineFunction]] = {}
        """The functions that have been written, with their names."""
        self.rows: list[str] = []
        """Names that loops assigned to arrays and views; they are set to None when memory is freed."""
        self.inner: list[tuple[str, Shape]] = []
        """The names that the body being written assigns, with the shapes of their values."""
        self.reads: Counter[Value] = Counter()
        """The number of expressions that read each value."""
        self.later: dict[Value, Value] = {}
        self.earlier: dict[Value, Value] = {}
        """For a value the one that overwrites it, and the one that it overwrites."""
        self.rooms: set[Value | None] = set()
        """Places: given arrays, and views of arrays, that other values are written to."""
        self.copied_to: set[Value | None] = set()
        """The places that another value or a constant is copied to."""
        self.used_again: set[Value | None] = set()
        """The places that are written again or read afterwards."""
        self.completed: dict[Value, Value] = {}
        """For an array that is filled part by part, the value that it becomes."""
        self.views: list[str] = []
        """The names of views that several operations write to."""
        self.depth = self.nesting = 0
        self.bounds: Mapping[sympy.Symbol, int] = {}
        self.at: Value | None = None
        """The value that is being written, and the one that it overwrites."""
        self.over: Value | None = None

    def begun(self, graph: Graph, report: list[PassReport] | None = None) -> Program:
        """The program of the module's graph, whose inputs have names."""
        labels = tuple(self.plans.roles.labels)
        made = self.plans.program(graph, report)
        program = replace(made, name=graph.name, structure=graph.structure, labels=labels)
        self.know(program)
        for value, symbol in zip(program.inputs, graph.inputs, strict=True):
            self.named[value] = self.stems[value] = self.symbols[symbol]
        return program

    def know(self, program: Program) -> None:
        """Note who reads and overwrites the values of a program, and which of them are places of others."""
        every = list(every_statement(program.statements))
        made = [one for statement in every for one in assignments(statement)]
        read = _times_read(program, every)
        self.made |= {one.value: one.expression for one in made}
        self.reads |= read
        later = {one.over: one.value for one in made if one.over is not None}
        self.later |= later
        self.earlier |= {value: over for over, value in later.items()}
        self.rooms |= {one.value for one in made if part_of(one.expression) is not None}
        for statement in every:
            self.rooms |= self._given_places(statement)
        for one in made:  # what overwrites a place is in that place
            if one.over in self.rooms:
                self.rooms.add(one.value)
        self.copied_to |= {one.over for one in made if not parts(one.expression)}
        self.used_again |= {
            one.over for one in made if one.value in later or read[one.value] > (one.over in self.copied_to)
        }
        pairs = [(one.value, one.expression) for one in made if isinstance(one.expression, Read)]
        self.completed |= {e.value: v for v, e in pairs if v in self.plans.nodes and isinstance(e, Read)}

    def _given_places(self, statement: Statement) -> set[Value]:
        rows = statement.rows if isinstance(statement, Loop) else ()
        filled = {row.value for row in rows if row.filled}
        blocks = statement.parts if isinstance(statement, Blocks) else ()
        return filled | {part.value for part in blocks if part.value not in self.plans.nodes}

    def blocks(self) -> list[list[str]]:
        """See `Writer.blocks`: the constants, and statements that prepare them."""
        return [[*super().blocks()[0], *self.settings]]

    # ---- sizes, constants and helpers ------------------------------------------------------------

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension, which counts as read from now on."""
        self.sizes.add(symbol)
        return self.symbols[symbol]

    def atom(self, dim: Dim) -> str:
        """A dimension as an operand of an expression."""
        return dimension(dim, self).inside(Level.ATOM)

    def dims(self, shape: Shape) -> str:
        """A shape as a tuple display."""
        items = [self.dim(d) for d in shape]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"

    @property
    def itemsize(self) -> int:
        """The bytes of an element of the module's arrays."""
        return np.dtype(self.dtype).itemsize

    def float_type(self) -> str:
        """The dtype argument. It is always given, since entries may be Python's numbers."""
        return f", {self.type_text}"

    def helper(self, function: Callable[..., Any] | str, source: str = "") -> str:
        """The name of a helper: a function of symad, or one with this name and source."""
        if isinstance(function, str):
            self.helpers[function] = source
            return function
        found = pasted_into(self.module, self.pasted, pasted(function, np=self.np))
        self.imports.update(line for line in found.imports if line != Writer.library)
        for name, source in found.functions:
            self.helper(name, source)
        return found.functions[-1][0]

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant array of the module."""
        own = array.dtype.kind == "f" or array.dtype.name == self.dtype
        other = "bool" if array.dtype.kind == "b" else f"{self.np}.{array.dtype.name}"
        kind = self.type_text if own else other
        return self.shared(constant_text(array, kind, self), "constant")

    @contextmanager
    def entered(self, given: Iterable[Value]) -> Iterator[None]:
        """Write a body, of which ``given`` are some values that have names from outside."""
        yield

    # ---- names -----------------------------------------------------------------------------------

    def fresh(self, stem: str = "") -> str:
        """A fresh name after the name stem; v with a number if the stem is empty."""
        self.serial += 1
        name = self.names.unique(stem) if stem else self._numbered("v")
        self.numbered[name] = self.serial
        return name

    def value_name(self, stem: str = "v") -> str:
        """A fresh name that ends with a number."""
        self.serial += 1
        name = self._numbered(stem)
        self.numbered[name] = self.serial
        return name

    def _numbered(self, stem: str) -> str:
        while (name := f"{stem}{self.serial}") in self.names.taken:
            self.serial += 1
        self.names.taken.add(name)
        return name

    def is_name(self, text: str) -> bool:
        """Whether a text is a name of the module."""
        return text in self.numbered or text in self.names.taken

    def name_for(self, value: Value) -> str:
        """A fresh name for a value; a view of the same shape keeps the stem of its array."""
        stem = self.stem(value if value in self.plans.nodes else self.completed.get(value, value))
        name = self.named[value] = self.fresh(stem)
        node = self.plans.nodes.get(value)
        if not stem and node is not None and is_view(node) and node.shape == node.args[0].shape:
            stem = self.stems.get(self.plans.arguments[value][0], "")
        self.stems[value] = stem
        self.inner.append((name, value.shape))
        return name

    def keep_name(self, value: Value, over: Value | None) -> str:
        """The name of the value that another one overwrites, from now on of that one too."""
        assert over is not None
        self.stems[value] = self.stems.get(over, "")
        name = self.named[value] = self.named[over]
        return name

    def copied(self, value: Value, place: Value | None, text: str) -> str:
        """The statement that copies an array to the place of a value."""
        name = self.keep_name(value, place)
        return f"{name}{'' if name in self.parts_of else '[...]'} = {text}"

    def stem(self, value: Value) -> str:
        """The name stem of a value; one that is overwritten has the stem of the last value in its memory."""
        end, node = value, self.plans.nodes.get(value)
        if node is None or not isinstance(node.op, Loop):
            while self.reads[end] == 1 and (heir := self.later.get(end)) is not None:
                end = heir
        if end is not value and (node := self.plans.nodes.get(end)) is not None:
            return end.stem or stem_of(node, ("",) * len(node.args))
        node = self.plans.nodes.get(value)
        if value.stem or node is None or value not in self.plans.arguments:
            return value.stem
        return stem_of(node, tuple(self.stems.get(a, "") for a in self.plans.arguments[value]))

    def result_names(self, numbers: Sequence[int], computed: Mapping[int, Value]) -> list[str]:
        """Fresh names for the results of a statement by their numbers; ``_`` for those that are not read."""
        return [self.name_for(computed[k]) if k in computed else "_" for k in numbers]

    # ---- what values are -------------------------------------------------------------------------

    def note(self, value: Value, expression: Expression, over: Value | None = None) -> None:
        """Note the type of a value."""
        self.kinds[value] = self.kind(expression) if over is None else self.dtype

    def kind(self, expression: Expression) -> str:
        """The type of an expression's array, if it is known."""
        if isinstance(expression, Read):
            return self.kinds.get(expression.value, "")
        if isinstance(expression, Index):
            return self.kind(expression.array)
        assert isinstance(expression, Compute)
        op = expression.op
        if isinstance(op, ArrayConstant):
            whole = op.array.dtype.kind in "iu" and op in self.plans.numbers
            return "bool" if op.array.dtype.kind == "b" else "int64" if whole else self.dtype
        if is_chain(op):
            op = op.body.output_nodes[op.index].op
            return "bool" if isinstance(op, Condition) else self.dtype
        if isinstance(op, Condition):
            return "bool"
        if is_view(expression):
            return self.kind(expression.args[0])
        return self.dtype if isinstance(op, Constant) or is_fresh(expression) else ""

    def is_worth_freeing(self, shape: Shape) -> bool:
        """Whether an array of this shape is so large that a statement frees it."""
        return is_long(shape, self.plans.least_freed)

    # ---- expressions -----------------------------------------------------------------------------

    def operand(self, expression: Expression) -> str:
        """An expression as an operand: a name, a number, or text in parentheses."""
        return self.text(expression).inside(Level.ATOM)

    def typed(self, expression: Expression) -> str:
        """An operand of a function, whose body may broadcast it or divide by it; numbers have the dtype."""
        text = self.operand(expression)
        number = isinstance(expression, Compute) and expression.op.literal
        return f"{self.type_text}({text})" if number else text

    def index_of(self, places: NDArray[np.int64], several: bool) -> str:
        """The index of some places: a slice or a position if evenly spaced, else an index array."""
        where = as_slice(places)
        if not isinstance(where, slice):
            return self.constant(places)
        if where.stop - where.start == 1 and not several:
            return str(where.start)
        step = f":{where.step}" if where.step != 1 else ""
        return f"{where.start or ''}:{where.stop}{step}"

    def taken_line(self, values: str, index: IntArray, entries: str) -> str:
        """The statement that gathers entries from an array.

        All positions are in range, so that ``mode="wrap"`` changes none. In the default mode, NumPy would
        write to a buffer first.
        """
        return f'{values}.take({self.constant(index)}, out={entries}, mode="wrap")'

    def index_text(self, expression: Index) -> Text:
        """``array[places]``; the array itself if the index shows all of it."""
        whole = self.places(expression) == [":"]
        return self.text(expression.array) if whole else super().index_text(expression)

    def turned(self, matrix: str) -> str:
        """The transpose; if the loops around do not change it, it is copied to contiguous memory before."""
        if matrix not in self.fixed:
            text = f"{matrix}.T"
            if self.is_name(matrix):
                self.transposes.add(text)
            return text
        if not self.fixed[matrix]:
            stem = next((s for v, s in self.stems.items() if s and self.named.get(v) == matrix), "")
            self.fixed[matrix] = self.fresh(f"{stem}_T" if stem else "")
        return self.fixed[matrix]

    def number(self, text: str, made: Expression | None = None) -> str:
        """The text of a number that is combined with arrays.

        In loops, a constant is an array of the module: to convert a Python number takes NumPy as long as
        to add a thousand elements.
        """
        if not self.depth or (made is not None and not _is_constant(made)):
            return text
        return self.shared(f"{self.np}.array({text}, dtype={self.type_text})", "constant")

    # ---- products, which compiled code computes by a function of its own -------------------------

    def product_text(self, product: MatrixProduct) -> str:
        """A matrix product as an expression."""
        return product.text().text

    def multiplication(self) -> str:
        """The name of the function that multiplies matrices."""
        return f"{self.np}.matmul"

    def product_into(self, product: MatrixProduct, place: str) -> str:
        """The statement that writes the product of two named matrices into an array."""
        return f"{self.multiplication()}({product.left}, {product.right}, {place})"


def _is_constant(number: Expression) -> bool:
    """Whether a number is computed from constants alone."""
    if not isinstance(number, Compute):
        return False
    return isinstance(number.op, Constant) or (bool(number.args) and all(map(_is_constant, number.args)))


def _times_read(program: Program, every: Sequence[Statement]) -> Counter[Value]:
    """The number of expressions that read each value of a program."""
    read = Counter(v for s in every for e in s.expressions for v in {*values_read(e)})
    read.update(v for result in program.results for v in values_read(result))
    return read
