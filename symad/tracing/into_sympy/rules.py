"""The SymPy forms of the ops; importing this module registers them.

A rule answers the question `sympy_form` of `symad.core.questions`; `symad.tracing.into_sympy.nodes` asks it
for all nodes of a graph. Ops that stand above tracing have their forms in their own files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.tensor.array.expressions import Reshape

from symad.core.dims import Shape
from symad.core.expressions import is_of_a_float
from symad.core.graph import Node
from symad.core.questions import Form, Forms, definition, sympy_form
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.higher_order.affine_scan import AffineScan
from symad.higher_order.captured import Captured, refuse
from symad.higher_order.checkpointed_chain import ChainOp
from symad.higher_order.remat import Remat
from symad.higher_order.scan import Scan
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import ExponentialOp, LogSoftmax, LogSumExp, Softmax
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import (
    ArrayConstant,
    Constant,
    Dimension,
    Eye,
    Input,
    Iota,
    constant_value,
    is_exact,
)
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import LOGIC, RELATIONS, Compare, Logic, Select
from symad.ops.elementwise.undefined import Undefined, elements_of
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import MatrixOp, determinant
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import SparseSolve
from symad.sympy_functions import matrix_functions
from symad.tracing.input_symbols import with_shape
from symad.tracing.into_sympy import arrays
from symad.tracing.into_sympy.arrays import inverted
from symad.tracing.into_sympy.nodes import nodes_to_sympy

# ---- sums, products, powers and functions of numbers; those of arrays are in `arrays` -------------


def array_add(shape: Shape, signs: Sequence[int], terms: Sequence[sympy.Basic]) -> sympy.Basic:
    """The signed sum of the terms."""
    if shape:
        return arrays.add(shape, signs, terms)
    signed = [_negated(term) if sign == -1 else term for sign, term in zip(signs, terms, strict=True)]
    return signed[0] if len(signed) == 1 else sympy.Add(*signed, evaluate=False)


def _negated(form: sympy.Basic) -> sympy.Basic:
    """−form without distributing over a sum."""
    if isinstance(form, sympy.Number):
        return -form
    if isinstance(form, sympy.Mul) and isinstance(form.args[0], sympy.Number):
        return sympy.Mul(-form.args[0], *form.args[1:], evaluate=False)
    if isinstance(form, sympy.Mul):
        return sympy.Mul(sympy.S.NegativeOne, *form.args, evaluate=False)
    return sympy.Mul(sympy.S.NegativeOne, form, evaluate=False)


def array_mul(
    shape: Shape, coefficient: sympy.Expr, powers: Sequence[int], factors: Sequence[sympy.Basic]
) -> sympy.Basic:
    """The product of factors to powers ±1, with a rational coefficient in front."""
    if shape:
        return arrays.mul(shape, coefficient, powers, factors)
    signed = [inverted(f) if power == -1 else f for power, f in zip(powers, factors, strict=True)]
    if coefficient != 1:
        signed.insert(0, coefficient)
    return signed[0] if len(signed) == 1 else sympy.Mul(*signed, evaluate=False)


def array_pow(shape: Shape, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Basic:
    """The power."""
    return arrays.pow(shape, base, exponent) if shape else sympy.Pow(base, exponent, evaluate=False)


def array_apply(shape: Shape, head: type[sympy.Basic], forms: Sequence[sympy.Basic]) -> sympy.Basic:
    """The function, unevaluated; functions of arrays are left to `elementwise_form`."""
    if shape:
        return None
    try:
        return head(*forms, evaluate=False) if not hasattr(head, "unranged") else head.unranged(*forms)
    except TypeError:  # a head that does not accept such an argument
        return head(*forms)


def array_select(shape: Shape, condition: sympy.Basic, a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    """A Piecewise; one in the last branch is flattened into it.

    SymPy moves a Piecewise inside a condition outwards, also out of a Lambda, where this is wrong: such a
    selection is represented by its op.
    """
    if shape or condition.has(sympy.Piecewise):
        return None
    rest = list(b.args) if isinstance(b, sympy.Piecewise) else [(b, True)]
    if b is sympy.nan:
        rest = []
    return sympy.Piecewise((a, condition), *rest, evaluate=False)


@sympy_form.dispatch
def apply_sympy(op: Apply, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, op.head, forms)


@sympy_form.dispatch
def add_sympy(op: Add, y: Node, forms: Forms) -> Form:
    return array_add(y.shape, op.signs, forms)


@sympy_form.dispatch
def mul_sympy(op: Mul, y: Node, forms: Forms) -> Form:
    """Integer factors of numerator and denominator become one rational coefficient in front."""
    coefficient = sympy.S.One
    powers, factors = [], []
    for power_, arg, form in zip(op.powers, y.args, forms, strict=True):
        if is_exact(constant_value(arg)) and form != 0:
            coefficient *= form**power_
        else:
            powers.append(power_)
            factors.append(form)
    return array_mul(y.shape, coefficient, powers, factors)


@sympy_form.dispatch
def pow_sympy(op: Pow, y: Node, forms: Forms) -> Form:
    return array_pow(y.shape, forms[0], forms[1])


@sympy_form.dispatch
def compare_sympy(op: Compare, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, RELATIONS[op.relation], forms)


@sympy_form.dispatch
def logic_sympy(op: Logic, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, LOGIC[op.kind], forms)


@sympy_form.dispatch
def select_sympy(op: Select, y: Node, forms: Forms) -> Form:
    """Nested selections in the last branch become one Piecewise."""
    condition, a, b = forms
    return array_select(y.shape, condition, a, sympy.nan if isinstance(y.args[2].op, Undefined) else b)


@sympy_form.dispatch
def undefined_sympy(op: Undefined, y: Node, forms: Forms) -> Form:
    """A Piecewise with value 0 if its conditions contain all its inputs; otherwise the op is wrapped."""
    if set(y.args[1:]) != set(elements_of(y.args[0])):
        return None
    return array_select(y.shape, forms[0], sympy.S.Zero, sympy.nan)


@sympy_form.dispatch
def einsum_sympy(op: Einsum, y: Node, forms: Forms) -> Form:
    return arrays.einsum(op, y, forms)


@sympy_form.dispatch
def sorting_positions_sympy(op: SortingPositions, y: Node, forms: Forms) -> Form:
    return nodes_to_sympy([definition(op, y)])[0]


@sympy_form.dispatch
def positions_sympy(op: Positions, y: Node, forms: Forms) -> Form:
    return nodes_to_sympy([definition(op, y)])[0]


@sympy_form.dispatch
def extreme_sympy(op: Extreme, y: Node, forms: Forms) -> Form:
    return None  # SymPy has no such reduction


@sympy_form.dispatch
def product_sympy(op: Product, y: Node, forms: Forms) -> Form:
    return None  # SymPy has no such reduction


@sympy_form.dispatch
def shaping_sympy(op: ShapingOp, y: Node, forms: Forms) -> Form:
    return arrays.shaping(op, y, forms)


@sympy_form.dispatch
def input_sympy(op: Input, y: Node, forms: Forms) -> Form:
    return with_shape(op.symbol, op.shape)


@sympy_form.dispatch
def constant_sympy(op: Constant, y: Node, forms: Forms) -> Form:
    if isinstance(op.value, Fraction):
        exact = sympy.Rational(op.value.numerator, op.value.denominator)
        return sympy.Float(exact, 18) if is_of_a_float(op.value) else exact
    return sympy.sympify(op.value, strict=True)


@sympy_form.dispatch
def array_constant_sympy(op: ArrayConstant, y: Node, forms: Forms) -> Form:
    return arrays.constant(op.array)


@sympy_form.dispatch
def dimension_sympy(op: Dimension, y: Node, forms: Forms) -> Form:
    return op.expression


@sympy_form.dispatch
def iota_sympy(op: Iota, y: Node, forms: Forms) -> Form:
    """The column of row numbers, as a vector."""
    row, column = sympy.symbols("row column", integer=True)
    rows = sympy.FunctionMatrix(op.size, 1, sympy.Lambda((row, column), row))
    return Reshape(rows, (op.size,))


@sympy_form.dispatch
def eye_sympy(op: Eye, y: Node, forms: Forms) -> Form:
    return sympy.Identity(op.size)


@sympy_form.dispatch
def random_sympy(op: RandomOp, y: Node, forms: Forms) -> Form:
    """SymPy has no such function: the op is wrapped."""
    return None


@sympy_form.dispatch
def exponential_sympy(op: ExponentialOp, y: Node, forms: Forms) -> Form:
    """A function of `symad.functions` of a matrix; if there is none, the op is wrapped."""
    heads: dict[type, Callable[..., Any]] = {
        Softmax: matrix_functions.MatrixSoftmax,
        LogSoftmax: matrix_functions.MatrixLogSoftmax,
        LogSumExp: matrix_functions.MatrixLogSumExp,
    }
    head = heads.get(type(op))
    everything = len(op.axes) == len(y.args[0].shape)
    if head is None or not isinstance(forms[0], sympy.MatrixExpr):
        return None
    if everything:
        return head(forms[0])
    return None if type(op) is LogSumExp else head(forms[0], op.axes[0])


@sympy_form.dispatch
def adjugate_sympy(op: Adjugate, y: Node, forms: Forms) -> Form:
    return _by_definition(y, forms)


@sympy_form.dispatch
def adjugate_tangent_sympy(op: AdjugateTangent, y: Node, forms: Forms) -> Form:
    return _by_definition(y, forms)


def _by_definition(y: Node, forms: Forms) -> sympy.Basic:
    return nodes_to_sympy([definition(y.op, y)])[0]


@sympy_form.dispatch
def determinant_sign_sympy(op: DeterminantSign, y: Node, forms: Forms) -> Form:
    whole = determinant(y.args[0])
    return array_apply(y.shape, sympy.sign, [arrays.linalg(whole.op, whole, forms)])


@sympy_form.dispatch
def matrix_sympy(op: MatrixOp, y: Node, forms: Forms) -> Form:
    return arrays.linalg(op, y, forms)


@sympy_form.dispatch
def compressed_rows_sympy(op: CompressedRows, y: Node, forms: Forms) -> Form:
    """SymPy has no sparse matrix with a given pattern: the op is wrapped."""
    return None


@sympy_form.dispatch
def sparse_solve_sympy(op: SparseSolve, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


@sympy_form.dispatch
def affine_scan_sympy(op: AffineScan, y: Node, forms: Forms) -> Form:
    return arrays.shaping(op, y, forms)


@sympy_form.dispatch
def captured_sympy(op: Captured, y: Node, forms: Forms) -> Form:
    refuse("an expression that", op)


@sympy_form.dispatch
def chain_sympy(op: ChainOp, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


@sympy_form.dispatch
def remat_sympy(op: Remat, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


@sympy_form.dispatch
def scan_sympy(op: Scan, y: Node, forms: Forms) -> Form:
    return arrays.shaping(op, y, forms)
