"""How each op is written for libraries with NumPy's interface.

`emit` answers with one expression; its arguments are names or literals, so no precedence matters.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.dims import plus, same_dim, times
from symad.core.graph import Node, Op
from symad.core.questions import definition, question
from symad.errors import LoweringError
from symad.evaluation.number_domains import as_float
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.texts import is_name
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.arrays.sources import ArrayConstant, Constant, Dimension, Eye, Iota, constant_value
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:  # plum sees Any: it dispatches on op and library, and converts no return values
    Text = Texts = Any


@question
def emit(op: Op, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Any:
    """The expression that computes ``node`` from the names of its arguments."""


@emit.dispatch
def by_definition(
    op: Op, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    """An op without a form of its own is written as what it stands for."""
    stands_for = definition(op, node)
    if not isinstance(stands_for, Node):
        raise LoweringError(f"the op {type(op).__name__} has no form for backend {library.name!r}")
    needed, result = printer.in_place_of(stands_for)
    printer.before.extend(needed)
    return result


# ---- sources -------------------------------------------------------------------------------------


@emit.dispatch
def constant_emit(
    op: Constant, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    value = op.value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < 2**63:
        return f"({value.numerator}/{value.denominator})"
    if isinstance(value, int) and abs(value) < 2**63:
        return f"({value})" if value < 0 else str(value)
    number = as_float(value)
    if number != number:
        return f"{printer.np}.nan"
    if math.isinf(number):
        return f"{printer.np}.inf" if number > 0 else f"(-{printer.np}.inf)"
    return f"({number!r})" if number < 0 else repr(number)


@emit.dispatch
def array_constant_emit(
    op: ArrayConstant, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    array = op.array
    if array.dtype.kind in "iu" and node not in printer.row_numbers:
        array = array.astype(np.float64)  # integers would make double precision of single precision
    made: str = printer.constant_array(array)
    return made


@emit.dispatch
def dimension_emit(
    op: Dimension, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    text = str(printer.dim(op.expression))
    if printer.dtype != "float32" or node in printer.row_numbers:
        return text
    return f"{printer.np}.float32({text})"  # quotients of Python's numbers would be in double precision


@emit.dispatch
def iota_emit(op: Iota, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return f"{printer.np}.arange({printer.bare(op.size)}, dtype={printer.np}.{printer.dtype})"


@emit.dispatch
def eye_emit(op: Eye, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return f"{printer.np}.eye({printer.bare(op.size)}, dtype={printer.np}.{printer.dtype})"


# ---- elementwise ---------------------------------------------------------------------------------


@emit.dispatch
def add_emit(op: Add, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    text = ("-" if op.signs[0] == -1 else "") + args[0]
    for sign, arg in zip(op.signs[1:], args[1:], strict=True):
        text += (" + " if sign == 1 else " - ") + arg
    return text


@emit.dispatch
def mul_emit(op: Mul, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    over = [a for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a for p, a in zip(op.powers, args, strict=True) if p == -1]
    top = "*".join(over) if over else "1"
    if not under:
        return top
    if all(constant_value(a) is not None or not a.shape for a in node.args):
        return f"{printer.np}.true_divide({top}, {'*'.join(under)})"
    return f"{top}/{under[0]}" if len(under) == 1 else f"{top}/({'*'.join(under)})"


@emit.dispatch
def pow_emit(op: Pow, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    value = constant_value(node.args[1])
    if value in (2, 3):
        return "*".join([args[0]] * int(value))
    if value == 4:
        return f"{printer.np}.square({args[0]}*{args[0]})"
    if value == Fraction(1, 2):
        return f"{printer.np}.sqrt({args[0]})"
    if value == Fraction(3, 2):
        return f"{args[0]}*{printer.np}.sqrt({args[0]})"
    base = args[0] if constant_value(node.args[0]) is None else f"float({args[0]})"
    return f"{printer.np}.power({base}, {args[1]})"


DIRECT = {log1p: "log1p", expm1: "expm1", logaddexp: "logaddexp", sympy.Abs: "abs"}


@emit.dispatch
def apply_emit(op: Apply, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    if op.head in (sympy.Max, sympy.Min):
        name = "maximum" if op.head is sympy.Max else "minimum"
        text = args[0]
        for arg in args[1:]:
            text = f"{printer.np}.{name}({text}, {arg})"
        return text
    if op.head in DIRECT:
        return f"{printer.np}.{DIRECT[op.head]}({', '.join(args)})"
    text = f"{printer.function(op.head)}({', '.join(args)})"
    own = printer.is_own(op.head)  # some compute in double precision
    narrow = own and printer.dtype == "float32" and printer.np == "np"
    return f"np.asarray({text}, dtype=np.float32)" if narrow else text


@emit.dispatch
def compare_emit(op: Compare, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return f"{args[0]} {op.relation} {args[1]}"


@emit.dispatch
def logic_emit(op: Logic, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    if op.kind == "not":
        return f"{printer.np}.logical_not({args[0]})"
    text = args[0]
    for arg in args[1:]:
        text = f"{printer.np}.logical_{op.kind}({text}, {arg})"
    return text


@emit.dispatch
def select_emit(op: Select, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    text = f"{printer.np}.where({', '.join(args)})"
    numbers = all(isinstance(a.op, Constant) for a in node.args[1:])  # of which NumPy makes what they are
    return f"{text}.astype({printer.np}.{printer.dtype})" if numbers else text


# ---- shaping -------------------------------------------------------------------------------------


@emit.dispatch
def broadcast_emit(
    op: Broadcast, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    (arg,) = node.args
    if not arg.shape:
        if constant_value(arg) is not None:
            dtype = f"{printer.np}.{printer.dtype}"
            value = constant_value(arg)
            name = {0: "zeros", 1: "ones"}.get(value) if type(value) is int else None
            if name is not None:
                return f"{printer.np}.{name}({printer.dims(op.shape)}, dtype={dtype})"
            return f"{printer.np}.full({printer.dims(op.shape)}, {args[0]}, dtype={dtype})"
        return f"{printer.np}.broadcast_to({args[0]}, {printer.dims(op.shape)})"
    lead = op.axes == tuple(range(len(op.shape) - len(op.axes), len(op.shape)))
    if lead:
        return f"{printer.np}.broadcast_to({args[0]}, {printer.dims(op.shape)})"
    index = ", ".join(":" if k in op.axes else "None" for k in range(len(op.shape)))
    return f"{printer.np}.broadcast_to({args[0]}[{index}], {printer.dims(op.shape)})"


@emit.dispatch
def reshape_emit(op: Reshape, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    if node.args[0].shape and is_name(args[0]):
        return f"{args[0]}.reshape({printer.dims(op.shape)})"  # eight times as fast as the function
    return f"{printer.np}.reshape({args[0]}, {printer.dims(op.shape)})"


def slice_text(start: Any, count: Any, step: int, dim: Any, printer: Any) -> str:
    """``start:stop:step`` for ``count`` elements."""
    return ":".join(slice_parts(start, count, step, dim, printer))


def slice_parts(start: Any, count: Any, step: int, dim: Any, printer: Any) -> tuple[str, ...]:
    """The start, the stop and perhaps the step of ``count`` elements; empty where it need not be said."""
    whole = same_dim(count, dim)
    if start == 0 and step == 1 and whole:
        return "", ""
    if step == -1 and whole and same_dim(plus(start, 1), count):
        return "", "", "-1"
    stop = plus(start, times(count, step))
    end = "" if same_dim(stop, dim) else printer.bare(stop)
    if step < 0:  # a stop below 0 would count from the end: None means "to the beginning"
        end = ("" if stop < 0 else end) if isinstance(stop, int) else f"{end} if {end} >= 0 else None"
    return "" if start == 0 and step > 0 else printer.bare(start), end, *([str(step)] if step != 1 else [])


@emit.dispatch
def slice_emit(op: Slice, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    (arg,) = node.args
    rows = zip(op.start, op.count, op.step, arg.shape, strict=True)
    parts = [slice_text(*row, printer) for row in rows]
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return f"{args[0]}[{', '.join(parts)}]"


PAD = """def _pad(values, shape, index):
    result = np.zeros(shape, dtype=values.dtype)
    result[index] = values
    return result
