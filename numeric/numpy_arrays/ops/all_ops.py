"""Rules of ops that array code prints differently from the targets: for speed, or by what the printer knows.

`emit` returns one expression. Its arguments are names or literals, so precedence does not matter. Ops without
a rule here are printed by the rules of `symad.numeric.targets`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.dims import Dim
from symad.core.graph import Node, Op
from symad.core.questions import question
from symad.numeric.backends import ArrayLibrary
from symad.numeric.targets import helpers
from symad.numeric.targets.target import Level
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.sources import ArrayConstant, Dimension, Source, constant_value
from symad.ops.elementwise.powers import Pow

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.printing import Printing as Printing

    Text = str
    Texts = tuple[str, ...]
else:  # plum dispatches on op and library, and converts no return values
    Text = Texts = Printing = Any


@question
def emit(op: Op, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    """The expression that computes ``node`` from the names of its arguments."""


@emit.dispatch
def by_target(op: Op, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    """The rule of the target; the text of a source is an atom, since other texts contain it."""
    made = printer.writer.expression(node)
    return made.inside(Level.ATOM) if isinstance(op, Source) else made.text


# ---- sources -------------------------------------------------------------------------------------


@emit.dispatch
def array_constant_emit(
    op: ArrayConstant, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    array = op.array
    if array.dtype.kind in "iu" and node not in printer.row_numbers:
        array = array.astype(np.float64)  # operations of integers and single precision give double precision
    made: str = printer.constant_array(array)
    return made


@emit.dispatch
def dimension_emit(
    op: Dimension, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    text = str(printer.dim(op.expression))
    if printer.dtype != "float32" or node in printer.row_numbers:
        return text
    return f"{printer.np}.float32({text})"  # quotients of Python's numbers would be in double precision


# ---- elementwise ---------------------------------------------------------------------------------


@emit.dispatch
def mul_emit(op: Mul, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    over = [a for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a for p, a in zip(op.powers, args, strict=True) if p == -1]
    top = "*".join(over) if over else "1"
    if not under:
        return top
    divisors = [constant_value(a) for p, a in zip(op.powers, node.args, strict=True) if p == -1]
    scalars = all(constant_value(a) is not None or not a.shape for a in node.args)
    if scalars and not all(divisors):  # Python raises an error on division by 0
        return f"{printer.np}.true_divide({top}, {'*'.join(under)})"
    return f"{top}/{under[0]}" if len(under) == 1 else f"{top}/({'*'.join(under)})"


@emit.dispatch
def pow_emit(op: Pow, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
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


# ---- selection by index --------------------------------------------------------------------------


@emit.dispatch
def positions_emit(
    op: Positions, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    made = printer.writer.expression(node)
    if node in printer.row_numbers:
        return made.text
    return f"{made.inside(Level.ATOM)}.astype({printer.type_text})"


def _fits(indices: Node, rows: Dim, printer: Printing) -> bool:
    """Whether indices are printed as integers and are in range, by a check before or as constants."""
    if indices not in printer.row_numbers:  # other ops read them as numbers, so they are printed as floats
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
def gather_emit(op: Gather, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    if _fits(node.args[1], node.args[0].shape[0], printer):
        return f"{args[0]}[{args[1]}]"
    return printer.writer.expression(node).text


@emit.dispatch
def scatter_add_emit(
    op: ScatterAdd, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    if not _fits(node.args[0], op.size, printer):
        return printer.writer.expression(node).text
    return f"{printer.writer.helper(helpers._scatter_add)}({', '.join(args)}, {printer.bare(op.size)})"


@emit.dispatch
def sorting_positions_emit(
    op: SortingPositions, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    """Integers if they are read as row numbers only, numbers of the module's dtype otherwise."""
    order = f"{printer.np}.argsort({args[0]}, axis=-1, kind='stable')"
    return order if node in printer.row_numbers else f"{order}.astype({printer.type_text})"
