"""Residues of linear algebra, and how large the polynomials behind them are.

Determinants, solves, Cholesky factors and powers of matrices, modulo the primes of the lanes.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from symad.core.graph import Node
from symad.core.questions import Values
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.solve_det import Determinant, Solve
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.degree_bounds import NOTHING, Growth, Growths, growth, rational
from symad.verification.random_fields.residues import Run, residue

# ---- how large the polynomials behind linear algebra are -----------------------------------------


def _determinant_size(n: int, g: Growth) -> tuple[int, int]:
    """Degree and bits of the determinant of an n×n numerator: n! products of n."""
    return n * g.deg, n * g.bits + n * max(n - 1, 0).bit_length()


@growth.dispatch
def solve_growth(op: Solve | TriangularSolve, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """A⁻¹B = adj(N) D B / det N for A = N/D."""
    a, b = args
    n = y.args[0].shape[-1]
    stack = prod(y.shape[:-2])
    deg, bits = _determinant_size(n, a)
    small = _determinant_size(max(n - 1, 0), a)
    inverse = all_.over(
        (y.op, y.args[0]),
        stack * deg,
        stack * bits,
        small[0] + a.under_deg + (stack - 1) * deg,
        small[1] + a.under_bits + (stack - 1) * bits + max(n - 1, 0).bit_length(),
    )
    return all_.mul([inverse, b])


@growth.dispatch
def determinant_growth(op: Determinant, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    n = y.args[0].shape[-1]
    deg, bits = _determinant_size(n, args[0])
    return replace(all_.power(args[0], n), deg=deg, bits=bits)


@growth.dispatch
def triangle_growth(op: Triangle, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return all_.mul([args[0], rational(Fraction(op.diagonal), all_)])


@growth.dispatch
def cholesky_growth(op: Cholesky, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """L_ij = (minor of order j) / √(minor_j minor_{j−1}): all minors are below the determinant."""
    (a,) = args
    n, stack = y.shape[-1], prod(y.shape[:-2])
    deg, bits = _determinant_size(n, a)
    all_.met("root", n * stack, [Growth(2 * deg, 2 * bits, NOTHING)])
    if all_.exact_roots:
        all_.root_bits += n * stack
    minors = 2 * stack * n
    return all_.over(
        ("cholesky", y.args[0]),
        minors * deg,
        minors * bits,
        1 + (minors + 2) * deg + n * a.under_deg,
        (minors + 2) * bits + n * a.under_bits,
    )


@growth.dispatch
def matrix_power_growth(op: MatrixPower, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """Powers up to the largest exponent that is ever given."""
    return _growth_of_power(args[0], y, args[1], all_)


def _growth_of_power(a: Growth, y: Node, exponent: Growth, all_: Growths) -> Growth:
    n = y.shape[-1]
    k = 1 << exponent.bits
    deg, bits = _determinant_size(n, a)
    stack = prod(y.shape[:-2])
    inverse = all_.over(
        ("inverse power", y),
        stack * deg,
        stack * bits,
        stack * deg + a.under_deg,
        stack * bits + a.under_bits,
    )
    larger = all_.add([a, inverse])
    return all_.power(replace(larger, bits=larger.bits + n.bit_length()), k)


@growth.dispatch
def matrix_power_derivative_growth(
    op: MatrixPowerDerivative, y: Node, args: tuple[Growth, ...], all_: Growths
) -> Growth:
    power = _growth_of_power(args[0], y, args[2], all_)
    return all_.mul([power, args[1], Growth(0, args[2].bits + 2, NOTHING)])


class _StackedRows:
    """Elimination on stacks of matrices, flattened to (T, S, n, m, *tail)."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.tail = (slice(None),) * len(field.tail)

    def column(self, a: Array, i: int | slice, j: int) -> Array:
        """The elements (T, S, rows, *tail) of one column."""
        return a[(slice(None), slice(None), i, j, *self.tail)]

    def eliminate(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Reduce [A | B] to [I | A⁻¹B]; returns A⁻¹B, det A, and where A is singular (T, S)."""
        field, n = self.field, a.shape[2]
        both = np.concatenate([a, b], axis=3)
        determinant = np.broadcast_to(field.unit(2 + len(field.tail)), both[:, :, 0, 0].shape).copy()
        singular = np.zeros(both.shape[:2], dtype=bool)
        for k in range(n):
            determinant = self._pivot(both, k, determinant)
            pivot = both[:, :, k, k]
            inverse, zero = field.inverse(pivot)
            singular |= zero
            determinant = field.mul(determinant, pivot)
            row = field.mul(both[:, :, k], inverse[:, :, None])
            factors = self.column(both, slice(None), k).copy()
            factors[:, :, k] = 0
            both = field.sub(both, field.mul(factors[:, :, :, None], row[:, :, None]))
            both[:, :, k] = row
        return both[:, :, :, n:], determinant, singular

    def _pivot(self, both: Array, k: int, determinant: Array) -> Array:
        """Swap a row with a non-zero element into place k; a swap turns the sign."""
        zero = self.field.is_zero(self.column(both, slice(k, None), k))
        if not zero[:, :, 0].any():
            return determinant
        chosen = k + np.argmin(zero, axis=2)
        swapped = chosen != k
        t, s = np.nonzero(swapped)
        rows = both[t, s, chosen[t, s]].copy()
        both[t, s, chosen[t, s]] = both[t, s, k]
        both[t, s, k] = rows
        where = swapped.reshape(swapped.shape + (1,) * len(self.field.tail))
        return np.where(where, self.field.neg(determinant), determinant)


def _stacked(value: Array, node: Node, run: Run) -> Array:
    """(T, *stack, n, m, *tail) as (T, S, n, m, *tail)."""
    return value.reshape((run.field.lanes, -1, *node.shape[-2:], *run.field.tail))


@residue.dispatch
def solve_residue(op: Solve, y: Node, values: Values, run: Run) -> Array:
    a, b = (_stacked(v, n, run) for v, n in zip(values, y.args, strict=True))
    x, _, singular = _StackedRows(run.field).eliminate(a, b)
    _mark_stack(y, singular, run)
    return x.reshape(values[1].shape)


def _mark_stack(y: Node, where: Array, run: Run) -> None:
    if where.any():
        lead = where.reshape((run.field.lanes, *y.shape[:-2], 1, 1))
        run.mark(y, np.broadcast_to(lead, (run.field.lanes, *y.shape)))


@residue.dispatch
def triangular_solve_residue(op: TriangularSolve, y: Node, values: Values, run: Run) -> Array:
    n = y.args[0].shape[-1]
    keep = np.tril(np.ones((n, n), dtype=bool))
    keep = (keep if op.lower else keep.T).reshape((n, n) + (1,) * len(run.field.tail))
    triangle = np.where(keep, values[0], 0).astype(run.field.dtype)
    return solve_residue(Solve(), y, (triangle, values[1]), run)


@residue.dispatch
def determinant_residue(op: Determinant, y: Node, values: Values, run: Run) -> Array:
    a = _stacked(values[0], y.args[0], run)
    _, determinant, _ = _StackedRows(run.field).eliminate(a, a[:, :, :, :0])
    return determinant.reshape((run.field.lanes, *y.shape, *run.field.tail))


@residue.dispatch
def triangle_residue(op: Triangle, y: Node, values: Values, run: Run) -> Array:
    n = y.shape[-1]
    lower, diagonal = np.tril(np.ones((n, n), dtype=bool), -1), np.eye(n, dtype=bool)
    tail = (1,) * len(run.field.tail)
    scale = run.field.constant(op.diagonal).reshape((run.field.lanes,) + (1,) * len(y.shape) + run.field.tail)
    scaled = run.field.mul(values[0], scale)
    kept = np.where(lower.reshape((n, n, *tail)), values[0], 0)
    return np.where(diagonal.reshape((n, n, *tail)), scaled, kept).astype(run.field.dtype)


@residue.dispatch
def cholesky_residue(op: Cholesky, y: Node, values: Values, run: Run) -> Array:
    """L = U √D for A = U D Uᵀ with unit triangular U: the pivots D are rational in A."""
    field, a = run.field, _stacked(values[0], y.args[0], run).copy()
    n = y.shape[-1]
    lower = np.zeros_like(a)
    for k in range(n):
        pivot = a[:, :, k, k].copy()
        inverse, zero = field.inverse(pivot)
        _mark_stack(y, zero | run.signatures.negative(pivot) if run.signatures.domains else zero, run)
        column = a[:, :, k:, k].copy()  # d_k u_ik
        root = run.signatures.root(pivot, 2)
        scale = field.mul(root, inverse)  # √d_k / d_k
        lower[:, :, k:, k] = field.mul(column, scale[:, :, None])
        lower[:, :, k, k] = root
        unit = field.mul(column, inverse[:, :, None])
        a[:, :, k:, k:] = field.sub(a[:, :, k:, k:], field.mul(unit[:, :, :, None], column[:, :, None]))
    return lower.reshape(values[0].shape)


@residue.dispatch
def matrix_power_residue(op: MatrixPower, y: Node, values: Values, run: Run) -> Array:
    exponent = int(run.integer_values(values[1], "matrix exponents"))
    return _matrix_power(_stacked(values[0], y, run), exponent, y, run).reshape(values[0].shape)


def _matrix_power(a: Array, exponent: int, y: Node, run: Run) -> Array:
    n = a.shape[2]
    identity = np.broadcast_to(run.field.constants(np.eye(n, dtype=np.int64))[:, None], a.shape)
    if exponent < 0:
        a, _, singular = _StackedRows(run.field).eliminate(a, identity)
        _mark_stack(y, singular, run)
    result = identity
    for _ in range(abs(exponent)):
        result = run.field.einsum("sij,sjk->sik", result, a)
    return result


@residue.dispatch
def matrix_power_derivative_residue(op: MatrixPowerDerivative, y: Node, values: Values, run: Run) -> Array:
    """The upper right block of [[A, E], [0, A]]^k."""
    a, e = (_stacked(v, y, run) for v in values[:2])
    n = a.shape[2]
    top = np.concatenate([a, e], axis=3)
    block = np.concatenate([top, np.concatenate([np.zeros_like(a), a], axis=3)], axis=2)
    exponent = int(run.integer_values(values[2], "matrix exponents"))
    return _matrix_power(block, exponent, y, run)[:, :, :n, n:].reshape(values[0].shape)