"""


@emit.dispatch
def pad_emit(op: Pad, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    (arg,) = node.args
    index = []
    for start, step, count, dim in zip(op.start, op.step, arg.shape, op.shape, strict=True):
        found = slice_parts(start, count, step, dim, printer)
        index.append(f"slice({', '.join(part or 'None' for part in found)})" if any(found) else "slice(None)")
    closing = "," if len(index) == 1 else ""
    pad = printer.helper("_pad", PAD)
    return f"{pad}({args[0]}, {printer.dims(op.shape)}, ({', '.join(index)}{closing}))"


@emit.dispatch
def concatenate_emit(
    op: Concatenate, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.np}.concatenate([{', '.join(args)}], axis={op.axis})"


@emit.dispatch
def stack_emit(op: Stack, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    if not node.args[0].shape:
        dtype = f"{printer.np}.{printer.dtype}"
        scalars = ", ".join(f"{printer.np}.asarray({a}, dtype={dtype})" for a in args)
        return f"{printer.np}.stack([{scalars}])"
    return f"{printer.np}.stack([{', '.join(args)}], axis={op.axis})"


INDICES = """def _indices(values, rows):
    indices = values.astype(np.int64)
    wrong = (indices != values) | (indices < 0) | (indices >= rows)
    if wrong.any():
        raise IndexError(f"index {values[wrong].item(0):g} is not an integer in 0..{rows - 1}")
    return indices
"""

SCATTER = """def _scatter_add(indices, updates, rows):
    result = np.zeros((rows, *updates.shape[indices.ndim:]), dtype=updates.dtype)
    np.add.at(result, indices, updates)
    return result
