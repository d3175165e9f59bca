"""Examples of the ops of `symad.ops.linalg`, for tests and tables."""

from __future__ import annotations

import sympy

from symad.core.graph import Graph, Node
from symad.core.questions import examples
from symad.derivatives.implicit import Root, root
from symad.higher_order.adjugate import Adjugate, AdjugateTangent, adjugate
from symad.higher_order.scan import Local
from symad.ops.basic.arithmetic import add, mul, sub
from symad.ops.basic.sources import constant, input_node
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
    right_hand_side,
    solve,
    well_conditioned,
)


def _square(name: str) -> Node:
    return input_node(sympy.MatrixSymbol(name, 3, 3), (3, 3))


@examples(Adjugate)
def adjugate_examples() -> list[Node]:
    return [adjugate(_square("A"))]


@examples(AdjugateTangent)
def adjugate_tangent_examples() -> list[Node]:
    return [Node.of(AdjugateTangent(), (_square("A"), _square("E")))]


@examples(TriangularSolve)
def triangular_solve_examples() -> list[Node]:
    a, b = well_conditioned(), right_hand_side()
    return [triangular_solve(a, b), triangular_solve(a, b, lower=False)]


@examples(Cholesky)
def cholesky_examples() -> list[Node]:
    return [cholesky(well_conditioned())]


@examples(Triangle)
def triangle_examples() -> list[Node]:
    return [Node.of(Triangle(1), (well_conditioned(),))]


@examples(EigenValues)
def eigenvalues_examples() -> list[Node]:
    return [eigenvalues(well_conditioned())]


@examples(EigenVectors)
def eigenvectors_examples() -> list[Node]:
    return [eigenvectors(well_conditioned())]


@examples(MatrixPower)
def matrix_power_examples() -> list[Node]:
    return [matrix_power(well_conditioned(), constant(3))]


@examples(MatrixPowerDerivative)
def matrix_power_derivative_examples() -> list[Node]:
    e = input_node(sympy.MatrixSymbol("E", 2, 2), (2, 2))
    return [Node.of(MatrixPowerDerivative(), (well_conditioned(2), e, constant(3)))]


@examples(Root)
def root_examples() -> list[Node]:
    """x³ + a x = 1 + b."""
    x = Node.of(Local(0, (1,)))
    a, b = (input_node(s) for s in sympy.symbols("a b", positive=True))
    local = (x, *(Node.of(Local(k, ())) for k in (1, 2)))
    cubic = sub(add(power(x, constant(3)), mul(local[1], x)), add(constant(1), local[2]))
    guess = input_node(sympy.IndexedBase("guess", shape=(1,)), (1,))
    return [root(Graph(local, (cubic,)), guess, [a, b])]


@examples(DeterminantSign)
def determinant_sign_examples() -> list[Node]:
    return [determinant_sign(input_node(sympy.MatrixSymbol("A", 3, 3), (3, 3)))]


@examples(Solve)
def solve_examples() -> list[Node]:
    return [solve(well_conditioned(), right_hand_side()), inverse(well_conditioned())]


@examples(Determinant)
def determinant_examples() -> list[Node]:
    return [determinant(well_conditioned())]


@examples(LogDeterminant)
def log_determinant_examples() -> list[Node]:
    return [log_determinant(well_conditioned())]
