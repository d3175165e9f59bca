"""The writer of one module: it records names of dimensions, imports, helpers and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symad import special
from symad.core.dims import Dim, Shape, plus, same_dim, times
from symad.core.graph import Op
from symad.core.questions import question
from symad.errors import LoweringError
from symad.numeric.modules.module_text import Names
from symad.numeric.modules.users_functions import users_call
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
)
from symad.numeric.targets.constants import nested_text
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.target import (
    NUMPY,
    Level,
    LibraryFunction,
    MatrixProduct,
    NumPy,
    Target,
    Text,
    Texts,
)
from symad.ops.basic.sources import Constant

if TYPE_CHECKING:
    import sympy

Written: TypeAlias = "Text | MatrixProduct"


@question
def write(op: Op, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    """The expression ``node = op(*args)`` as `Text` in a target; ``writer`` records what the text needs."""


class Writer:
    """Writes expressions for one target, and records what their module must contain."""

    library: ClassVar[str] = "import numpy as np"
    """The import of the module's np."""
    reads_well: ClassVar[bool] = True
    """Whether the text is written for readability rather than for speed."""
    quiet: ClassVar[str] = '@np.errstate(all="ignore")'
    """The decorator that turns off the warnings of scalar functions."""

    def __init__(self, target: Target, dtype: str, names: Names) -> None:
        """``names`` are the identifiers that values of the module have."""
        self.target = target
        self.dtype = dtype
        self.names = names
        self.named: dict[Value, str] = {}
        self.made: dict[Value, Expression] = {}
        """What values were assigned, where the text of a later statement depends on it."""
        self.batch = ""
        """The first argument of a scalar function; its axes are those of the batch of points."""
        self.sizes: set[sympy.Symbol] = set()
        """The dimensions that were read so far."""
        self.indices: list[str] = []
        self.depth = 0
        self.numbers: dict[Constant, Text] = {}
        self.imports: set[str] = set()
        self.needs_scipy = False
        self.helpers: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        """Names of arrays that the module makes once, by the text that makes them."""
        self.module = names
        """Names of the module's functions, and of values that could shadow them."""
        self.pasted: dict[str, str] = {}
        """The module's names for helper functions that are public in symad."""
        self.users: dict[Callable[..., object], str] = {}
        """Names of the helpers that call users' implementations."""

    @property
    def np(self) -> str:
        """The name of the array library in printed code."""
        return self.target.np if isinstance(self.target, NumPy) else NUMPY.np

    def decorators(self) -> list[str]:
        """The decorators of the entry point."""
        return [self.quiet] if self.batch and self.quiet else []

    def blocks(self) -> list[list[str]]:
        """What stands before the functions of the module: its constants."""
        return [[f"{name} = {text}" for text, name in self.constants.items()]]

    def needs(self) -> str:
        """The libraries that the module needs, in words."""
        scipy, symad = (any(name in line for line in self.imports) for name in ("scipy", "symad."))
        return " and ".join(["NumPy", *["SciPy"] * (self.needs_scipy or scipy), *["symad"] * symad])

    def without_rule(self, op: Op) -> Text:
        """The text of an op for which the target has no rule.

        Raises:
            LoweringError: always, in this class.
        """
        raise LoweringError(
            f"the op {type(op).__name__} has no form for target {self.target.name!r}; register one by "
            "symad.numeric.targets.scalars.write, or use another backend"
        )

    def text(self, expression: Expression) -> Text:
        """An expression with its precedence."""
        if isinstance(expression, Read):
            return Text(self.named.get(expression.value) or self.name(expression.value))
        if isinstance(expression, Compute):
            op = expression.op
            if isinstance(op, Constant):
                if op not in self.numbers:
                    self.numbers[op] = write(op, self.target, expression, (), self)
                return self.numbers[op]
            args = tuple([self.text(a) for a in expression.args])
            made: Text = write(op, self.target, expression, args, self)
            return made
        if isinstance(expression, StepNumber):
            return self.position(expression.position)
        assert isinstance(expression, Index)
        return self.index_text(expression)

    def filled(self, template: str, argument: str) -> str:
        """A C template, filled with an argument."""
        raise LoweringError(f"{template} is C, not {self.target.name}")

    def turned(self, matrix: str) -> str:
        """The transpose of an array."""
        return f"{matrix}.T"

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """The sum of a node's one argument over some axes."""
        which = f"axis={axes[0] if len(axes) == 1 else axes}" if len(axes) < len(node.args[0].shape) else ""
        return Text(f"{arg.inside(Level.ATOM)}.sum({which})")

    def index_text(self, expression: Index) -> Text:
        """``array[places]``."""
        places = self.places(expression)
        return Text(f"{self.text(expression.array).inside(Level.ATOM)}[{', '.join(places)}]")

    def places(self, expression: Index) -> list[str]:
        """The texts between the brackets of an index; whole axes at the end are left out."""
        lengths = iter(expression.array.shape)
        places = []
        for place in expression.places:
            if isinstance(place, NewAxis):
                places.append("None")
                continue
            length = next(lengths)
            places.append(
                str(self.position(place) if isinstance(place, Position) else self.interval(place, length))
            )
        while len(places) > 1 and places[-1] == ":":
            places.pop()
        return places

    def interval(self, interval: Span, length: Dim) -> str:
        """``start:stop:step``, in its shortest form."""
        start, count, step = interval.start, interval.count, interval.step
        if interval.is_whole(length):
            return ":"
        if step == -1 and same_dim(count, length) and same_dim(plus(start, 1), count):
            return "::-1"
        first = "" if start == 0 and step > 0 else self.dim(start)
        stop = plus(start, times(count, step))
        if step == 1 and same_dim(stop, length):
            return f"{first}:"
        last = self.dim(stop)
        if step == 1:
            return f"{first}:{last}"
        if step < 0:  # a negative stop would count from the end; None means "to the beginning"
            last = ("" if stop < 0 else last) if isinstance(stop, int) else f"{last} if {last} >= 0 else None"
        return f"{first}:{last}:{step}"

    def position(self, position: Position) -> Text:
        """A position on an axis: ``t``, ``t + 1``, ``T - 1 - t``."""
        offset = dimension(position.offset, self)
        if position.index is None:
            return offset
        name = self.name(position.index)
        if position.sign < 0:
            return Text(f"{offset} - {name}", Level.SUM)
        if position.offset == 0:
            return Text(name)
        negative = offset.level is Level.SIGN
        return Text(
            f"{name} - {dimension(-position.offset, self)}" if negative else f"{name} + {offset}", Level.SUM
        )

    def name(self, value: Value) -> str:
        """The name of a value: its stem, followed by a number if the stem is taken."""
        if value not in self.named:
            self.named[value] = self.names.unique(value.stem or "v")
        return self.named[value]

    @contextmanager
    def index(self, value: Value) -> Iterator[str]:
        """The name of a loop's index; loops at the same depth of nesting share it."""
        if self.depth == len(self.indices):
            self.indices.append(self.names.unique(INDICES[min(self.depth, len(INDICES) - 1)]))
        self.named[value] = self.indices[self.depth]
        self.depth += 1
        yield self.named[value]
        self.depth -= 1

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension, which counts as read from now on."""
        self.sizes.add(symbol)
        return self.names.of(symbol)

    def dim(self, dim: Dim) -> str:
        """A dimension as text."""
        return dimension(dim, self).text

    def shape(self, shape: Shape) -> str:
        """A shape as a tuple display, or as a number if it has one axis."""
        dims = [self.dim(d) for d in shape]
        return dims[0] if len(dims) == 1 else f"({', '.join(dims)})"

    @property
    def type_text(self) -> str:
        """The element type of the code as text; a library may take it from another module."""
        return f"{self.np}.{self.dtype}"

    def input_type(self, position: int) -> str:
        """The type to which an argument is converted, as text."""
        return self.type_text

    def input_helper(self, position: int, usual: str) -> str:
        """The helper that converts an argument."""
        return usual

    def float_type(self) -> str:
        """The dtype argument of functions that make arrays; empty for NumPy's default, double precision."""
        return "" if self.dtype == "float64" else f", {self.type_text}"

    def function(self, function: LibraryFunction) -> str:
        """The text of a callable, imported or pasted."""
        if function.module == "numpy":
            return f"{self.np}.{function.name}"
        if function.module == "symad.special":
            return self.helper(getattr(special, function.name))
        if function.module:
            self.needs_scipy = True
            self.imports.add(f"import {function.module}")
        return str(function)

    def users_function(self, head: type[sympy.Basic]) -> str:
        """The helper that calls a user's implementation of a function."""
        if head not in self.users:
            self.users[head] = self.names.unique(head.__name__)
            source = next((source for family, source in SOURCES.items() if issubclass(head, family)), None)
            if source is not None:
                self.helpers[self.users[head]] = source(head, self.users[head], self)
                return self.users[head]
            imported, text = users_call(head, self.users[head], self.helper(special.elementwise))
            self.imports.add(imported)
            self.helpers[self.users[head]] = text
        return self.users[head]

    def beside(self) -> Writer:
        """A writer of plain NumPy, for another function in the same module."""
        other = Writer(NUMPY, self.dtype, self.names)
        other.imports, other.helpers, other.users = self.imports, self.helpers, self.users
        other.constants, other.module, other.pasted = self.constants, self.module, self.pasted
        return other

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper function, which the module will contain."""
        found = pasted_into(self.module, self.pasted, pasted(function))
        self.imports.update(found.imports)
        self.needs_scipy = self.needs_scipy or found.needs_scipy
        self.helpers.update(found.functions)
        return found.functions[-1][0]

    def constant(self, array: NDArray[Any]) -> str:
        """An array of numbers: small ones are written where they are used, others once under a name."""
        kind = "bool" if array.dtype.kind == "b" else f"np.{array.dtype.name}"
        plain = "" if kind == f"np.{self.dtype}" == "np.float64" else f", {kind}"
        text = f"np.array({_display(array)}{plain})"
        if array.size <= MAX_INLINE_CONSTANT:
            return text
        return self.shared(text, "constant")

    def shared(self, text: str, stem: str) -> str:
        """The name of a value that the module computes once, when it is loaded; equal texts share it."""
        if text not in self.constants:
            self.constants[text] = self.names.unique(f"{stem}_{len(self.constants) + 1}")
        return self.constants[text]


SOURCES: dict[type, Callable[[Any, str, Writer], str]] = {}
"""How symad's function classes are printed as functions of the module, by their base class."""

INDICES = ("t", "s", "r", "q")
"""Names of the indices of nested loops, outermost first."""

MAX_INLINE_CONSTANT = 4
"""A constant array with at most this many elements is written where it is used, which is easier to read.

Origin: it bounds the length of a line.
"""


def _display(array: np.ndarray) -> str:
    """Nested lists with exact numbers; ``zeros`` for an empty array, to keep its shape."""
    if array.size == 0:
        return f"np.zeros({array.shape})"
    return nested_text(array.tolist(), "np")
