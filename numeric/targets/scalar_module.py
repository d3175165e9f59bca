"""Straight-line scalar code as a standalone module: the body, its two bindings, and the entry point.

`math` raises where IEEE arithmetic gives inf or nan; such points are passed to the NumPy binding, so that
results always have NumPy's semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.codegen.cfunctions import expm1, hypot, log1p, log2, log10
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Array
from symad.facts.functions import float_names
from symad.numeric.compiler.c_templates import filled
from symad.numeric.modules.module_text import Names, frame, returned, summary
from symad.numeric.passes.memory_layout.packed_entries import Pack, SparsePack
from symad.numeric.program.expressions import Compute, Expression
from symad.numeric.program.program import Program
from symad.numeric.targets import scalar_helpers as helpers
from symad.numeric.targets.c_functions import FORMS as C_FORMS
from symad.numeric.targets.constants import constant_text, integers_text
from symad.numeric.targets.scalars import HALF, Written, call, exponent_of, function_of, number, write
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.target import Level, LibraryFunction, Python, Text, Texts, table
from symad.numeric.targets.writer import Writer
from symad.ops.basic.sources import ArrayConstant, Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Logic, Select
from symad.sympy_functions.scalar_functions import sigmoid

# ---- straight-line scalar code -------------------------------------------------------------------

# The body contains plain names only, no module and no helper; two tables give the names their meaning.


Bound: TypeAlias = "str | Callable[..., Array | float]"
"""The object that a name is bound to: its text, or a helper function."""

MATH_AND_NUMPY = {
    **dict.fromkeys(("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "expm1", "log1p")),
    **dict.fromkeys(("log2", "log10", "inf", "nan")),
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip
"""Names in `math`, and NumPy's names of the same functions where they differ."""

IN_MATH = frozenset(f"math.{name}" for name in (*MATH_AND_NUMPY, "hypot", "pow", "erf", "erfc", "gamma"))
"""The functions and constants of `math` that names are bound to."""

