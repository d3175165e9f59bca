"""Identities between matrix expressions of any size, proved in index notation.

A graph becomes a sum of contraction networks over its inputs, identity matrices, inverses,
determinants and elementwise functions; see `networks`, `index_functions` and `index_linalg`. Two graphs
with the same normal form are equal for all values of their dimension symbols.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from symad.core.dims import Dim, same_dim
from symad.core.graph import Node, Op
from symad.core.questions import question
from symad.ops.arrays.stacking import Stack
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Constant, Dimension, Eye, Input
from symad.verification.budget import OutOfBudget
from symad.verification.proof.index_networks import DELTA, Form, Network, Networks
from symad.verification.terms.linear_terms import number

if TYPE_CHECKING:
    Written = Form
    Forms = tuple[Form, ...]
else:  # plum dispatches on the op alone, and converts no return values
    Written = Forms = Any


@question
def index_form(op: Op, y: Node, args: Forms, networks: Networks) -> Written:
    """``y = op(...)`` as a sum of contraction networks, from the forms of its arguments."""


@index_form.dispatch
def no_index_form(op: Op, y: Node, args: Forms, networks: Networks) -> Written:
    raise OutOfBudget(f"{type(op).__name__} has no form for all sizes")


@index_form.dispatch
def input_index_form(op: Input, y: Node, args: Forms, networks: Networks) -> Written:
    return networks.single(("input", op.symbol, y.shape), y.shape)


@index_form.dispatch
def constant_index_form(op: Constant, y: Node, args: Forms, networks: Networks) -> Written:
    value = number(y)
    if value is None:
        return networks.single(("constant", op.kind, op.value), ())
    return networks.constant(value)


@index_form.dispatch
def dimension_index_form(op: Dimension, y: Node, args: Forms, networks: Networks) -> Written:
    return dimension_form(op.expression, networks)


def dimension_form(dim: Dim, networks: Networks) -> Form:
    """A polynomial in the dimension symbols."""
    total: Form = []
    for term in sympy.Add.make_args(sympy.expand(dim)):
        scale, rest = term.as_coeff_Mul()
        powers = rest.as_powers_dict().items() if rest != 1 else []
        factors = tuple((("dim", base), (), Fraction(int(e))) for base, e in powers)
        if scale:
            total.append((Fraction(int(scale.p), int(scale.q)), Network(factors, {})))
    return networks.collect(total)


@index_form.dispatch
def eye_index_form(op: Eye, y: Node, args: Forms, networks: Networks) -> Written:
    return networks.single(DELTA, y.shape)


@index_form.dispatch
def add_index_form(op: Add, y: Node, args: Forms, networks: Networks) -> Written:
    return networks.add([(Fraction(s), form) for s, form in zip(op.signs, args, strict=True)])


@index_form.dispatch
def einsum_index_form(op: Einsum, y: Node, args: Forms, networks: Networks) -> Written:
    dims = {
        label: dim
        for labels, arg in zip(op.inputs, y.args, strict=True)
        for label, dim in zip(labels, arg.shape, strict=True)
    }
    return networks.contract(list(zip(args, op.inputs, strict=True)), op.output, dims)


@index_form.dispatch
def broadcast_index_form(op: Broadcast, y: Node, args: Forms, networks: Networks) -> Written:
    """Repeated axes do not occur in the form."""
    return networks.permuted(args[0], op.axes)


@index_form.dispatch
def reshape_index_form(op: Reshape, y: Node, args: Forms, networks: Networks) -> Written:
    """Axes of length 1 come and go; anything else has no form."""
    old = [k for k, dim in enumerate(y.args[0].shape) if dim != 1]
    new = [k for k, dim in enumerate(y.shape) if dim != 1]
    matched = len(old) == len(new) and all(
        same_dim(y.args[0].shape[i], y.shape[j]) for i, j in zip(old, new, strict=True)
    )
    if not matched:
        raise OutOfBudget("reshaping has no form for all sizes")
    moved = dict(zip(old, new, strict=True))
    return [
        (
            c,
            Network(
                tuple((atom, tuple(moved.get(i, i) for i in at), e) for atom, at, e in network.factors),
                network.dims,
            ),
        )
        for c, network in args[0]
    ]


@index_form.dispatch
def stack_index_form(op: Stack, y: Node, args: Forms, networks: Networks) -> Written:
    """A new axis of length 1 has no index."""
    if len(args) > 1:
        raise OutOfBudget("stacks of several arrays have no form for all sizes")
    rank = len(y.args[0].shape)
    return networks.permuted(args[0], [k if k < op.axis else k + 1 for k in range(rank)])
