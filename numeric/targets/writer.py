"""The notes that printing one module takes: names of dimensions, imports, helpers, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from symad import special
from symad.core.dims import Dim, Shape, plus, same_dim, times
from symad.core.graph import Op
from symad.errors import LoweringError
from symad.numeric.modules.names import Names
from symad.numeric.modules.users_functions import users_call
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Interval,
    NewAxis,
    Position,
    Read,
    Step,
    Value,
)
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.scalars import dimension, write
from symad.numeric.targets.target import NUMPY, Function, Level, NumPy, Target, Text

if TYPE_CHECKING:
    import sympy

    from symad.numeric.targets.contractions import MatrixProduct


class Writer:
    """Writes expressions for one target and remembers what the module around them must hold."""

    library: ClassVar[str] = "import numpy as np"
    """What a module imports under the name np."""
    reads_well: ClassVar[bool] = True
    """Whether text is for people first, not for speed."""
    quiet: ClassVar[str] = '@np.errstate(all="ignore")'
    """What turns warnings of functions of scalars off."""

    def __init__(self, target: Target, dtype: str, names: Names) -> None:
        """``names``: identifiers that the module's values have taken."""
        self.target = target
        self.dtype = dtype
        self.names = names
        self.named: dict[Value, str] = {}
        self.batch = ""
        """The first argument of a scalar function: its axes are those of a batch of points."""
        self.indices: list[str] = []
        self.depth = 0
        self.imports: set[str] = set()
        self.needs_scipy = False
        self.helpers: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        """Names of arrays that are made once, by the text that makes them."""
        self.module = names
        """Names of the module's functions, and of values where these could hide them."""
        self.pasted: dict[str, str] = {}
        """What the module calls the helper functions that are public in symad."""
        self.users: dict[Callable[..., object], str] = {}
        """Names of the helpers that call users' functions."""

    @property
    def np(self) -> str:
        """What printed code calls the library of arrays."""
        return self.target.np if isinstance(self.target, NumPy) else NUMPY.np

    def without_rule(self, op: Op) -> Text:
        """The text of an op that the target has no rule for.

        Raises:
            LoweringError: there is none.
        """
        raise LoweringError(f"the op {type(op).__name__} has no form for target {self.target.name!r}")

    def text(self, expression: Expression) -> Text:
        """An expression with its level."""
        if isinstance(expression, Read):
            return Text(self.named.get(expression.value) or self.name(expression.value))
        if isinstance(expression, Step):
            return self.position(expression.position)
        if isinstance(expression, Index):
            return self.index_text(expression)
        assert isinstance(expression, Compute)
        args = tuple([self.text(a) for a in expression.args])
        made: Text = write(expression.op, self.target, expression, args, self)
        return made

    def filled(self, template: str, argument: str) -> str:
        """An expression in one argument from a template of C."""
        raise LoweringError(f"{template} is C, not {self.target.name}")

    def turned(self, matrix: str) -> str:
        """The transpose of an array."""
        return f"{matrix}.T"

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """The sum of the one argument of a node over some axes."""
        which = f"axis={axes[0] if len(axes) == 1 else axes}" if len(axes) < len(node.args[0].shape) else ""
        return Text(f"{arg.inside(Level.ATOM)}.sum({which})")

    def index_text(self, expression: Index) -> Text:
        """``array[places]``."""
        places = self.places(expression)
        return Text(f"{self.text(expression.array).inside(Level.ATOM)}[{', '.join(places)}]")

    def places(self, expression: Index) -> list[str]:
        """What stands between the brackets of an index; whole axes at the end are left out."""
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

    def interval(self, interval: Interval, length: Dim) -> str:
        """``start:stop:step``, as plain as it can be written."""
        start, count, step = interval.start, interval.count, interval.step
        if interval.is_whole(length):
            return ":"
        if step == -1 and same_dim(count, length) and same_dim(plus(start, 1), count):
            return "::-1"
        first = "" if start == 0 and step > 0 else self.dim(start)
        stop = plus(start, times(count, step))
        last = self.dim(stop)
        if step == 1:
            return f"{first}:{'' if same_dim(stop, length) else last}"
        if step < 0:  # a stop below 0 would count from the end: None means "to the beginning"
            last = ("" if stop < 0 else last) if isinstance(stop, int) else f"{last} if {last} >= 0 else None"
        return f"{first}:{last}:{step}"

    def position(self, position: Position) -> Text:
        """A place on an axis: ``t``, ``t + 1``, ``T - 1 - t``."""
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
        """The name of a value: its stem, or a number behind it where that is taken."""
        if value not in self.named:
            self.named[value] = self.names.unique(value.stem or "v")
        return self.named[value]

    @contextmanager
    def index(self, value: Value) -> Iterator[str]:
        """The name of a loop's index: one for each depth of nesting, whatever loop it is."""
        if self.depth == len(self.indices):
            self.indices.append(self.names.unique(INDICES[min(self.depth, len(INDICES) - 1)]))
        self.named[value] = self.indices[self.depth]
        self.depth += 1
        yield self.named[value]
        self.depth -= 1

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension."""
        return self.names.of(symbol)

    def dim(self, dim: Dim) -> str:
        """A dimension as text."""
        return dimension(dim, self).text

    def shape(self, shape: Shape) -> str:
        """A shape as a tuple display, or as a number if it has one axis."""
        dims = [self.dim(d) for d in shape]
        return dims[0] if len(dims) == 1 else f"({', '.join(dims)})"

    def float_type(self) -> str:
        """The second argument of functions that make arrays; NumPy's default is double precision."""
        return "" if self.dtype == "float64" else f", {self.np}.{self.dtype}"

    def function(self, function: Function) -> str:
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
        """The helper that calls a function which a user implements."""
        if head not in self.users:
            self.users[head] = self.names.unique(head.__name__)
            source = next((source for family, source in SOURCES.items() if issubclass(head, family)), None)
            if source is not None:
                self.helpers[self.users[head]] = source(head, self.users[head], self)
                return self.users[head]
            found = users_call(head, self.users[head], self.helper(special.elementwise))
            self.imports.add(found.imported)
            self.helpers[self.users[head]] = found.source.strip()
        return self.users[head]

    def beside(self) -> Writer:
        """A writer of plain NumPy for a function in the same module."""
        other = Writer(NUMPY, self.dtype, self.names)
        other.imports, other.helpers, other.users = self.imports, self.helpers, self.users
        other.constants, other.module, other.pasted = self.constants, self.module, self.pasted
        return other

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper function that the module shall hold."""
        found = pasted_into(self.module, self.pasted, pasted(function))
        self.imports.update(found.imports)
        self.needs_scipy = self.needs_scipy or found.needs_scipy
        self.helpers.update(found.functions)
        return found.functions[-1][0]

    def constant(self, array: NDArray[Any]) -> str:
        """An array of numbers: small ones where they are used, others once under a name."""
        kind = "bool" if array.dtype.kind == "b" else f"np.{array.dtype.name}"
        plain = "" if kind == f"np.{self.dtype}" == "np.float64" else f", {kind}"
        text = f"np.array({_display(array)}{plain})"
        if array.size <= SMALL:
            return text
        if text not in self.constants:
            self.constants[text] = self.names.unique(f"constant_{len(self.constants) + 1}")
        return self.constants[text]


SOURCES: dict[type, Callable[[Any, str, Writer], str]] = {}
"""How functions that symad makes are printed as functions of the module, by the class they derive from."""

INDICES = ("t", "s", "r", "q")
"""Names of the indices of nested loops, outermost first."""

SMALL = 4
"""Elements up to which a constant array is written where it is used; for the eye, not for speed."""


def _display(array: np.ndarray) -> str:
    """Nested lists with exact numbers; an empty array keeps its shape by zeros."""
    if array.size == 0:
        return f"np.zeros({array.shape})"
    if array.dtype.kind != "f":
        return str(array.tolist())
    return _nested(array)


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        value = float(array)
        if np.isnan(value):
            return "np.nan"
        return repr(value) if np.isfinite(value) else ("np.inf" if value > 0 else "-np.inf")
    return f"[{', '.join(map(_nested, array))}]"
