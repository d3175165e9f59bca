"""The typeset form of each op: one rule for an op, in terms of its arguments' pieces.

A rule accepts any object with ``op``, ``args`` and ``shape``: nodes of graphs, and expressions of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import sympy

from symad.core.arrays import Number
from symad.core.dims import Dim, same_dim
from symad.core.expressions import is_of_a_float
from symad.core.graph import Op
from symad.core.questions import question
from symad.display.latex import latex
from symad.display.typesetting.pieces import (
    Entries,
    FunctionPiece,
    LatexAtom,
    Piece,
    Summand,
    as_term,
    entry,
    group,
    inside,
    name_of_input,
    number,
    parenthesised,
    product,
    tight,
    total,
    write,
)
from symad.fused.attention_ops import AttentionOp
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import (
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    SoftmaxTangent,
    TangentOp,
)
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Eye, Input, Iota
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.ops.elementwise.undefined import Undefined
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve

# For the type checker these are classes; plum dispatches on the op alone.
if TYPE_CHECKING:
    from symad.core.dims import Shape

    class Shaped(Protocol):
        """The object to typeset: a node, or a value of a program."""

        @property
        def args(self) -> Sequence[Shaped]:
            """The arguments."""

        @property
        def shape(self) -> Shape:
            """The lengths of the axes."""

    Pieces = tuple[Piece, ...]
    Shown = Piece
else:
    Pieces = Shown = Shaped = Any


@question
def typeset(op: Op, node: Shaped, args: Pieces) -> Shown:
    """The piece of a formula for ``op`` applied to pieces."""


def operator(name: str, args: Sequence[Piece], below: str = "") -> Piece:
    """A function by name."""
    inner = ", ".join(map(write, args))
    return LatexAtom(rf"\operatorname{{{name}}}{below}\left({inner}\right)")


@typeset.dispatch
def typeset_by_name(op: Op, node: Shaped, args: Pieces) -> Shown:
    """For an op without a rule its own name, in the words of its class."""
    return operator(_name_of(op), args)


def _name_of(op: Op) -> str:
    words = "".join(c if c.islower() or k == 0 else f" {c.lower()}" for k, c in enumerate(type(op).__name__))
    return rf"\text{{{words.lower()}}}" if " " in words else words.lower()


@typeset.dispatch
def typeset_attention(op: AttentionOp, node: Shaped, args: Pieces) -> Shown:
    """A score that is not s, and a mask, stand below the name."""
    score, mask = op.score.expression, op.mask.expression
    below = [latex(score)] * (str(score) != "s") + [latex(mask)] * (mask != sympy.true)
    return operator(_name_of(op), args, rf"_{{{', '.join(below)}}}" if below else "")


# ---- sources --------------------------------------------------------------------------------------


@typeset.dispatch
def typeset_input(op: Input, node: Shaped, args: Pieces) -> Shown:
    name = name_of_input(op.symbol)
    return LatexAtom(name, loose="^" in name)


@typeset.dispatch
def typeset_constant(op: Constant, node: Shaped, args: Pieces) -> Shown:
    return constant(op.value)


def constant(value: Number) -> Piece:
    """A number: exact ones unchanged, floats by their shortest digits."""
    if isinstance(value, bool):
        return LatexAtom(rf"\text{{{str(value).lower()}}}")
    if isinstance(value, (int, Fraction)) and not is_of_a_float(value):
        return number(value)
    if isinstance(value, (float, Fraction)):
        value = float(value)
        value = (
            sympy.Float(repr(value), 17)
            if value == value and abs(value) < float("inf")
            else sympy.sympify(value, strict=True)
        )
        text = latex(value)
        text = text.rstrip("0") if "." in text and r"\cdot" not in text else text
        text = f"{text}0" if text.endswith(".") else text
        return _signed(text)
    return _signed(latex(sympy.sympify(value, strict=True)))


def _signed(text: str) -> Piece:
    """A number whose sign comes in front of the term."""
    if text.startswith("-"):
        return Summand(Fraction(-1), ((LatexAtom(text[1:]), Fraction(1)),))
    return LatexAtom(text)


@typeset.dispatch
def typeset_dimension(op: Dimension, node: Shaped, args: Pieces) -> Shown:
    coefficient, rest = op.expression.as_coeff_Mul()
    factors = [(LatexAtom(latex(f), not f.is_Atom), Fraction(1)) for f in sympy.Mul.make_args(rest)]
    return Summand(Fraction(int(coefficient.p), int(coefficient.q)), tuple(factors if rest != 1 else ()))


@typeset.dispatch
def typeset_eye(op: Eye, node: Shaped, args: Pieces) -> Shown:
    return LatexAtom("I")


@typeset.dispatch
def typeset_iota(op: Iota, node: Shaped, args: Pieces) -> Shown:
    return LatexAtom(rf"\left(0, \dots, {latex(op.size - 1)}\right)")


MAX_SHOWN_ENTRIES = 12
"""The number of entries above which constant arrays are named by their shape."""


@typeset.dispatch
def typeset_array_constant(op: ArrayConstant, node: Shaped, args: Pieces) -> Shown:
    array = op.array
    if array.size and array.dtype.kind != "b" and (array == array.flat[0]).all():
        return ones(float(array.flat[0]))
    if array.size > MAX_SHOWN_ENTRIES or array.ndim > 2 or not array.size:
        shape = r" \times ".join(map(str, op.shape))
        return LatexAtom(f"C_{{{shape}}}")
    return Entries(tuple(constant(v) for v in array.ravel().tolist()), op.shape)


def ones(value: Any) -> Piece:
    """An array of one number."""
    if value == 0:
        return LatexAtom(r"\mathbf{0}")
    whole = Fraction(value) if value == int(value) else None
    if whole is not None:
        return Summand(whole, (), ((LatexAtom(r"\mathbf{1}"), Fraction(1)),))
    return product([(constant(value), Fraction(1), False), (LatexAtom(r"\mathbf{1}"), Fraction(1), True)])


# ---- elementwise ----------------------------------------------------------------------------------


def are_arrays(node: Shaped) -> list[bool]:
    """For each argument, true if it is an array."""
    return [bool(a.shape) for a in node.args]


@typeset.dispatch
def typeset_add(op: Add, node: Shaped, args: Pieces) -> Shown:
    return total(op.signs, args, are_arrays(node))


@typeset.dispatch
def typeset_mul(op: Mul, node: Shaped, args: Pieces) -> Shown:
    exponents = [Fraction(p) for p in op.powers]
    return product(zip(args, exponents, are_arrays(node), strict=True))


@typeset.dispatch
def typeset_pow(op: Pow, node: Shaped, args: Pieces) -> Shown:
    base, exponent = args
    if isinstance(exponent, Summand) and exponent == Summand(exponent.coefficient):
        return product([(base, exponent.coefficient, bool(node.args[0].shape))])
    circle = r"\circ " if node.shape else ""
    return LatexAtom(rf"{tight(base)}^{{{circle}{write(exponent)}}}", loose=True)


@typeset.dispatch
def typeset_apply(op: Apply, node: Shaped, args: Pieces) -> Shown:
    return FunctionPiece(op.head, tuple(args))


SIGNS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
WORDS = {"and": r" \wedge ", "or": r" \vee ", "xor": r" \oplus "}


@typeset.dispatch
def typeset_compare(op: Compare, node: Shaped, args: Pieces) -> Shown:
    return LatexAtom(f"{write(args[0])} {SIGNS[op.relation]} {write(args[1])}", loose=True)


@typeset.dispatch
def typeset_logic(op: Logic, node: Shaped, args: Pieces) -> Shown:
    if op.kind == "not":
        return LatexAtom(rf"\neg {tight(args[0])}", loose=True)
    return LatexAtom(WORDS[op.kind].join(map(tight, args)), loose=True)


@typeset.dispatch
def typeset_select(op: Select, node: Shaped, args: Pieces) -> Shown:
    condition, yes, no = map(write, args)
    return LatexAtom(
        rf"\begin{{cases}} {yes} & \text{{if }} {condition} \\ {no} & \text{{otherwise}} \end{{cases}}",
        loose=True,
    )


@typeset.dispatch
def typeset_undefined(op: Undefined, node: Shaped, args: Pieces) -> Shown:
    return LatexAtom(r"\text{undefined}")


# ---- shaping --------------------------------------------------------------------------------------


@typeset.dispatch
def typeset_broadcast(op: Broadcast, node: Shaped, args: Pieces) -> Shown:
    """Numbers become arrays of ones; arrays are written unchanged, as in X W + b."""
    (arg,) = args
    if node.args[0].shape:
        return arg
    if isinstance(arg, Summand) and arg == Summand(arg.coefficient):
        return ones(arg.coefficient)
    return product([(arg, Fraction(1), False), (LatexAtom(r"\mathbf{1}"), Fraction(1), True)])


@typeset.dispatch
def typeset_reshape(op: Reshape, node: Shaped, args: Pieces) -> Shown:
    """Axes of length 1 are not shown; entries keep their positions."""
    (arg,) = args
    if isinstance(arg, Entries) and all(isinstance(d, int) for d in op.shape):
        return Entries(arg.entries, op.shape) if op.shape else arg.entries[0]
    old, new = ([d for d in shape if not same_dim(d, 1)] for shape in (node.args[0].shape, op.shape))
    if len(old) == len(new):
        return arg
    return operator("vec" if len(op.shape) == 1 else "reshape", [arg])


@typeset.dispatch
def typeset_slice(op: Slice, node: Shaped, args: Pieces) -> Shown:
    """Positions from 0, as subscripts; a dot for a whole axis."""
    places = [
        interval(start, count, step, length)
        for start, count, step, length in zip(op.start, op.count, op.step, node.args[0].shape, strict=True)
    ]
    return subscript(args[0], places)


@typeset.dispatch
def typeset_pad(op: Pad, node: Shaped, args: Pieces) -> Shown:
    """The positions of the elements among zeros."""
    axes = zip(op.start, node.args[0].shape, op.step, op.shape, strict=True)
    return operator("pad", args, f"_{{{','.join(interval(*axis) for axis in axes)}}}")


def interval(start: Dim, count: Dim, step: int, length: Dim) -> str:
    """Positions on an axis."""
    if start == 0 and step == 1 and same_dim(count, length):
        return WHOLE
    if same_dim(count, 1):
        return latex(start)
    end = sympy.sympify(start + (count - 1) * step + 1, strict=True)
    last = f"{latex(start)}:{latex(end)}"
    return last if step == 1 else f"{last}:{step}"


WHOLE = r"\cdot"
"""The subscript for a whole axis."""


def subscript(piece: Piece, places: Sequence[str]) -> Piece:
    """An element or a part of an array."""
    if all(p == WHOLE for p in places):
        return piece
    base = tight(piece)
    if isinstance(piece, LatexAtom) and piece.places.count(WHOLE) == len(places):
        rest = iter(places)  # a part of a part, if the first one fixed single positions
        if all(p == WHOLE or ":" not in p for p in piece.places):
            base, places = piece.base, [next(rest) if p == WHOLE else p for p in piece.places]
    braced = group(base) if "_" in base or "^" in base else base
    return LatexAtom(rf"{braced}_{{{','.join(places)}}}", base=base, places=tuple(places))


@typeset.dispatch
def typeset_stack(op: Stack, node: Shaped, args: Pieces) -> Shown:
    return Entries(tuple(args), (len(args),))


@typeset.dispatch
def typeset_concatenate(op: Concatenate, node: Shaped, args: Pieces) -> Shown:
    return Entries(tuple(args), (1, len(args)) if op.axis else (len(args),))


@typeset.dispatch
def typeset_gather(op: Gather, node: Shaped, args: Pieces) -> Shown:
    return subscript(args[0], [write(args[1])])


# ---- reductions, linear algebra -------------------------------------------------------------------


@typeset.dispatch
def typeset_extreme(op: Extreme, node: Shaped, args: Pieces) -> Shown:
    return LatexAtom(rf"\{op.kind} {tight(args[0])}", loose=True)


OF_ONE: dict[type[Op], Callable[[Piece], str]] = {
    Product: lambda a: rf"\prod_{{k}} {entry(a, 'k')}",
    LogSoftmax: lambda a: rf"\log \operatorname{{softmax}}\left({write(a)}\right)",
    LogSumExp: lambda a: rf"\log \sum_{{k}} e^{{{entry(a, 'k')}}}",
    Determinant: lambda a: rf"\det {tight(a)}",
    LogDeterminant: lambda a: rf"\log \det {tight(a)}",
}
"""Functions of one array."""


@typeset.dispatch
def typeset_of_one(
    op: Product | LogSoftmax | LogSumExp | Determinant | LogDeterminant, node: Shaped, args: Pieces
) -> Shown:
    return LatexAtom(OF_ONE[type(op)](args[0]), loose=True)


@typeset.dispatch
def typeset_softmax_tangent(op: SoftmaxTangent, node: Shaped, args: Pieces) -> Shown:
    """P ∘ (t − Σ P t), the sum over each row."""
    p, _ = args
    return product([(p, Fraction(1), True), (_centered(op, node, args), Fraction(1), True)])


@typeset.dispatch
def typeset_log_softmax_tangent(op: LogSoftmaxTangent, node: Shaped, args: Pieces) -> Shown:
    """T − Σ P t, the sum over each row."""
    return _centered(op, node, args)


def _centered(op: TangentOp, node: Shaped, args: Pieces) -> Shown:
    p, t = args
    mean = LatexAtom(rf"\textstyle\sum {tight(p)} \odot {tight(t)}{_each_row(op, node)}", loose=True)
    return total((1, -1), (t, mean), (True, True))


def _each_row(op: TangentOp, node: Shaped) -> str:
    return "" if len(op.axes) == len(node.shape) else r" \text{ by rows}"


@typeset.dispatch
def typeset_log_softmax_cotangent(op: LogSoftmaxCotangent, node: Shaped, args: Pieces) -> Shown:
    """T − P ∘ Σ t, the sum over each row."""
    p, t = args
    whole = LatexAtom(rf"\textstyle\sum {tight(t)}{_each_row(op, node)}", loose=True)
    return total((1, -1), (t, product([(p, Fraction(1), True), (whole, Fraction(1), True)])), (True, True))


@typeset.dispatch
def typeset_solve(op: Solve, node: Shaped, args: Pieces) -> Shown:
    inverse = f"{tight(args[0])}^{{-1}}"
    if args[1] == LatexAtom("I"):
        return LatexAtom(inverse, loose=True)
    return chain([inverse], args[1])


def chain(factors: list[str], last: Piece) -> Piece:
    """A product of matrices whose last factor keeps its number in front."""
    term = as_term(last, True)
    if len(term.arrays) == 1 and term.arrays[0][1] == 1:
        matrices = LatexAtom(" ".join([*factors, inside(term.arrays[0][0])]), loose=True)
        return Summand(term.coefficient, term.numbers, ((matrices, Fraction(1)),))
    return LatexAtom(" ".join([*factors, parenthesised(write(last))]), loose=True)


@typeset.dispatch
def typeset_cholesky(op: Cholesky, node: Shaped, args: Pieces) -> Shown:
    return operator("chol", args)
