"""Matrix expressions to nodes: products, sums, powers, inverses, determinants, functions.

A matrix is a node with two axes; a vector is (n, 1). SymPy checks no symbolic shapes, so every
shape is checked here; errors have the names that the user wrote. Every matrix is real: the adjoint is the
transpose.
"""

from __future__ import annotations

from itertools import pairwise

import sympy
from sympy.codegen.matrix_nodes import MatrixSolve
from sympy.matrices.expressions import (
    Adjoint,
    DotProduct,
    HadamardPower,
    HadamardProduct,
    MatMul,
    MatPow,
    Permanent,
)
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.matrices.expressions.factorizations import Factorization, LofCholesky, UofCholesky
from sympy.matrices.expressions.kronecker import KroneckerProduct
from sympy.matrices.expressions.special import GenericIdentity, GenericZeroMatrix
from sympy.tensor.array.expressions import ArrayElementwiseApplyFunc, ArraySymbol, OneArray, ZeroArray

from symad.core.dims import as_shape, same_dim, size, times
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import ShapeError, TraceError
from symad.ops.basic.arithmetic import add, div, mul
from symad.ops.basic.contraction import Einsum, contract, einsum, inner, matrix_transpose
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant, constant_value, eye, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.linalg.cholesky import cholesky
from symad.ops.linalg.matrix_power import matrix_power
from symad.ops.linalg.solve_det import Determinant, determinant, inverse, log_determinant, solve
from symad.tracing.error_names import check_one_shape, check_scalars, describe, describe_shapes
from symad.tracing.from_sympy.matrix_chain_order import Factor, is_ones, multiply
from symad.tracing.from_sympy.matrix_parts import apply_lambda
from symad.tracing.walk import Tracer, lift, operands


@operands.register(sympy.MatrixSymbol)
def symbol_operands(expression: sympy.MatrixSymbol, tracer: Tracer) -> tuple[()]:
    return ()


@lift.register(sympy.MatrixSymbol)
@lift.register(ArraySymbol)
def symbol_lift(expression: sympy.MatrixSymbol | ArraySymbol, args: Nodes, tracer: Tracer) -> Node:
    return input_node(expression, tracer.shapes.get(expression, expression.shape))


# ---- products -----------------------------------------------------------------------------------


def _is_power(factor: sympy.Expr) -> bool:
    """True if a factor is a matrix to a known integer power, such as an inverse."""
    return isinstance(factor, MatPow) and isinstance(factor.exp, sympy.Integer)


def _is_lone_hadamard(expression: MatMul) -> bool:
    """c·(A∘B): traced as one product of all factors."""
    matrices = [f for f in expression.args if f.is_Matrix]
    return len(matrices) == 1 and isinstance(matrices[0], HadamardProduct)


