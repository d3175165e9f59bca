"""Linear algebra, recurrences in closed form, random numbers and sparse matrices in NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Op
from symad.higher_order import adjugate
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.higher_order.affine_scan import AffineScan, join_pairs
from symad.numbers import philox
from symad.numeric.program.expressions import Compute
from symad.numeric.targets import helpers
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Level, NumPy, Text, Texts
from symad.ops.arrays.random import FoldIn, Uniform
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.ops.sparse.csr import CompressedRows, as_slice
from symad.ops.sparse.sparse_solve import SparseSolve, solve_sparse

if TYPE_CHECKING:
    from symad.numeric.targets.writer import Writer
else:
    Writer = Any


Called: TypeAlias = (
    Solve
    | Determinant
    | LogDeterminant
    | Cholesky
    | MatrixPowerDerivative
    | EigenSystem
    | Adjugate
    | AdjugateTangent
)
"""Ops that are calls of one function on their arguments."""

CALLS: dict[type[Op], str | Callable[..., Array]] = {
    Solve: "linalg.solve",
    Determinant: "linalg.det",
    LogDeterminant: helpers._log_determinant,
    Cholesky: "linalg.cholesky",
    MatrixPowerDerivative: helpers._matrix_power_derivative,
    EigenSystem: helpers._eigen_system,
    Adjugate: adjugate.adjugate_of,
    AdjugateTangent: adjugate.adjugate_tangent_of,
}
"""The function that each of these ops calls: one of NumPy's, by name, or a helper."""


@write.dispatch
def write_call(op: Called, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    function = CALLS[type(op)]
    name = f"{target.np}.{function}" if isinstance(function, str) else writer.helper(function)
    return Text(f"{name}({', '.join(a.text for a in args)})")


@write.dispatch
def write_triangular_solve(
    op: TriangularSolve, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    return Text(f"{writer.helper(helpers._solve_triangular)}({args[0]}, {args[1]}, {op.lower})")


@write.dispatch
def write_determinant_sign(
    op: DeterminantSign, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    return Text(f"{target.np}.linalg.slogdet({args[0]})[0]")


@write.dispatch
def write_triangle(op: Triangle, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    if op.diagonal in (0, 1):
        return Text(f"{target.np}.tril({args[0]}{', -1' if op.diagonal == 0 else ''})")
    return Text(f"{writer.helper(helpers._lower_triangle)}({args[0]}, {float(op.diagonal)})")


@write.dispatch
def write_matrix_power(op: MatrixPower, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """A copy, because the power 1 is the matrix itself."""
    return Text(f"{target.np}.linalg.matrix_power({args[0]}, int({args[1]})).copy()")


@write.dispatch
def write_eigenvalues(op: EigenValues, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """A copy, because results must not share memory."""
    return Text(f"{args[1].inside(Level.ATOM)}[..., 0, :].copy()")


@write.dispatch
def write_eigenvectors(
    op: EigenVectors, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    return Text(f"{args[1].inside(Level.ATOM)}[..., 1:, :].copy()")


@write.dispatch
def write_affine_scan(op: AffineScan, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """h_t = a_t h_{t−1} + b_t, computed by combining pairs of steps."""
    return Text(f"{writer.helper(join_pairs)}({args[0]}, {args[1]}, {op.matrices}, {op.backward})")


@write.dispatch
def write_uniform(op: Uniform, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    shape = "".join(f"{writer.dim(d)}, " for d in op.shape)
    return Text(f"{writer.helper(philox._uniform)}({args[0]}, ({shape}), {writer.type_text})")


@write.dispatch
def write_fold_in(op: FoldIn, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    return Text(f"{writer.helper(philox._fold_in)}({args[0]}, {args[1]}, {writer.type_text})")


@write.dispatch
def write_compressed_rows(
    op: CompressedRows, target: NumPy, node: Compute, args: Texts, writer: Writer
) -> Written:
    pairs = zip(args, op.places_of, strict=True)
    entries = ", ".join(f"({a}, {places_text(places, writer)})" for a, places in pairs)
    starts, columns = writer.constant(op.rows), writer.constant(op.columns)
    shape = writer.shape(op.shape)
    helper, kind = writer.helper(helpers._sparse), writer.type_text
    return Text(f"{helper}([{entries}], {starts}, {columns}, {shape}, {kind})")


def places_text(places: np.ndarray, writer: Writer) -> str:
    """Positions as text; a slice if they are evenly spaced."""
    found = as_slice(places)
    if not isinstance(found, slice):
        return writer.constant(places)
    step = f", {found.step}" if found.step != 1 else ""
    return f"slice({found.start}, {found.stop}{step})"


@write.dispatch
def write_sparse_solve(op: SparseSolve, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    pattern = ", ".join(writer.constant(np.asarray(part)) for part in (op.starts, op.columns))
    return Text(f"{writer.helper(solve_sparse)}({args[0]}, {args[1]}, {pattern}, {op.transposed})")
