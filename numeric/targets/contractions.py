"""Contractions in NumPy: ``@``, transposes, sums; ``einsum`` only where nothing plainer fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symad.numeric.program.expressions import Compute
from symad.numeric.targets.scalars import write
from symad.numeric.targets.target import Level, NumPy, Text, Texts
from symad.ops.arrays.contraction import Einsum, Labels

if TYPE_CHECKING:
    from symad.numeric.targets.writer import Writer
else:
    Writer = Any


@write.dispatch
def write_einsum(op: Einsum, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Any:
    """The plainest expression of a contraction."""
    if len(args) == 1:
        return one_operand(op, args[0])
    if len(args) == 2:
        made = two_operands(op, args)
        if made is not None:
            return made
    return general(op, args)


def general(op: Einsum, args: Texts) -> Text:
    """NumPy's einsum."""
    optimize = ", optimize=True" if len(args) > 2 else ""
    return Text(f'np.einsum("{op.spec}", {", ".join(a.text for a in args)}{optimize})')


def transposed(arg: Text, labels: Labels, wanted: Labels) -> Text:
    """The axes in another order."""
    if labels == wanted:
        return arg
    base = arg.inside(Level.ATOM)
    if wanted == labels[::-1]:
        return Text(f"{base}.T")
    return Text(f"{base}.transpose({', '.join(str(labels.index(label)) for label in wanted)})")


def one_operand(op: Einsum, arg: Text) -> Text:
    """A sum over axes, a transposition, a trace."""
    (labels,) = op.inputs
    if len(set(labels)) < len(labels):
        trace = labels == (0, 0) and not op.output
        return Text(f"np.trace({arg})") if trace else general(op, (arg,))
    axes = tuple(k for k, label in enumerate(labels) if label not in op.output)
    kept = tuple(label for label in labels if label in op.output)
    if axes:
        which = "" if not kept else f"axis={axes[0] if len(axes) == 1 else axes}"
        arg = Text(f"{arg.inside(Level.ATOM)}.sum({which})")
    return transposed(arg, kept, op.output)


def two_operands(op: Einsum, args: Texts) -> Text | None:
    """A product with ``@`` or ``*``, a dot product, a sum of products; None if there is none."""
    left, right = op.inputs
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    both, every = set(left) & set(right), set(left) | set(right)
    if every - both - set(op.output):
        return None  # an axis summed out of one operand alone
    summed = both - set(op.output)
    if not summed:
        return outer(op, args)
    if left == right and not op.output and len(left) > 1:
        return Text(f"np.vdot({args[0]}, {args[1]})")
    if len(summed) == 1:
        return matmul(op, args, *summed)
    return tensordot(op, args, summed) if both == summed else None


def outer(op: Einsum, args: Texts) -> Text:
    """A product without sums: axes aligned by None."""
    parts = []
    for labels, arg in zip(op.inputs, args, strict=True):
        order = tuple(label for label in op.output if label in labels)
        part = transposed(arg, labels, order)
        if order != op.output[len(op.output) - len(order) :]:
            index = ", ".join(":" if label in labels else "None" for label in op.output)
            part = Text(f"{part.inside(Level.ATOM)}[{index}]")
        parts.append(part)
    return Text(f"{parts[0].inside(Level.PRODUCT)}*{parts[1].inside(Level.SIGN)}", Level.PRODUCT)


def matmul(op: Einsum, args: Texts, k: int) -> Text | None:
    """``a @ b`` over one axis: common leading axes, then rows, the sum, columns."""
    left, right = op.inputs
    stack = tuple(x for x in op.output if x in left and x in right)
    rows = tuple(x for x in op.output if x in left and x not in right)
    columns = tuple(x for x in op.output if x in right and x not in left)
    if len(rows) > 1 and len(columns) <= 1 and not stack and op.output == (*rows, *columns):
        stack, rows = rows[:-1], rows[-1:]  # a stack of matrices times one matrix
        first = transposed(args[0], left, (*stack, *rows, k))
        return _product(first, transposed(args[1], right, (k, *columns)))
    if len(columns) > 1 and len(rows) == 1 and not stack and op.output == (*columns[:-1], *rows, columns[-1]):
        second = transposed(args[1], right, (*columns[:-1], k, columns[-1]))  # one matrix times a stack
        return _product(transposed(args[0], left, (*rows, k)), second)
    if len(rows) > 1 or len(columns) > 1 or (stack and (not rows or not columns)):
        return tensordot(op, args, {k}) if not stack else None
    if (*stack, *columns, *rows) == op.output and rows and columns:  # (a b)ᵀ = bᵀ aᵀ
        args, left, right, rows, columns = args[::-1], right, left, columns, rows
    if (*stack, *rows, *columns) != op.output:
        return None
    return _product(
        transposed(args[0], left, (*stack, *rows, k)), transposed(args[1], right, (*stack, k, *columns))
    )


def _product(first: Text, second: Text) -> Text:
    return Text(f"{first.inside(Level.PRODUCT)} @ {second.inside(Level.SIGN)}", Level.PRODUCT)


def tensordot(op: Einsum, args: Texts, summed: set[int]) -> Text:
    """Sums over several axes of two operands that share no others."""
    left, right = op.inputs
    axes = [x for x in left if x in summed]
    places = [left.index(x) for x in axes], [right.index(x) for x in axes]
    rest = (*(x for x in left if x not in summed), *(x for x in right if x not in summed))
    made = Text(f"np.tensordot({args[0]}, {args[1]}, axes={places})")
    return transposed(made, rest, op.output)