@operands.register(MatMul)
def matmul_operands(expression: MatMul, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """Scalars and matrices; for a power only its base, so that A²·w need not form A²."""
    parts: list[sympy.Basic] = []
    for factor in expression.args:
        if isinstance(factor, HadamardProduct) and _is_lone_hadamard(expression):
            parts.extend(factor.args)
        elif not isinstance(factor, GenericIdentity):
            parts.append(factor.base if _is_power(factor) else factor)
    return tuple(parts)


@lift.register(MatMul)
def matmul_lift(expression: MatMul, args: Nodes, tracer: Tracer) -> Node:
    if _is_lone_hadamard(expression):
        check_one_shape(expression, matmul_operands(expression, tracer), args)
        return mul(*args)
    rest = iter(args)
    factors = [(f, next(rest)) for f in expression.args if not isinstance(f, GenericIdentity)]
    scalars = [node for f, node in factors if not f.is_Matrix]
    matrices = [(f, node) for f, node in factors if f.is_Matrix]
    if not matrices:
        raise TraceError(f"{describe(expression)} has no size: an identity matrix needs one, Identity(n)")
    links = [_link(f, node) for f, node in matrices]
    _check_chain(expression, [f for f, _ in matrices], links)
    product = multiply(links)
    if scalars and len(links) == 1 and is_ones(product):
        return broadcast_to(mul(*scalars), product.shape)  # c·OneMatrix
    return mul(*scalars, product)


def _link(factor: sympy.MatrixExpr, node: Node) -> Factor:
    if not _is_power(factor):
        return Factor(node)
    _check_square(factor, node)
    k = int(factor.exp)
    return Factor(node, k) if k else Factor(eye(node.shape[0]))


def _check_chain(expression: sympy.MatrixExpr, parts: list[sympy.MatrixExpr], links: list[Factor]) -> None:
    open_row = False  # true if the factors so far may be multiplied to a 1×1 matrix
    for (left, a), (right, b) in pairwise(zip(parts, links, strict=True)):
        open_row = open_row or same_dim(a.rows, 1)
        if not same_dim(a.columns, b.rows):
            hint = "; a 1×1 product is not a number: take its element, as in (v.T*v)[0, 0]"
            raise ShapeError(
                f"in {describe(expression)} the factors {describe(left)} and {describe(right)} do "
                f"not fit: ({a.rows}, {a.columns})·({b.rows}, {b.columns})"
                + (hint if open_row and same_dim(a.columns, 1) else "")
            )


def _check_square(expression: sympy.Expr, node: Node) -> None:
    if not same_dim(node.shape[0], node.shape[1]):
        base = getattr(expression, "base", expression.args[0])
        raise ShapeError(
            f"{describe(expression)} needs a square matrix, but {describe_shapes([base], [node])} "
            "is not square"
        )


@operands.register(MatPow)
def matpow_operands(expression: MatPow, tracer: Tracer) -> tuple[sympy.MatrixExpr | sympy.Symbol, ...]:
    return (expression.base,) if _is_power(expression) else (expression.base, expression.exp)


@lift.register(MatPow)
def matpow_lift(expression: MatPow, args: Nodes, tracer: Tracer) -> Node:
    """A^k; k may be a symbol, whose value is an integer when the graph is called.

    A 1×1 matrix counts as a number, which may have any real exponent.
    """
    base = args[0]
    _check_square(expression, base)
    if _is_power(expression):
        k = int(expression.exp)
        return inverse(base) if k == -1 else matrix_power(base, k)
    if same_dim(base.shape[0], 1):
        return reshape(power(reshape(base, ()), args[1]), base.shape)
    if constant_value(args[1]) is not None or expression.exp.is_integer is False:
        raise TraceError(
            f"{describe(expression)} is a matrix power with the exponent {expression.exp}; only "
            "integer exponents are known. For elementwise powers use HadamardPower"
        )
    return matrix_power(base, args[1])


@operands.register(MatrixSolve)
def matrix_solve_operands(expression: MatrixSolve, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return expression.matrix, expression.vector


@lift.register(MatrixSolve)
def matrix_solve_lift(expression: MatrixSolve, args: Nodes, tracer: Tracer) -> Node:
    return solve(*args)


# ---- sums, transposes, elementwise --------------------------------------------------------------


@operands.register(sympy.MatAdd)
def matadd_operands(expression: sympy.MatAdd, tracer: Tracer) -> tuple[sympy.MatrixExpr, ...]:
    return tuple(term for term in expression.args if not isinstance(term, GenericZeroMatrix))


@lift.register(sympy.MatAdd)
def matadd_lift(expression: sympy.MatAdd, args: Nodes, tracer: Tracer) -> Node:
    check_one_shape(expression, matadd_operands(expression, tracer), args)
    return add(*args)


@lift.register(GenericZeroMatrix)
@lift.register(GenericIdentity)
def generic_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    raise TraceError(f"{type(expression).__name__} has no size; use ZeroMatrix(n, m) or Identity(n)")


@lift.register(sympy.Transpose)
@lift.register(Adjoint)
def transpose_lift(expression: sympy.MatrixExpr, args: Nodes, tracer: Tracer) -> Node:
    return matrix_transpose(args[0])


@lift.register(HadamardProduct)
def hadamard_lift(expression: HadamardProduct, args: Nodes, tracer: Tracer) -> Node:
    check_one_shape(expression, expression.args, args)
    return mul(*args)


@lift.register(HadamardPower)
def hadamard_power_lift(expression: HadamardPower, args: Nodes, tracer: Tracer) -> Node:
    check_one_shape(expression, expression.args, args)
    return power(*args)


@operands.register(ElementwiseApplyFunction)
def applyfunc_operands(expression: ElementwiseApplyFunction, tracer: Tracer) -> tuple[sympy.MatrixExpr, ...]:
    return (expression.expr,)


@lift.register(ElementwiseApplyFunction)
@lift.register(ArrayElementwiseApplyFunc)
def applyfunc_lift(
    expression: ElementwiseApplyFunction | ArrayElementwiseApplyFunc, args: Nodes, tracer: Tracer
) -> Node:
    return apply_lambda(expression.function, args, tracer)


@lift.register(KroneckerProduct)
def kronecker_lift(expression: KroneckerProduct, args: Nodes, tracer: Tracer) -> Node:
    """(A⊗B)[ip+k, jq+l] = A[i, j] B[k, l], from left to right."""
    product = args[0]
    for factor in args[1:]:
        (a, b), (c, d) = product.shape, factor.shape
        product = reshape(einsum("ij,kl->ikjl", product, factor), (times(a, c), times(b, d)))
    return product


# ---- constants ----------------------------------------------------------------------------------


@operands.register(sympy.Identity)
@operands.register(sympy.ZeroMatrix)
@operands.register(sympy.OneMatrix)
@operands.register(GenericIdentity)
@operands.register(GenericZeroMatrix)
def constant_operands(expression: sympy.MatrixExpr, tracer: Tracer) -> tuple[()]:
    return ()


@lift.register(sympy.Identity)
def identity_lift(expression: sympy.Identity, args: Nodes, tracer: Tracer) -> Node:
    return eye(as_shape(expression.shape)[0])


@lift.register(sympy.ZeroMatrix)
@lift.register(ZeroArray)
def zero_lift(expression: sympy.ZeroMatrix | ZeroArray, args: Nodes, tracer: Tracer) -> Node:
    return broadcast_to(constant(0), as_shape(expression.shape))


@lift.register(sympy.OneMatrix)
@lift.register(OneArray)
def one_lift(expression: sympy.OneMatrix | OneArray, args: Nodes, tracer: Tracer) -> Node:
    return broadcast_to(constant(1), as_shape(expression.shape))


# ---- numbers from matrices ----------------------------------------------------------------------


@lift.register(sympy.Trace)
def trace_lift(expression: sympy.Trace, args: Nodes, tracer: Tracer) -> Node:
    """tr(A); tr(A·B) is Σ A_ij B_ji, so that the product is never formed."""
    (a,) = args
    _check_square(expression, a)
    if isinstance(a.op, Einsum) and len(a.args) > 1:
        row, column = a.op.output
        closed = [[row if label == column else label for label in part] for part in a.op.inputs]
        return contract(closed, (), *a.args)
    return contract([(0, 0)], (), a)


@lift.register(sympy.Determinant)
def determinant_lift(expression: sympy.Determinant, args: Nodes, tracer: Tracer) -> Node:
    _check_square(expression, args[0])
    return determinant(args[0])


@lift.register(sympy.log)
def log_lift(expression: sympy.log, args: Nodes, tracer: Tracer) -> Node:
    """log(det A) is one op: det overflows long before its logarithm does. NaN where det A < 0."""
    check_scalars(expression, args)
    a, *base = args
    logarithm = log_determinant(a.args[0]) if isinstance(a.op, Determinant) else apply(sympy.log, a)
    return div(logarithm, apply(sympy.log, *base)) if base else logarithm


@lift.register(DotProduct)
def dot_lift(expression: DotProduct, args: Nodes, tracer: Tracer) -> Node:
    """Σ x_i y_i for two rows or columns."""
    a, b = args
    if not same_dim(size(a.shape), size(b.shape)):
        raise ShapeError(
            f"{describe(expression)} needs equally long vectors: {describe_shapes(expression.args, args)}"
        )
    return inner(a, reshape(b, a.shape))


@lift.register(Permanent)
def permanent_lift(expression: Permanent, args: Nodes, tracer: Tracer) -> Node:
    raise TraceError(f"{describe(expression)}: permanents are not supported; write it out over the elements")


@lift.register(Factorization)
def factorization_lift(expression: Factorization, args: Nodes, tracer: Tracer) -> Node:
    raise TraceError(
        f"{describe(expression)}: the factorization {type(expression).__name__} is not supported; "
        "of the factorizations only LofCholesky and UofCholesky are"
    )


@lift.register(LofCholesky)
def lower_cholesky_lift(expression: LofCholesky, args: Nodes, tracer: Tracer) -> Node:
    _check_square(expression, args[0])
    return cholesky(args[0])


@lift.register(UofCholesky)
def upper_cholesky_lift(expression: UofCholesky, args: Nodes, tracer: Tracer) -> Node:
    _check_square(expression, args[0])
    return matrix_transpose(cholesky(args[0]))