"""


POSITIONS = """def _positions(values, low, length, axis, what):
    values = np.asarray(values)
    right = (values == np.floor(values)) & (values >= low) & (values < length)
    if not right.all().item():
        raise IndexError(
            f"index {values[~right].item(0):g} is not an integer in {low}..{length - 1}: "
            f"axis {axis} of {what} has length {length}"
        )
    return values.astype(np.int64) % length
"""


@emit.dispatch
def positions_emit(op: Positions, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    helper = printer.helper("_positions", POSITIONS)
    text = ""
    for arg, dim, axis in zip(args, op.shape, op.axes, strict=True):
        length = printer.dim(dim)
        low = f"-{length}" if op.from_end else "0"
        found = f"{helper}({arg}, {low}, {length}, {axis}, {op.what!r})"
        text = f"({text})*{length} + {found}" if text else found
    return text if node in printer.row_numbers else f"({text}).astype({printer.np}.{printer.dtype})"


def _fits(indices: Node, rows: Any, printer: Any) -> bool:
    """Whether the indices are written as integers, and known to be in range: checked, or constants."""
    if indices not in printer.row_numbers:  # read as numbers too, so written as floats
        return False
    if isinstance(indices.op, Positions):
        return True
    if not isinstance(indices.op, ArrayConstant) or not isinstance(rows, int):
        return False
    array = indices.op.array
    if array.dtype.kind not in "iu":
        return False
    return not array.size or bool(array.min() >= 0 and array.max() < rows)


@emit.dispatch
def gather_emit(op: Gather, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    table, indices = args
    if _fits(node.args[1], node.args[0].shape[0], printer):
        return f"{table}[{indices}]"
    helper = printer.helper("_indices", INDICES)
    return f"{table}[{helper}({printer.np}.asarray({indices}), {table}.shape[0])]"


@emit.dispatch
def scatter_add_emit(
    op: ScatterAdd, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    indices, updates = args
    rows = printer.dim(op.size)
    if _fits(node.args[0], op.size, printer):
        found = indices
    else:
        found = f"{printer.helper('_indices', INDICES)}({printer.np}.asarray({indices}), {rows})"
    return f"{printer.helper('_scatter_add', SCATTER)}({found}, {updates}, {rows})"


# ---- reductions ----------------------------------------------------------------------------------


@emit.dispatch
def extreme_emit(op: Extreme, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    axes = op.axes[0] if len(op.axes) == 1 else op.axes
    return f"{args[0]}.{op.kind}(axis={axes})"


@emit.dispatch
def product_emit(op: Product, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return f"{args[0]}.prod(axis=-1)"


# ---- linear algebra ------------------------------------------------------------------------------


@emit.dispatch
def solve_emit(op: Solve, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return f"{printer.np}.linalg.solve({args[0]}, {args[1]})"


TRIANGULAR = """def _solve_triangular(matrix, right, lower):
    if matrix.ndim == 2:
        return scipy.linalg.solve_triangular(matrix, right, lower=lower)
    return np.linalg.solve(np.tril(matrix) if lower else np.triu(matrix), right)
"""


@emit.dispatch
def triangular_solve_emit(
    op: TriangularSolve, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    printer.imports.add("import scipy.linalg")
    return f"{printer.helper('_solve_triangular', TRIANGULAR)}({args[0]}, {args[1]}, {op.lower})"


@emit.dispatch
def determinant_emit(
    op: Determinant, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.np}.linalg.det({args[0]})"


LOGDET = """def _log_determinant(matrix):
    sign, logarithm = np.linalg.slogdet(matrix)
    return np.where(sign < 0, np.nan, logarithm)
"""


@emit.dispatch
def log_determinant_emit(
    op: LogDeterminant, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.helper('_log_determinant', LOGDET)}({args[0]})"


@emit.dispatch
def cholesky_emit(
    op: Cholesky, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.np}.linalg.cholesky({args[0]})"


TRIANGLE = """def _lower_triangle(matrix, diagonal):
    n = matrix.shape[-1]
    result = np.tril(matrix)
    result[..., range(n), range(n)] *= diagonal
    return result
"""


@emit.dispatch
def triangle_emit(
    op: Triangle, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    if op.diagonal in (0, 1):
        return f"{printer.np}.tril({args[0]}{', -1' if op.diagonal == 0 else ''})"
    return f"{printer.helper('_lower_triangle', TRIANGLE)}({args[0]}, {float(op.diagonal)})"


@emit.dispatch
def matrix_power_emit(
    op: MatrixPower, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.np}.linalg.matrix_power({args[0]}, int({args[1]})).copy()"  # the power 1 is the matrix


FRECHET = """def _matrix_power_derivative(matrix, direction, exponent):
    n = matrix.shape[-1]
    top = np.concatenate([matrix, direction], axis=-1)
    bottom = np.concatenate([np.zeros_like(matrix), matrix], axis=-1)
    power = np.linalg.matrix_power(np.concatenate([top, bottom], axis=-2), int(exponent))
    return power[..., :n, n:]
"""


@emit.dispatch
def matrix_power_derivative_emit(
    op: MatrixPowerDerivative, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.helper('_matrix_power_derivative', FRECHET)}({', '.join(args)})"
