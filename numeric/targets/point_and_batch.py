"""Straight-line code of scalars: one body in Python, bound to `math` for a point and to NumPy for a batch.

The body names functions and nothing else, neither a module nor a helper; two tables say what the names are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.codegen.cfunctions import expm1, hypot, log1p, log2, log10
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Array
from symad.evaluation.numpy_names import NUMPY_NAMES
from symad.library.scalar_functions import sigmoid
from symad.numeric.modules.names import Names
from symad.numeric.numpy_arrays.ops.constants import constant_text
from symad.numeric.numpy_arrays.ops.integers import integers_text
from symad.numeric.passes.memory_layout.packed_entries import Pack, SparsePack
from symad.numeric.program.expressions import Compute, Expression
from symad.numeric.targets import scalar_helpers as helpers
from symad.numeric.targets.scalars import HALF, Written, call, exponent_of, number, write
from symad.numeric.targets.target import Function, Python, Text, Texts, table
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.sources import ArrayConstant, Constant
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Logic, Select

if TYPE_CHECKING:
    AnyWriter: TypeAlias = "BodyWriter"
else:  # plum dispatches on op and target alone
    AnyWriter = Any

Bound: TypeAlias = "str | Callable[..., Array | float]"
"""What a name is bound to: a text, or a helper function of ours."""

MATH_AND_NUMPY = {
    **dict.fromkeys(("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "expm1", "log1p")),
    **dict.fromkeys(("log2", "log10", "hypot", "inf", "nan")),
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip
"""Names of `math`, and what NumPy calls them where it differs."""

BINDINGS: dict[str, tuple[Bound, Bound]] = {
    **{name: (f"math.{name}", f"np.{other or name}") for name, other in MATH_AND_NUMPY.items()},
    "floor": (helpers._floor, "np.floor"),
    "ceil": (helpers._ceil, "np.ceil"),
    "absolute": ("abs", "np.abs"),
    "power": ("math.pow", "np.power"),
    "logaddexp": (helpers._logaddexp, "np.logaddexp"),
    "sigmoid": (helpers._sigmoid, helpers._sigmoid_of_arrays),
    "sign": (helpers._sign, "np.sign"),
    "where": (helpers._where, "np.where"),
    "maximum": (helpers._maximum, helpers._maximum_of_arrays),
    "minimum": (helpers._minimum, helpers._minimum_of_arrays),
    "logical_and": (helpers._all_of, helpers._all_of_arrays),
    "logical_or": (helpers._any_of, helpers._any_of_arrays),
    "logical_not": (helpers._not, "np.logical_not"),
    "logical_xor": (helpers._xor, helpers._xor_of_arrays),
    "pack": (helpers._pack, helpers._pack_arrays),
    "pack_at": (helpers._pack_at, helpers._pack_arrays_at),
    "sparse": (helpers._sparse, helpers._sparse_or_dense),
    "array": ("np.array", "np.array"),
}
"""The names of a body, and what they are bound to for a point and for a batch."""

_HEADS = {
    **{getattr(sympy, name): name for name in MATH_AND_NUMPY if isinstance(getattr(sympy, name, None), type)},
    **{sympy.floor: "floor", sympy.ceiling: "ceil", sympy.Abs: "absolute", sympy.sign: "sign"},
    **{sympy.Max: "maximum", sympy.Min: "minimum", logaddexp: "logaddexp", sigmoid: "sigmoid"},
    **{expm1: "expm1", log1p: "log1p", log2: "log2", log10: "log10", hypot: "hypot"},
}


@dataclass(frozen=True)
class Body(Python):
    """Python of names that are bound later."""


BODY = Body("numpy", table(NUMPY_NAMES | _HEADS), "inf", "nan", writes_floats=True)

MANY = 64
"""Entries from which on an array that is half zeros or more is written without them."""


class BodyWriter(Writer):
    """Writes the body, and remembers what its names are bound to."""

    np = "np"

    def __init__(self, names: Names) -> None:
        """``names``: identifiers of the module."""
        super().__init__(BODY, "float64", names)
        self.module = Names()  # the body is not in the module's scope: what it calls is bound to it
        self.bindings: dict[str, tuple[str, str]] = {}
        self.array_functions: dict[Function, str] = {}
        """Names of the functions that only NumPy or SciPy has."""
        self.numbers: dict[Constant, Text] = {}

    def bound(self, name: str) -> str:
        """A name of `BINDINGS`."""
        if name not in self.bindings:
            point, batch = (b if isinstance(b, str) else self.helper(b) for b in BINDINGS[name])
            self.bindings[name] = point, batch
        return name

    def function(self, function: Function) -> str:
        """The name of a function; those that only NumPy or SciPy has are bound to it twice."""
        if not function.module:
            return self.bound(function.name)
        if function not in self.array_functions:
            text = super().function(function)
            self.array_functions[function] = name = self.names.unique(function.name)
            self.bindings[name] = text, text
        return self.array_functions[function]

    def users_function(self, head: type[sympy.Basic]) -> str:
        """The helper that calls a function which a user implements, bound to itself."""
        name = super().users_function(head)
        self.bindings[name] = name, name
        return name

    def helper(self, function: Bound, source: str = "") -> str:
        """The name of a helper function, which is given as it is or by its name and source."""
        if isinstance(function, str):
            self.helpers[function] = source
            return function
        return super().helper(function)

    def constant(self, array: NDArray[Any]) -> str:
        """An array of numbers, once under a name."""
        kind = {"b": "bool", "i": "np.intp"}.get(array.dtype.kind, "np.float64")
        return self.named_constant(constant_text(array, kind, self))

    def named_constant(self, text: str) -> str:
        """A value that is made when the module is loaded; the name that it is bound to."""
        name = f"constant_{len(self.constants) + 1}"
        self.constants[text] = f"_{name}"
        self.bindings[name] = f"_{name}", f"_{name}"
        return name


@write.dispatch
def write_number(op: Constant, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    if op not in writer.numbers:
        text = writer.numbers[op] = number(op.value, target)
        for name in ("inf", "nan"):
            if text.text in (name, f"-{name}"):
                writer.bound(name)
    return writer.numbers[op]


@write.dispatch
def write_power_of_body(op: Pow, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    if exponent_of(node) == HALF:
        return call(writer.bound("sqrt"), node.args[:1], args[:1], writer)
    return call(writer.bound("power"), node.args, args, writer)


@write.dispatch
def write_logic_of_body(op: Logic, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    return call(writer.bound(f"logical_{op.kind}"), node.args, args, writer)


@write.dispatch
def write_select_of_body(op: Select, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    return call(writer.bound("where"), node.args, args, writer)


# ---- arrays of scalars --------------------------------------------------------------------------


@write.dispatch
def write_pack_of_body(op: Pack, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    """The entries; of many that are mostly zeros, those that are not and their places."""
    shape = tuple(op.shape)
    filled = [k for k, entry in enumerate(node.args) if not _is_zero(entry)]
    if len(args) <= MANY or 2 * len(filled) >= len(args):
        return Text(f"{writer.bound('pack')}({_display(args)}, {shape})")
    where = writer.constant(np.array(filled, np.intp))
    return Text(f"{writer.bound('pack_at')}({_display([args[k] for k in filled])}, {where}, {shape})")


@write.dispatch
def write_sparse_pack(op: SparsePack, target: Body, node: Compute, args: Texts, writer: AnyWriter) -> Written:
    """The entries on a copy of a matrix of zeros that is made once."""
    writer.imports.add("from scipy.sparse import csr_array")
    indices = []
    for what, array in (("columns", op.matrix.columns), ("rows", op.matrix.rows)):
        text = integers_text(array, "np.int32", writer) or f"np.array({array.tolist()}, dtype=np.int32)"
        indices.append(f"_{what}_{len(writer.constants) + 1}")
        writer.constants[text] = indices[-1]
    zeros = f"np.zeros({len(args)})"
    matrix = f"csr_array(({zeros}, {', '.join(indices)}), shape={tuple(op.matrix.shape)})"
    structure = writer.named_constant(f"{writer.helper(helpers._structure)}({matrix})")
    return Text(f"{writer.bound('sparse')}({_display(args)}, {structure})")


@write.dispatch
def write_constant_array(
    op: ArrayConstant, target: Body, node: Compute, args: Texts, writer: AnyWriter
) -> Written:
    """A copy, which the caller may change."""
    return Text(f"{writer.bound('array')}({writer.constant(op.array)})")


def _display(args: list[Text] | tuple[Text, ...]) -> str:
    """Texts as a tuple."""
    return f"({', '.join(a.text for a in args)}{',' if len(args) == 1 else ''})"


def _is_zero(expression: Expression) -> bool:
    """Whether an entry is the number 0, not the truth value."""
    value = getattr(getattr(expression, "op", None), "value", None)
    return not isinstance(value, bool) and value == 0