BINDINGS: dict[str, tuple[Bound, Bound]] = {
    **{name: (f"math.{name}", f"np.{other or name}") for name, other in MATH_AND_NUMPY.items()},
    "floor": (helpers._floor, "np.floor"),
    "ceil": (helpers._ceil, "np.ceil"),
    "absolute": ("abs", "np.abs"),
    "hypot": ("math.hypot", helpers._hypot_of_arrays),
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
"""The names in a body, with their bindings for a point and for a batch."""

_HEADS = {
    **{getattr(sympy, name): name for name in MATH_AND_NUMPY if isinstance(getattr(sympy, name, None), type)},
    **{sympy.floor: "floor", sympy.ceiling: "ceil", sympy.Abs: "absolute", sympy.sign: "sign"},
    **{sympy.Max: "maximum", sympy.Min: "minimum", logaddexp: "logaddexp", sigmoid: "sigmoid"},
    **{expm1: "expm1", log1p: "log1p", log2: "log2", log10: "log10", hypot: "hypot"},
}


@dataclass(frozen=True)
class Body(Python):
    """Python whose names are bound later."""


BODY = Body("numpy", table(float_names() | _HEADS), "inf", "nan", writes_floats=True)

FORMS: dict[type[sympy.Basic], str] = {
    **{head: C_FORMS[head] for head in (sympy.sec, sympy.csc, sympy.cot, sympy.csch, sympy.coth)},
    **{head: C_FORMS[head] for head in (sympy.asec, sympy.acsc, sympy.acot)},
    **{head: C_FORMS[head] for head in (sympy.asech, sympy.acsch, sympy.acoth)},
    sympy.sech: "1 / $cosh($a)",
}
"""Heads that are expressions in functions of both libraries, as templates of C."""

AT_A_POINT: dict[str, Bound] = {
    **{f"scipy.special.{name}": f"math.{name}" for name in ("erf", "erfc", "gamma")},
    **{f"symad.special.{name[1:]}": getattr(helpers, name) for name in helpers.OF_SPECIAL},
}
"""Functions that replace those of NumPy or SciPy at a single point, where the latter take about ten times as
long."""

MIN_ENTRIES_FOR_PLACES = 32
"""An array with at least this many entries, more than half of them zeros, is written by its nonzero entries.

At one point this takes, with 12 zeros in 16, 0.97 of the time at 16 entries, 0.75 at 32, 0.6 at 128; with 9
zeros in 16, 1.03 at 16 entries, 0.85 at 32, 0.72 at 128 (bench_scalar_thresholds.py).
"""


class BodyWriter(Writer):
    """Writes the body, and records the bindings of its names."""

    np = "np"

    def __init__(self, names: Names, sides: Sequence[int] = (0, 1)) -> None:
        """``names`` are the identifiers of the module; ``sides`` the bindings in use: 0 point, 1 batch."""
        super().__init__(BODY, "float64", names)
        self.sides = sides
        self.module = Names()  # the body has a scope of its own; the names it calls are bound in it
        self.bindings: dict[str, tuple[str, str]] = {}
        self.array_functions: dict[LibraryFunction, str] = {}
        """Names of the functions that exist in NumPy or SciPy only."""
        self.warns = False
        """Whether NumPy or SciPy computes a point; their functions warn of poles."""

    def bound(self, name: str) -> str:
        """A name of `BINDINGS`, noted as used."""
        if name not in self.bindings:
            self.bind(name, *BINDINGS[name])
        return name

    def bind(self, name: str, point: Bound, batch: Bound) -> None:
        """Bind a name for a point and for a batch."""
        texts = ["", ""]
        for side in self.sides:
            bound = (point, batch)[side]
            texts[side] = bound if isinstance(bound, str) else self.helper(bound)
            if bound in IN_MATH:
                self.imports.add("import math")
        self.bindings[name] = texts[0], texts[1]

    def function(self, function: LibraryFunction) -> str:
        """The name of a function; where a point has no form of its own, both bindings are the same."""
        if not function.module:
            return self.bound(function.name)
        if function not in self.array_functions:
            text = super().function(function)
            point = AT_A_POINT.get(f"{function.module}.{function.name}", text)
            self.warns = self.warns or point == text
            self.array_functions[function] = name = self.names.unique(function.name)
            self.bind(name, point, text)
        return self.array_functions[function]

    def filled(self, template: str, argument: str) -> str:
        """An expression in one argument."""
        return filled(template, lambda name: argument if name == "a" else self.bound(name))

    def users_function(self, head: type[sympy.Basic]) -> str:
        """The helper that calls a user's implementation of a function; it is the same in both bindings."""
        name = super().users_function(head)
        self.bindings[name] = name, name
        return name

    def constant(self, array: NDArray[Any]) -> str:
        """The name of an array of numbers, which the module defines once."""
        kind = {"b": "bool", "i": "np.intp"}.get(array.dtype.kind, "np.float64")
        return self.named_constant(constant_text(array, kind, self))

    def named_constant(self, text: str) -> str:
        """The name bound to a value that is computed when the module is loaded."""
        name = self.shared(text, "_constant")
        self.bindings[name] = name, name
        return name


@write.dispatch
def write_number(op: Constant, target: Body, node: Compute, args: Texts, writer: BodyWriter) -> Written:
    text = number(op.value, target)
    for name in ("inf", "nan"):
        if text.text in (name, f"-{name}"):
            writer.bound(name)
    return text


@write.dispatch
def write_function_of_body(
    op: Apply, target: Body, node: Compute, args: Texts, writer: BodyWriter
) -> Written:
    form = FORMS.get(op.head)
    if form is None:
        return function_of(op, target, node, args, writer)
    return Text(writer.filled(form, args[0].inside(Level.ATOM)), Level.PRODUCT)


@write.dispatch
def write_power_of_body(op: Pow, target: Body, node: Compute, args: Texts, writer: BodyWriter) -> Written:
    if exponent_of(node) == HALF:
        return call(writer.bound("sqrt"), node.args[:1], args[:1], writer)
    return call(writer.bound("power"), node.args, args, writer)


@write.dispatch
def write_logic_of_body(op: Logic, target: Body, node: Compute, args: Texts, writer: BodyWriter) -> Written:
    return call(writer.bound(f"logical_{op.kind}"), node.args, args, writer)


@write.dispatch
def write_select_of_body(op: Select, target: Body, node: Compute, args: Texts, writer: BodyWriter) -> Written:
    return call(writer.bound("where"), node.args, args, writer)


# ---- arrays of scalars --------------------------------------------------------------------------


@write.dispatch
def write_pack_of_body(op: Pack, target: Body, node: Compute, args: Texts, writer: BodyWriter) -> Written:
    """The entries; of a large array with many zeros, the nonzero entries and their positions."""
    shape = tuple(op.shape)
    filled = [k for k, entry in enumerate(node.args) if not _is_zero(entry)]
    if len(args) < MIN_ENTRIES_FOR_PLACES or 2 * len(filled) >= len(args):
        return Text(f"{writer.bound('pack')}({_display(args)}, {shape})")
    where = writer.constant(np.array(filled, np.intp))
    return Text(f"{writer.bound('pack_at')}({_display([args[k] for k in filled])}, {where}, {shape})")


@write.dispatch
def write_sparse_pack(
    op: SparsePack, target: Body, node: Compute, args: Texts, writer: BodyWriter
) -> Written:
    """The entries in a copy of a matrix of zeros, which is made once."""
    writer.imports.add("from scipy.sparse import csr_array")
    indices = []
    for what, array in (("columns", op.matrix.columns), ("rows", op.matrix.rows)):
        text = integers_text(array, "np.int32", writer) or f"np.array({array.tolist()}, dtype=np.int32)"
        indices.append(writer.shared(text, f"_{what}"))
    zeros = f"np.zeros({len(args)})"
    matrix = f"csr_array(({zeros}, {', '.join(indices)}), shape={tuple(op.matrix.shape)})"
    structure = writer.named_constant(f"{writer.helper(helpers._structure)}({matrix})")
    return Text(f"{writer.bound('sparse')}({_display(args)}, {structure})")


@write.dispatch
def write_constant_array(
    op: ArrayConstant, target: Body, node: Compute, args: Texts, writer: BodyWriter
) -> Written:
    """A copy, so that the caller may change it; integers become floats, as all results are."""
    array = op.array if op.array.dtype.kind == "b" else op.array.astype(np.float64)
    return Text(f"{writer.bound('array')}({writer.constant(array)})")


def _display(args: list[Text] | tuple[Text, ...]) -> str:
    """Texts as a tuple."""
    return f"({', '.join(a.text for a in args)}{',' if len(args) == 1 else ''})"


def _is_zero(expression: Expression) -> bool:
    """Whether an entry is the number 0, and not the truth value False."""
    value = getattr(getattr(expression, "op", None), "value", None)
    return not isinstance(value, bool) and value == 0


def print_scalar_module(program: Program, dtype: str, packed: bool) -> tuple[str, tuple[str, ...]]:
    """The entry point's name and the source of the module.

    Args:
        program: a program of scalars, with arrays of scalars among its results only.
        dtype: the type of batches, and of points not computed by `math`, which has doubles only.
        packed: whether the entry point takes all inputs as one vector x.
    """
    names = Names(BINDINGS)
    entry = names.unique(program.name)
    sides = {"point": 0} if dtype == "float64" or not program.inputs else {}
    sides |= {"batch": 1} if program.inputs else {}
    writer = BodyWriter(names, tuple(sides.values()))
    writer.module.unique(entry)
    writer.imports.add("import types")
    inputs = [writer.name(value) for value in program.inputs]
    body = lines_of(program.statements, writer)
    texts = [writer.text(result).text for result in program.results]
    body.append(f"return {returned(program.structure, texts)}")
    made = _entry(program, entry, inputs, dtype, packed, writer)
    if inputs or writer.bindings:
        writer.imports.add("import numpy as np")
    tables = {
        where: {name: pair[side] for name, pair in sorted(writer.bindings.items())}
        for where, side in sides.items()
    }
    blocks = [
        [f"{name} = {text}" for text, name in writer.constants.items()],
        [f"def _body({', '.join(inputs)}):", *indented(body)],
        [
            "# One body, two bindings: plain floats by math, arrays and exceptional points by NumPy.",
            *(
                f"_at_{name} = types.FunctionType(_body.__code__, {_bound(table)})"
                for name, table in tables.items()
            ),
        ],
        made,
    ]
    return entry, frame(program.name, writer.imports, writer.helpers.values(), blocks, writer.needs())


def _entry(
    program: Program, entry: str, inputs: Sequence[str], dtype: str, packed: bool, writer: BodyWriter
) -> list[str]:
    """The function that users call: it evaluates a point of floats directly, all else by `_evaluated`."""
    signature = ", ".join(inputs)
    results, shapes = [r.shape for r in program.results], [v.shape for v in program.inputs]
    told = summary(program.labels, results, program.structure, zip(inputs, shapes, strict=True))
    head = [f"def {entry}({'x' if packed else signature}):", f"    {told}"]
    if dtype == "float64" and writer.warns:
        head = ['@np.errstate(all="ignore")', *head]
    if not inputs:
        return [*head, "    return _at_point()"]
    double = dtype == "float64"
    ranks = tuple(len(result.shape) for result in program.results)
    shown = tuple(value.stem for value in program.inputs)
    values, call = f"({signature}{',' * (len(inputs) == 1)})", signature
    if packed:
        values, call = "x.tolist()" if double else "list(x)", "*x.tolist()"
        head += [
            f"    x = np.asarray(x, dtype=np.{dtype})",
            f"    if x.shape != ({len(inputs)},):",
            f'        raise ValueError(f"x must have shape ({len(inputs)},), not {{x.shape}}")',
        ]
    attempt = ["try:", f"    return _at_point({call})", "except (ArithmeticError, ValueError):", "    pass"]
    attempt = attempt if packed else [f"if {_all_floats(inputs)}:", *indented(attempt)]
    at_point = "_at_point" if double else "None"
    rest = f"_NAMES, {ranks}, {at_point}, _at_batch, np.{dtype}"
    return [
        f"_NAMES = {shown!r}",
        "",
        "",
        *head,
        *indented(attempt if double else []),
        f"    return {writer.helper(helpers._evaluated)}({values}, {rest})",
    ]


def _all_floats(inputs: Sequence[str]) -> str:
    """The condition that all arguments are floats; a set of the types takes longer for any number of them."""
    return " is ".join([*(f"type({name})" for name in inputs), "float"])


def _bound(table: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in table.items()) + "}"
