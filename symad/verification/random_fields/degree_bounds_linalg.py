"""How large the polynomials behind linear algebra are: determinants, solves, Cholesky factors, powers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

from symad.core.graph import Node
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.solve_det import Determinant, Solve
from symad.verification.random_fields.degree_bounds import (
    NOTHING,
    Growth,
    Growths,
    growth,
    rational,
)


def _determinant_size(n: int, g: Growth) -> tuple[int, int]:
    """Degree and bits of the determinant of an n×n numerator: n! products of n."""
    return n * g.deg, n * g.bits + n * max(n - 1, 0).bit_length()


@growth.dispatch
def solve_growth(op: Solve, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return _solve(y, args, all_)


@growth.dispatch
def triangular_solve_growth(op: TriangularSolve, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return _solve(y, args, all_)


def _solve(y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
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
    return _matrix_power(args[0], y, args[1], all_)


def _matrix_power(a: Growth, y: Node, exponent: Growth, all_: Growths) -> Growth:
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
    power = _matrix_power(args[0], y, args[2], all_)
    return all_.mul([power, args[1], Growth(0, args[2].bits + 2, NOTHING)])
