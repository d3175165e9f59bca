"""Contractions in compiled loops: BLAS calls if they are matrix products, plain loops otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from symad.numeric.compiled_arrays.c.c_body import C_TYPE
from symad.numeric.compiled_arrays.strided_arrays import Ints, View

MAX_LOOP_TERMS = 1 << 14
"""A contraction with more terms than this is not written as plain loops.

In a loop of 50 steps, products of 16 matrices and vectors take 0.57 of the time of NumPy's at 2**12 terms,
0.90 at 2**14, 1.95 at 2**16 (bench_layout_thresholds.py, "loops for contractions").
"""


GEMM = """typedef void (*symad_gemm_t)(const char *, const char *, const int *, const int *, const int *,
                             const $real *, const $real *, const int *, const $real *, const int *,
                             const $real *, $real *, const int *);
static inline void symad_product(symad_gemm_t gemm, char ta, char tb, int m, int n, int k,
                                 const $real *a, int lda, const $real *b, int ldb, $real *c, int ldc) {
  const $real one = 1, zero = 0;
  gemm(&tb, &ta, &n, &m, &k, &one, b, &ldb, a, &lda, &zero, c, &ldc);  // rows of C are columns of Fortran
}
"""


@dataclass(frozen=True)
class Side:
    """A matrix as BLAS reads it: whether its columns are contiguous, and the step from one to the next."""

    turned: bool
    lead: int


def contraction_lines(
    labels: Sequence[Sequence[int]], output: Sequence[int], args: Sequence[View], made: View
) -> list[str] | None:
    """The statements of y[output] = Σ Π x[labels]; None if BLAS cannot read or write one of the arrays."""
    lines = _gemm(labels, output, args, made)
    if lines is None and has_few_terms(labels, [a.shape for a in args]):
        lines = _loops(labels, output, args, made)
    return lines


def has_few_terms(labels: Sequence[Sequence[int]], shapes: Sequence[Ints]) -> bool:
    """Whether a contraction may be written as plain loops."""
    return prod(_lengths(labels, shapes).values()) <= MAX_LOOP_TERMS


@dataclass(frozen=True)
class ProductLabels:
    """The labels of a matrix product: the axes of its result, None for lengths of 1, and the summed axis."""

    row: int | None
    column: int | None
    summed: int


def matrix_product(
    labels: Sequence[Sequence[int]], output: Sequence[int], shapes: Sequence[Ints]
) -> ProductLabels | None:
    """The product of two matrices that a contraction is; None for other contractions."""
    if len(labels) != 2 or any(len(set(part)) < len(part) for part in labels):
        return None
    left, right = map(list, labels)
    real = {k for k, d in _lengths(labels, shapes).items() if d != 1}
    both = real & set(left) & set(right)
    summed, kept = both - set(output), both & set(output)
    rows, columns = (real & set(left)) - both, (real & set(right)) - both
    if kept or len(summed) != 1 or len(rows) > 1 or len(columns) > 1 or not (rows | columns) <= set(output):
        return None
    return ProductLabels(next(iter(rows), None), next(iter(columns), None), *summed)


def _gemm(
    labels: Sequence[Sequence[int]], output: Sequence[int], args: Sequence[View], made: View
) -> list[str] | None:
    """One BLAS call; None if it is no product of two matrices, or BLAS cannot read or write these.

    BLAS refuses an empty matrix whose rows are 0 elements apart.
    """
    shapes = [a.shape for a in args]
    product, size = matrix_product(labels, output, shapes), _lengths(labels, shapes)
    if product is None or 0 in size.values():
        return None
    sides = zip((*labels, output), (*args, made), strict=True)
    strides = [dict(zip(part, a.strides, strict=True)) for part, a in sides]
    m, n, k = product.row, product.column, product.summed
    if _stride(strides[2], n) != 1 and n is not None:
        if _stride(strides[2], m) != 1 or m is None:
            return None
        args, strides, m, n = args[::-1], [strides[1], strides[0], strides[2]], n, m
    a, b = _side(strides[0], m, k, size), _side(strides[1], k, n, size)
    if a is None or b is None:
        return None
    lead = _stride(strides[2], m) if m is not None else size.get(n, 1) if n is not None else 1
    texts = [f"'{'T' if side.turned else 'N'}'" for side in (a, b)]
    sizes = ", ".join(str(size[x]) if x is not None else "1" for x in (m, n, k))
    places = f"{args[0].pointer}, {a.lead}, {args[1].pointer}, {b.lead}, {made.pointer}, {lead}"
    return [f"symad_product(gemm, {', '.join(texts)}, {sizes}, {places});"]


def _lengths(labels: Sequence[Sequence[int]], shapes: Sequence[Ints]) -> dict[int, int]:
    pairs = zip(labels, shapes, strict=True)
    return {label: d for part, shape in pairs for label, d in zip(part, shape, strict=True)}


def _stride(strides: dict[int, int], label: int | None) -> int:
    return 1 if label is None else strides[label]


def _side(strides: dict[int, int], row: int | None, column: int | None, size: dict[int, int]) -> Side | None:
    """How BLAS reads a matrix with these axes; None if neither axis is contiguous."""
    if column is None or strides[column] == 1:
        if column is None:
            return Side(False, 1 if row is None else strides[row])
        lead = size[column] if row is None else strides[row]
        return Side(False, lead) if lead >= size[column] else None
    if row is None or strides[row] == 1:
        lead = strides[column]
        return Side(True, lead) if row is None or lead >= size[row] else None
    return None


def _loops(
    labels: Sequence[Sequence[int]], output: Sequence[int], args: Sequence[View], made: View
) -> list[str]:
    """Loops over all labels; the last output label is innermost."""
    size = _lengths(labels, [a.shape for a in args])
    summed = [label for label in size if label not in output]
    real = C_TYPE[made.type]
    place = _element(made, output)
    factors = " * ".join(_element(a, part) for a, part in zip(args, labels, strict=True))
    outer, inner = list(output[:-1]), list(output[-1:])
    lines = [_for(label, size[label]) for label in outer]
    if inner:
        lines = [*lines, f"{{ {_for(inner[0], size[inner[0]])} {place} = 0;"]
        body = [_for(label, size[label]) for label in (*summed, *inner)]
        return [*lines, *body, f"{place} += {factors};", "}"]
    body = [_for(label, size[label]) for label in summed]
    return [f"{{ {real} total = 0;", *body, f"total += {factors};", f"{place} = total; }}"]


def _for(label: int, length: int) -> str:
    return f"for (ptrdiff_t l{label} = 0; l{label} < {length}; l{label}++)"


def _element(view: View, labels: Sequence[int]) -> str:
    steps = [f"l{label} * {s}" for label, s in zip(labels, view.strides, strict=True) if s]
    return f"({view.pointer})[{' + '.join(steps) or '0'}]"
