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
from symad.op_examples.arrays import matrix, scalars, vector
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import matmul
from symad.ops.basic.sources import fresh_input, input_node
from symad.ops.elementwise.apply import apply


def _array(name: str, *dims: int) -> Node:
    return input_node(ArraySymbol(name, dims), dims)


@examples(AffineScan)
def affine_scan_examples() -> list[Node]:
    a, b = vector("a", 5), vector("b", 5)
    return [
        affine_scan(a, b),
        affine_scan(a, b, backward=True),
        Node.of(AffineScan(True), (_array("A", 3, 2, 2), _array("B", 3, 2, 1))),
        Node.of(AffineScan(True, True), (_array("A", 3, 2, 2), _array("B", 3, 2, 2))),
    ]


def _sine_chain(policy: str, number: int, history: bool) -> Node:
    (a,) = scalars("a")
    s = vector("s", 5)
    return chain(lambda c, v: add(apply(sympy.sin, mul(a, c)), v), a, [s], policy, number, history)


@examples(Chain)
def chain_examples() -> list[Node]:
    plans = (("every", 2, False), ("binomial", 2, False), ("recompute", 0, True))
    return [_sine_chain(*plan) for plan in plans]


@examples(ChainTangent)
def chain_tangent_examples() -> list[Node]:
    y = _sine_chain("sqrt", 0, False)
    return [jvp(y.op, y, (ZERO, vector("d", 5), ZERO, ZERO))]


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
    a, x = matrix("A", 3, 3), matrix("x", 3, 1)
    p, q = fresh_input((3, 3)), fresh_input((3, 1))
    bent = mul(apply(sympy.tanh, matmul(p, q)), q)
    return [remat([p, q], [bent], [a, x])[0], remat([p, q], [matmul(p, q)], [a, x])[0]]


@examples(Scan)
def scan_examples() -> list[Node]:
    """An Elman cell, and a recurrence of scalars."""
    w, u, h = matrix("W", 2, 2), matrix("U", 2, 3), matrix("h", 2, 1)
    x = _array("x", 4, 3, 1)
    (a,), s = scalars("a"), vector("s", 5)
    return [
        scan(lambda c, v: apply(sympy.tanh, add(matmul(w, c), matmul(u, v))), h, [x]),
        scan(lambda c, v: add(mul(a, c), apply(sympy.sin, v)), a, [s]),
    ]
