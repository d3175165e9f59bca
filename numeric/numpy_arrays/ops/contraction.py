"""Contractions in NumPy: products with ``@``, transposes, sums; ``einsum`` only where nothing fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.core.dims import size
from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.numeric.numpy_arrays.texts import Turned, is_name
from symad.ops.arrays.contraction import Einsum

Labels = tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """A matrix product, ``left @ right``, and ``after`` it what gives the result its shape."""

    left: str
    right: str
    after: str = ""

    def __str__(self) -> str:
        """As an expression."""
        text = f"{self.left} @ {self.right}"
        return f"({text}){self.after}" if self.after else text

    @property
    def is_plain(self) -> bool:
        """Whether names are multiplied, perhaps transposed, and nothing follows."""
        sides = (side.of if isinstance(side, Turned) else side for side in (self.left, self.right))
        return not self.after and all(map(is_name, sides))


@emit.dispatch
def einsum_emit(op: Einsum, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    """The plainest NumPy expression of a contraction."""
    return str(contraction(op, node, args, printer))


def contraction(op: Einsum, node: Node, args: Texts, printer: Any) -> str | Product:
    """A contraction as a matrix product, or as another expression."""
    if len(args) == 1:
        return _one_operand(op, node, args[0], printer)
    if len(args) == 2:
        made = _two_operands(op, node, args, printer)
        if made is not None:
            return made
    return _general(op, args, printer)


def _general(op: Einsum, args: Texts, printer: Any) -> str:
    optimize = ", optimize=True" if len(args) > 2 else ""
    return f'{printer.np}.einsum("{op.spec}", {", ".join(args)}{optimize})'


def _one_operand(op: Einsum, node: Node, arg: str, printer: Any) -> str | Product:
    (labels,) = op.inputs
    if len(set(labels)) < len(labels):
        return (
            f"{printer.np}.trace({arg})"
            if labels == (0, 0) and not op.output
            else _general(op, (arg,), printer)
        )
    axes = tuple(k for k, label in enumerate(labels) if label not in op.output)
    kept = tuple(label for label in labels if label in op.output)
    made = printer.sum_text(node.args[0], axes) if axes else arg
    if isinstance(made, Product):
        return Product(made.left, made.right, made.after + _permutation(kept, op.output))
    return _permuted(made, kept, op.output, printer)


def _permuted(text: str, labels: Labels, wanted: Labels, printer: Any) -> str:
    """An array with its axes in another order."""
    if labels != wanted and _is_reversal(labels, wanted):
        return printer.transposed(text)
    return text if labels == wanted else text + _permutation(labels, wanted)


def _permutation(labels: Labels, wanted: Labels) -> str:
    """What follows an array whose axes shall be in another order."""
    if labels == wanted:
        return ""
    if _is_reversal(labels, wanted):
        return ".T"
    return f".transpose({', '.join(str(labels.index(label)) for label in wanted)})"


def _is_reversal(labels: Labels, wanted: Labels) -> bool:
    return len(labels) == 2 or wanted == labels[::-1]


def _two_operands(op: Einsum, node: Node, args: Texts, printer: Any) -> str | Product | None:
    left, right = op.inputs
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    both = set(left) & set(right)
    if (set(left) | set(right)) - both - set(op.output):
        return None  # an axis summed out of one operand alone
    if both == set(left) == set(right) and not op.output and left == right:
        return f"{printer.np}.vdot({args[0]}, {args[1]})"
    summed = both - set(op.output)
    if not summed:
        return _outer(op, args, printer)
    free = [set(part) - summed for part in op.inputs]
    if len(summed) == 1 and not free[0] & free[1]:
        stacked = _stacked_product(op, args, next(iter(summed)), printer)
        if stacked is not None:
            return stacked
    if len(summed) > 1 or (max(map(len, free)) > 1 and not free[0] & free[1]):
        return _flat_product(op, node, args, summed, printer) or _tensordot(op, args, summed, printer)
    return _matmul(op, args, next(iter(summed)), printer)


def _outer(op: Einsum, args: Texts, printer: Any) -> str:
    """A product without summation: axes aligned by None."""
    parts = []
    for labels, arg in zip(op.inputs, args, strict=True):
        order = tuple(label for label in op.output if label in labels)
        text = _permuted(arg, labels, order, printer)
        if order != op.output:
            text = f"{text}[{', '.join(':' if label in labels else 'None' for label in op.output)}]"
        parts.append(text)
    return "*".join(parts)


def _stacked_product(op: Einsum, args: Texts, k: int, printer: Any) -> Product | None:
    """A matrix times each of a stack of matrices: Σ_k a_rk b_tkc -> trc, in either order of operands."""
    for one, other in ((0, 1), (1, 0)):
        matrix, stack = op.inputs[one], op.inputs[other]
        if len(matrix) != 2 or len(stack) < 3:
            continue
        (row,) = (x for x in matrix if x != k)
        lead = tuple(x for x in op.output if x not in (row, op.output[-1]))
        if op.output != (*lead, row, op.output[-1]) or row == op.output[-1]:
            continue
        second = _permuted(args[other], stack, (*lead, k, op.output[-1]), printer)
        return Product(_permuted(args[one], matrix, (row, k), printer), second)
    return None


def _flat_product(
    op: Einsum, node: Node, args: Texts, summed: set[int], printer: Any
) -> Product | None:
    """One matrix product of operands that are matrices once neighbouring axes are joined."""
    left, right = op.inputs
    if set(left) & set(right) - summed:
        return None
    order = tuple(x for x in left if x in summed)
    rows = tuple(x for x in left if x not in summed)
    columns = tuple(x for x in right if x not in summed)
    first = _as_matrix(args[0], node.args[0], left, rows, order, printer)
    second = _as_matrix(args[1], node.args[1], right, order, columns, printer)
    if first is None or second is None or (*rows, *columns) != op.output:
        return None
    if len(rows) == 1 and len(columns) == 1:
        return Product(first, second)
    return Product(first, second, f".reshape({', '.join(printer.bare(d) for d in node.shape)})")


def _as_matrix(
    text: str, arg: Node, labels: Labels, rows: Labels, columns: Labels, printer: Any
) -> str | None:
    """An operand with the given groups of axes as rows and columns."""
    if not is_name(text) or not rows or not columns:
        return None
    dims = dict(zip(labels, arg.shape, strict=True))
    for one, other, turned in ((rows, columns, False), (columns, rows, True)):
        if labels == (*one, *other):
            if len(labels) > 2:
                shape = ", ".join(printer.bare(size(dims[x] for x in group)) for group in (one, other))
                text = f"{text}.reshape({shape})"
            return printer.transposed(text) if turned else text
    return None


def _tensordot(op: Einsum, args: Texts, summed: set[int], printer: Any) -> str | None:
    left, right = op.inputs
    if (set(left) & set(right)) - summed:
        return None
    axes = [label for label in left if label in summed]
    rows = [k for k, label in enumerate(left) if label in summed]
    columns = [right.index(label) for label in axes]
    result = tuple(x for x in left if x not in summed) + tuple(x for x in right if x not in summed)
    text = f"{printer.np}.tensordot({args[0]}, {args[1]}, axes=({rows}, {columns}))"
    return text + _permutation(result, op.output)


def _matmul(op: Einsum, args: Texts, k: int, printer: Any) -> Product | None:
    """``a @ b`` with one summed axis: leading common axes, then rows, sum, columns."""
    (a, b), (left, right) = args, op.inputs
    stack = tuple(label for label in op.output if label in left and label in right)
    rows = tuple(label for label in left if label not in right)
    columns = tuple(label for label in right if label not in left)
    if len(rows) > 1 or len(columns) > 1 or (stack and (not rows or not columns)):
        return None
    if not stack and not rows and len(right) == 2:
        return Product(_permuted(a, left, (k,), printer), _permuted(b, right, (k, *columns), printer))
    result = (*stack, *rows, *columns)
    if result[::-1] == op.output and len(result) == 2:
        return Product(_permuted(b, right, (*columns, k), printer), _permuted(a, left, (k, *rows), printer))
    first = _permuted(a, left, (*stack, *rows, k), printer)
    second = _permuted(b, right, (*stack, k, *columns), printer)
    return Product(first, second, _permutation(result, op.output))
