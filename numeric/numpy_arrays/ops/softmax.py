"""Softmax and its kin in NumPy: helpers that subtract the largest element first."""

from __future__ import annotations

from typing import Any

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.ops.fused.softmax import LogSoftmax, LogSumExp, Softmax, SoftmaxTangent
from symad.ops.linalg.slogdet import DeterminantSign

EXPONENTIALS = '''def _exponentials(x, axes):
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0)
    e = np.exp(x - highest)
    return highest, e, e.sum(axis=axes, keepdims=True)
'''

SOFTMAX = '''def _softmax(x, axes):
    _, e, total = _exponentials(x, axes)
    e /= total
    return e
'''

LOG_SOFTMAX = '''def _log_softmax(x, axes):
    highest, _, total = _exponentials(x, axes)
    return x - highest - np.log(total)
'''

LOG_SUM_EXP = '''def _log_sum_exp(x, axes):
    highest, _, total = _exponentials(x, axes)
    return (highest + np.log(total)).squeeze(axes)
'''

TANGENT = '''def _softmax_tangent(p, t, axes):
    return p*(t - (p*t).sum(axis=axes, keepdims=True))
'''


def _call(name: str, source: str, args: Texts, axes: tuple[int, ...], printer: Any) -> str:
    printer.helper("_exponentials", EXPONENTIALS)
    return f"{printer.helper(name, source)}({', '.join(args)}, {axes})"


@emit.dispatch
def softmax_emit(op: Softmax, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return _call("_softmax", SOFTMAX, args, op.axes, printer)


@emit.dispatch
def log_softmax_emit(
    op: LogSoftmax, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return _call("_log_softmax", LOG_SOFTMAX, args, op.axes, printer)


@emit.dispatch
def log_sum_exp_emit(
    op: LogSumExp, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return _call("_log_sum_exp", LOG_SUM_EXP, args, op.axes, printer)


@emit.dispatch
def softmax_tangent_emit(
    op: SoftmaxTangent, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.helper('_softmax_tangent', TANGENT)}({', '.join(args)}, {op.axes})"


@emit.dispatch
def determinant_sign_emit(
    op: DeterminantSign, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return f"{printer.np}.linalg.slogdet({args[0]})[0]"
