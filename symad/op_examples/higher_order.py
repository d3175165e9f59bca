"""Examples of the ops of `symad.higher_order`, for tests and tables."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.graph import ZERO, Node
from symad.core.questions import examples, jvp
from symad.higher_order.affine_scan import AffineScan, affine_scan
from symad.higher_order.checkpointed_chain import Chain, ChainTangent, chain
from symad.higher_order.checkpointed_chain_pullback import ChainPullback
from symad.higher_order.remat import Remat, remat
from symad.higher_order.scan import Scan, scan
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import matmul
from symad.ops.basic.sources import fresh_input, input_node
from symad.ops.elementwise.apply import apply


@examples(AffineScan)
def affine_scan_examples() -> list[Node]:
    def array(name: str, *dims: int) -> Node:
        return input_node(ArraySymbol(name, dims), dims)

    a = input_node(sympy.IndexedBase("a", shape=(5,)), (5,))
    b = input_node(sympy.IndexedBase("b", shape=(5,)), (5,))
    return [
        affine_scan(a, b),
        affine_scan(a, b, backward=True),
        Node.of(AffineScan(True), (array("A", 3, 2, 2), array("B", 3, 2, 1))),
        Node.of(AffineScan(True, True), (array("A", 3, 2, 2), array("B", 3, 2, 2))),
    ]


def _sine_chain(policy: str, number: int, history: bool) -> Node:
    a = input_node(sympy.Symbol("a", real=True))
    s = input_node(sympy.IndexedBase("s", shape=(5,)), (5,))
    return chain(lambda c, v: add(apply(sympy.sin, mul(a, c)), v), a, [s], policy, number, history)


@examples(Chain)
def chain_examples() -> list[Node]:
    return [
        _sine_chain("every", 2, False),
        _sine_chain("binomial", 2, False),
        _sine_chain("recompute", 0, True),
    ]


@examples(ChainTangent)
def chain_tangent_examples() -> list[Node]:
    y = _sine_chain("sqrt", 0, False)
    dot = input_node(sympy.IndexedBase("d", shape=(5,)), (5,))
    return [jvp(y.op, y, (ZERO, dot, ZERO, ZERO))]


@examples(ChainPullback)
def chain_pullback_examples() -> list[Node]:
    found = []
    for y in chain_examples():
        bar = input_node(sympy.IndexedBase("b", shape=y.shape) if y.shape else sympy.Symbol("b"), y.shape)
        op: Any = y.op
        active = (True,) * (len(y.args) - 1)
        back = ChainPullback(op.body, op.slices, op.policy, op.number, op.history, active)
        found.append(Node.of(back, (*y.args, bar)))
    return found


@examples(Remat)
def remat_examples() -> list[Node]:
    """tanh(A x) ⊙ x, and a product that is linear in each argument."""
    a, x = (input_node(sympy.MatrixSymbol(name, 3, k), (3, k)) for name, k in (("A", 3), ("x", 1)))
    p, q = fresh_input((3, 3)), fresh_input((3, 1))
    bent = mul(apply(sympy.tanh, matmul(p, q)), q)
    return [remat([p, q], [bent], [a, x])[0], remat([p, q], [matmul(p, q)], [a, x])[0]]


@examples(Scan)
def scan_examples() -> list[Node]:
    """An Elman cell, and a recurrence of scalars."""
    w, u = (input_node(sympy.MatrixSymbol(name, 2, k), (2, k)) for name, k in (("W", 2), ("U", 3)))
    h = input_node(sympy.MatrixSymbol("h", 2, 1), (2, 1))
    x = input_node(sympy.tensor.array.expressions.ArraySymbol("x", (4, 3, 1)), (4, 3, 1))
    a = input_node(sympy.Symbol("a", real=True))
    s = input_node(sympy.IndexedBase("s", shape=(5,)), (5,))
    return [
        scan(lambda c, v: apply(sympy.tanh, add(matmul(w, c), matmul(u, v))), h, [x]),
        scan(lambda c, v: add(mul(a, c), apply(sympy.sin, v)), a, [s]),
    ]
