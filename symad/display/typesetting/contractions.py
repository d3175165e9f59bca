"""Contractions as products of matrices, norms and traces; by indices if none of these forms fits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from symad.display.typesetting.pieces import (
    LatexAtom,
    Piece,
    Summand,
    as_term,
    beside,
    entry,
    product,
    tight,
    write,
)
from symad.display.typesetting.rules import Pieces, Shaped, Shown, typeset
from symad.ops.basic.contraction import Einsum, Labels

LETTERS = "ijklmnpqrs"


@typeset.dispatch
def typeset_einsum(op: Einsum, node: Shaped, args: Pieces) -> Shown:
    """The simplest form; numbers of the factors come in front."""
    terms = [as_term(a, bool(x.shape)) for a, x in zip(args, node.args, strict=True)]
    if len(args) == 1 and not op.output and len(set(op.inputs[0])) == len(op.inputs[0]):
        square = norm(terms[0], len(op.inputs[0]))
        if square is not None:
            return square
    if any(len(t.arrays) != 1 or t.arrays[0][1] != 1 for t in terms if t.arrays or t.numbers):
        bare: list[Piece] = list(args)
        front: Piece = Summand(Fraction(1))
    else:
        bare = [t.arrays[0][0] if t.arrays else a for t, a in zip(terms, args, strict=True)]
        kept = [Summand(t.coefficient, t.numbers) for t, x in zip(terms, node.args, strict=True) if x.shape]
        front = product((t, Fraction(1), False) for t in kept)
    made = contraction(op, bare)
    if front == Summand(Fraction(1)):
        return made
    return product([(front, Fraction(1), False), (made, Fraction(1), bool(op.output))])


def norm(term: Summand, rank: int) -> Piece | None:
    """Σ x∘x as ‖x‖², with numbers in front; None for other sums."""
    if len(term.arrays) != 1 or term.arrays[0][1] != 2:
        return None
    below = "" if rank == 1 else r"_{\mathsf{F}}"
    square = LatexAtom(rf"\left\lVert {write(term.arrays[0][0])} \right\rVert{below}^{{2}}")
    return product(
        [(Summand(term.coefficient, term.numbers), Fraction(1), False), (square, Fraction(1), False)]
    )


def contraction(op: Einsum, args: Sequence[Piece]) -> Piece:
    """The contraction of arrays."""
    if len(args) == 1:
        return one(op, *args)
    if len(args) == 2:
        made = two(op, *args)
        if made is not None:
            return made
    return by_chain(op, args) or by_indices(op, args)


def transposed(piece: Piece) -> Piece:
    """A matrix transposed."""
    return LatexAtom(rf"{tight(piece)}^{{\mathsf{{T}}}}")


def matrix_product(*pieces: Piece) -> Piece:
    """A product of matrices."""
    return LatexAtom(beside([factor(p) for p in pieces]), loose=True)


def factor(piece: Piece) -> str:
    """A matrix in a product of matrices: products of matrices need no parentheses there."""
    plain = isinstance(piece, LatexAtom) and not piece.latex.startswith(r"\begin{cases}")
    return write(piece) if plain else tight(piece)


def one(op: Einsum, x: Piece) -> Piece:
    """A transposition, a trace, a diagonal, a sum over axes."""
    (labels,) = op.inputs
    if labels == op.output:
        return x
    if labels == op.output[::-1] and len(set(labels)) == len(labels) == 2:
        return transposed(x)
    if labels == (0, 0):
        name = r"\operatorname{diag}" if op.output else r"\operatorname{tr}"
        return LatexAtom(rf"{name} {tight(x)}", loose=True)
    if len(labels) == 2 and len(op.output) == 1 and labels[0] != labels[1]:
        rows = op.output == labels[:1]
        return LatexAtom(rf"{factor(x) if rows else write(transposed(x))} \mathbf{{1}}", loose=True)
    return by_indices(op, [x])


def two(op: Einsum, x: Piece, y: Piece) -> Piece | None:
    """Products of vectors and matrices."""
    (a, b), out = op.inputs, op.output
    if not a or not b:
        return product([(x, Fraction(1), bool(a)), (y, Fraction(1), bool(b))])
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    if a == b == out:
        return product([(x, Fraction(1), True), (y, Fraction(1), True)])
    summed = [k for k in a if k in b and k not in out]
    if a == b and not out:
        if x == y:
            return norm(Summand(Fraction(1), (), ((x, Fraction(2)),)), len(a))
        return (
            inner(x, y)
            if len(a) == 1
            else LatexAtom(rf"\operatorname{{tr}}\left({write(matrix_product(transposed(x), y))}\right)")
        )
    if not summed:
        return scaled(a, b, out, x, y)
    joined = len(summed) == 1 and set(a) & set(b) == set(summed) and {*a, *b} == {*summed, *out}
    if joined and max(len(a), len(b)) <= 2:
        return matrices(a, b, out, summed[0], x, y)
    return None


def inner(x: Piece, y: Piece) -> Piece:
    """x · y of two vectors."""
    return LatexAtom(rf"{write(transposed(x))} {factor(y)}", loose=True)


def scaled(a: Labels, b: Labels, out: Labels, x: Piece, y: Piece) -> Piece | None:
    """Outer products, and rows or columns scaled by a vector."""
    if len(a) == len(b) == 1 and out == (*a, *b):
        return matrix_product(x, transposed(y))
    if len(a) == len(b) == 1 and out == (*b, *a):
        return matrix_product(y, transposed(x))
    if len(a) == 1 and b == out and len(b) == 2 and a[0] in b:
        return row_scaled(x, y) if a[0] == b[0] else column_scaled(y, x)
    if len(b) == 1 and a == out and len(a) == 2 and b[0] in a:
        return row_scaled(y, x) if b[0] == a[0] else column_scaled(x, y)
    return None


def row_scaled(v: Piece, m: Piece) -> Piece:
    """diag(v) M."""
    return LatexAtom(rf"\operatorname{{diag}}\left({write(v)}\right) {factor(m)}", loose=True)


def column_scaled(m: Piece, v: Piece) -> Piece:
    """M diag(v)."""
    return LatexAtom(rf"{factor(m)} \operatorname{{diag}}\left({write(v)}\right)", loose=True)


def matrices(a: Labels, b: Labels, out: Labels, k: int, x: Piece, y: Piece) -> Piece | None:
    """A product over one axis, in the order of the result."""
    if len(out) == 2 and out[0] in b:
        a, b, x, y = b, a, y, x
    if len(a) == 1 and len(b) == 2 and len(out) == 1:
        a, b, x, y = b, a, y, x  # a vector from the left: Mᵀ v
    left = x if a[-1] == k else transposed(x)
    right = y if b[0] == k else transposed(y)
    return matrix_product(left, right)


def by_chain(op: Einsum, args: Sequence[Piece]) -> Piece | None:
    """xᵀ A y, A B C: every factor shares one axis with the next; in either direction."""
    parts = list(zip(op.inputs, args, strict=True))
    return one_way(op, parts) or one_way(op, parts[::-1])


def one_way(op: Einsum, parts: Sequence[tuple[Labels, Piece]]) -> Piece | None:
    """The product of the factors in this order; None if there is none, or if it is a row, not a vector."""
    inner = joints(op, [labels for labels, _ in parts])
    if inner is None or (len(parts[0][0]) == 1 and len(parts[-1][0]) == 2):
        return None  # xᵀ A is a row; Aᵀ x is a vector
    factors = []
    for k, (labels, piece) in enumerate(parts):
        turned = labels[0] != inner[k - 1] if k else labels[-1] != inner[0]
        factors.append(transposed(piece) if turned or (not k and len(labels) == 1) else piece)
    return matrix_product(*factors)


def joints(op: Einsum, factors: Sequence[Labels]) -> list[int] | None:
    """The axis that each factor shares with the next; None if it is not one, or if the result has others."""
    shared = [set(a) & set(b) for a, b in pairwise(factors)]
    if any(len(labels) > 2 for labels in factors) or any(len(joint) != 1 for joint in shared):
        return None
    every = [label for labels in factors for label in labels]
    inner = [label for joint in shared for label in joint]
    ends = [label for label in every if label not in inner]
    twice = all(every.count(label) == 2 for label in inner) and len(set(inner)) == len(inner)
    return inner if twice and tuple(ends) == op.output and len(set(ends)) == len(ends) else None


def by_indices(op: Einsum, args: Sequence[Piece]) -> Piece:
    """Σ over the axes that the result does not have."""
    used = {label for labels in op.inputs for label in labels}
    letters = dict(zip(sorted(used), LETTERS, strict=False))
    texts = [
        entry(piece, " ".join(letters[label] for label in labels))
        for labels, piece in zip(op.inputs, args, strict=True)
    ]
    gone = [letters[label] for label in sorted(used) if label not in op.output]
    total = (rf"\sum_{{{', '.join(gone)}}} " if gone else "") + " ".join(texts)
    if not op.output:
        return LatexAtom(total, loose=True)
    return LatexAtom(rf"\left[{total}\right]_{{{' '.join(letters[label] for label in op.output)}}}")


def flips_of_product(op: Einsum) -> tuple[bool, bool] | None:
    """For each factor of a matrix product, true if it is transposed; None for other contractions."""
    first, second = op.inputs
    shared = set(first) & set(second)
    kept = [k for k in (*first, *second) if k not in shared]
    if len(shared) != 1 or max(len(first), len(second)) != 2 or list(op.output) != kept:
        return None
    (common,) = shared
    return first[-1] != common, second[0] != common
