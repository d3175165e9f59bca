"""Eigenvalues and eigenvectors of symmetric matrices for libraries with NumPy's interface."""

from __future__ import annotations

from typing import Any

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors

EIGEN_SYSTEM = """def _eigen_system(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return np.concatenate([values[..., None, :], vectors], axis=-2)
"""


@emit.dispatch
def eigen_system_emit(
    op: EigenSystem, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.helper('_eigen_system', EIGEN_SYSTEM)}({args[0]})"


@emit.dispatch
def eigenvalues_emit(
    op: EigenValues, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{args[1]}[..., 0, :].copy()"  # memory of its own: what is read may be used again


@emit.dispatch
def eigenvectors_emit(
    op: EigenVectors, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{args[1]}[..., 1:, :].copy()"
