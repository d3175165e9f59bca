"""Examples of the ops of `symad.ops.linalg` and `symad.ops.sparse`, for tests and tables."""

from __future__ import annotations

import numpy as np
import sympy

from symad.core.graph import Graph, Node
from symad.core.questions import EXAMPLES, examples
from symad.derivatives.implicit import Root, root
from symad.higher_order.adjugate import Adjugate, AdjugateTangent, adjugate
from symad.higher_order.scan import Local
from symad.op_examples.arrays import matrix, vector
from symad.ops.basic.arithmetic import add, mul, sub
from symad.ops.basic.sources import array_constant, constant, eye, input_node
from symad.ops.elementwise.powers import power
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve, cholesky, triangular_solve
from symad.ops.linalg.eigen import EigenValues, EigenVectors, eigenvalues, eigenvectors
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative, matrix_power
from symad.ops.linalg.slogdet import DeterminantSign, determinant_sign
from symad.ops.linalg.solve_det import (
    Determinant,
    LogDeterminant,
    Solve,
    determinant,
    inverse,
    log_determinant,
    solve,
)
from symad.ops.sparse.csr import INDEX
from symad.ops.sparse.sparse_solve import SparseSolve


def well_conditioned(n: int = 3) -> Node:
    """A + 4I, away from singularity for the tests' arguments in (−1, 1)."""
    return sub(matrix("A", n, n), mul(constant(-4), eye(n)))


def right_hand_side() -> Node:
    return matrix("B", 3, 2)


EXAMPLES.update(
    {
        Adjugate: lambda: [adjugate(matrix("A", 3, 3))],
        AdjugateTangent: lambda: [Node.of(AdjugateTangent(), (matrix("A", 3, 3), matrix("E", 3, 3)))],
        TriangularSolve: lambda: [
            triangular_solve(well_conditioned(), right_hand_side()),
            triangular_solve(well_conditioned(), right_hand_side(), lower=False),
        ],
        Cholesky: lambda: [cholesky(well_conditioned())],
        Triangle: lambda: [Node.of(Triangle(1), (well_conditioned(),))],
        EigenValues: lambda: [eigenvalues(well_conditioned())],
        EigenVectors: lambda: [eigenvectors(well_conditioned())],
        MatrixPower: lambda: [matrix_power(well_conditioned(), constant(3))],
        MatrixPowerDerivative: lambda: [
            Node.of(MatrixPowerDerivative(), (well_conditioned(2), matrix("E", 2, 2), constant(3)))
        ],
        DeterminantSign: lambda: [determinant_sign(matrix("A", 3, 3))],
        Solve: lambda: [solve(well_conditioned(), right_hand_side()), inverse(well_conditioned())],
        Determinant: lambda: [determinant(well_conditioned())],
        LogDeterminant: lambda: [log_determinant(well_conditioned())],
    }
)


@examples(Root)
def root_examples() -> list[Node]:
    """x³ + a x = 1 + b."""
    x = Node.of(Local(0, (1,)))
    a, b = (input_node(s) for s in sympy.symbols("a b", positive=True))
    local = (x, *(Node.of(Local(k, ())) for k in (1, 2)))
    cubic = sub(add(power(x, constant(3)), mul(local[1], x)), add(constant(1), local[2]))
    return [root(Graph(local, (cubic,)), vector("guess", 1), [a, b])]


@examples(SparseSolve)
def sparse_solve_examples() -> list[Node]:
    """A tridiagonal system with a heavy diagonal, and its transpose."""
    indptr, indices = np.array([0, 2, 5, 7]), np.array([0, 1, 0, 1, 2, 1, 2])
    heavy = add(vector("e", 7), array_constant(np.array([4.0, 0, 0, 4.0, 0, 0, 4.0])))
    pattern = indptr.astype(INDEX).tobytes(), indices.astype(INDEX).tobytes()
    return [Node.of(SparseSolve(*pattern, flag), (heavy, vector("b", 3))) for flag in (False, True)]
