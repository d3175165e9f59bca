"""The SymPy forms of the ops of `symad.ops.fused`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from symad.core.graph import Node
from symad.core.questions import Form, Forms, sympy_form
from symad.library import matrix_functions
from symad.ops.fused.attention_ops import AttentionOp
from symad.ops.fused.pair_sum import PairOp
from symad.ops.fused.random import RandomOp
from symad.ops.fused.softmax import ExponentialOp, LogSoftmax, LogSumExp, Softmax


@sympy_form.dispatch
def attention_sympy(op: AttentionOp, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


@sympy_form.dispatch
def pair_sympy(op: PairOp, y: Node, forms: Forms) -> Form:
    return None  # no SymPy class: the op is wrapped, so that tracing returns it


@sympy_form.dispatch
def random_sympy(op: RandomOp, y: Node, forms: Forms) -> Form:
    """SymPy has no such function: the op is wrapped."""
    return None


@sympy_form.dispatch
def exponential_sympy(op: ExponentialOp, y: Node, forms: Forms) -> Form:
    """A function of `symad.functions` of a matrix; if there is none, the op is wrapped."""
    heads: dict[type, Callable[..., Any]] = {
        Softmax: matrix_functions.Softmax,
        LogSoftmax: matrix_functions.LogSoftmax,
        LogSumExp: matrix_functions.LogSumExp,
    }
    head = heads.get(type(op))
    everything = len(op.axes) == len(y.args[0].shape)
    if head is None or not isinstance(forms[0], sympy.MatrixExpr):
        return None
    if everything:
        return head(forms[0])
    return None if type(op) is LogSumExp else head(forms[0], op.axes[0])
