"""The SymPy forms of the ops of `symad.higher_order`."""

from __future__ import annotations

from symad.core.graph import Node
from symad.core.questions import Form, Forms, sympy_form
from symad.higher_order.affine_scan import AffineScan
from symad.higher_order.captured import Captured, refuse
from symad.higher_order.checkpointed_chain import ChainOp
from symad.higher_order.remat import Remat
from symad.higher_order.scan import Scan
from symad.tracing.into_sympy import arrays


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
