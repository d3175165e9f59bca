"""The SymPy forms of the ops of `symad.ops.linalg`."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.core.questions import Form, Forms, definition, sympy_form
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import MatrixOp, determinant
from symad.tracing.into_sympy import arrays
from symad.tracing.into_sympy.forms import array_apply
from symad.tracing.into_sympy.nodes import nodes_to_sympy


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
