"""Conditions, selections, gathered rows and slices in index notation.

A condition is an atom that is 0 or 1, of the difference of what is compared; c² = c. A choice between
two arrays is b + c (a − b). Rows that are gathered are a contraction with S[i, r] = [row r is meant at i],
an atom of the indices; what is scattered is contracted with the same S.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from symad.core.dims import Dim, Shape, same_dim
from symad.core.graph import Node
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.shaping import Pad, Slice
from symad.ops.basic.sources import Iota
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.verification.budget import OutOfBudget
from symad.verification.proof.index_functions import product_form
from symad.verification.proof.index_networks import CHOICE, CONDITION, UNIT, Form, Networks
from symad.verification.proof.index_notation import Forms, Written, dimension_form, index_form


@index_form.dispatch
def iota_index_form(op: Iota, y: Node, args: Forms, networks: Networks) -> Written:
    """0, 1, 2, ...: the same numbers whatever the length."""
    return networks.single(("iota",), y.shape)


@index_form.dispatch
def compare_index_form(op: Compare, y: Node, args: Forms, networks: Networks) -> Written:
    first, second = args
    apart = networks.add([(Fraction(1), first), (Fraction(-1), second)])
    return networks.atom((CONDITION, op.relation), _not_zero(apart), y.shape)


@index_form.dispatch
def logic_index_form(op: Logic, y: Node, args: Forms, networks: Networks) -> Written:
    """And is the product, or is 1 − Π(1 − c), not is 1 − c, xor is a + b − 2ab."""
    one, shapes = networks.constant(1), [a.shape for a in y.args]

    def opposite(form: Form) -> Form:
        return networks.add([(Fraction(1), one), (Fraction(-1), form)])

    if op.kind == "and":
        return product_form(args, shapes, y.shape, networks)
    if op.kind == "not":
        return opposite(args[0])
    if op.kind == "or":
        return opposite(product_form([opposite(a) for a in args], shapes, y.shape, networks))
    if len(args) != 2:
        raise OutOfBudget("an exclusive or of several conditions has no form for all sizes")
    both = product_form(args, shapes, y.shape, networks)
    return networks.add([(Fraction(1), args[0]), (Fraction(1), args[1]), (Fraction(-2), both)])


@index_form.dispatch
def select_index_form(op: Select, y: Node, args: Forms, networks: Networks) -> Written:
    condition, first, second = args
    apart = networks.add([(Fraction(1), first), (Fraction(-1), second)])
    chosen = product_form([condition, apart], [y.args[0].shape, y.shape], y.shape, networks)
    return networks.add([(Fraction(1), second), (Fraction(1), chosen)])


@index_form.dispatch
def gather_index_form(op: Gather, y: Node, args: Forms, networks: Networks) -> Written:
    """y[a..., c...] = Σ_r S[a..., r] table[r, c...]."""
    table, indices = y.args
    at, rest = _labels(indices.shape, table.shape[1:])
    choice = _choice(args[1], indices.shape, table.shape[0], networks)
    return _contracted(networks, [(args[0], ("r", *rest)), (choice, (*at, "r"))], (*at, *rest),
                       indices.shape, table.shape[1:], table.shape[0])  # fmt: skip


@index_form.dispatch
def scatter_index_form(op: ScatterAdd, y: Node, args: Forms, networks: Networks) -> Written:
    """y[r, c...] = Σ_a S[a..., r] u[a..., c...]."""
    indices, updates = y.args
    own = updates.shape[len(indices.shape) :]
    at, rest = _labels(indices.shape, own)
    choice = _choice(args[0], indices.shape, op.size, networks)
    return _contracted(networks, [(args[1], (*at, *rest)), (choice, (*at, "r"))], ("r", *rest),
                       indices.shape, own, op.size)  # fmt: skip


Labels = tuple[tuple[str, int], ...]


def _labels(indices: Shape, rest: Shape) -> tuple[Labels, Labels]:
    return tuple(("a", k) for k in range(len(indices))), tuple(("c", k) for k in range(len(rest)))


def _contracted(networks: Networks, parts: Any, output: Any, indices: Shape, rest: Shape, rows: Dim) -> Form:
    at, inner = _labels(indices, rest)
    dims: dict[Hashable, Dim] = {
        "r": rows,
        **dict(zip(at, indices, strict=True)),
        **dict(zip(inner, rest, strict=True)),
    }
    return networks.contract(parts, output, dims)


def _choice(form: Form, shape: Shape, rows: Dim, networks: Networks) -> Form:
    """S[a..., r] for some indices; its last axis is that of the rows."""
    counted = networks.add([(Fraction(1), form), (Fraction(1), networks.constant(1))])  # from 1: no zero
    (((_, network),)) = networks.atom((CHOICE, rows), _not_zero(counted), shape)
    ((atom, at, _),) = network.factors
    last = UNIT if rows == 1 else len(shape)
    return networks.simplify(Fraction(1), [(atom, (*at, last), Fraction(1))], {})


def _not_zero(form: Form) -> Form:
    if not form:
        raise OutOfBudget("a condition on 0 has no form for all sizes")
    return form


# ---- slices -------------------------------------------------------------------------------------


@index_form.dispatch
def slice_index_form(op: Slice, y: Node, args: Forms, networks: Networks) -> Written:
    """Along each axis Σ_r S[i, r] x[r] with S of the places start + step i."""
    return _sliced(networks, args[0], op.start, op.step, y.shape, y.args[0].shape, taken=True)


@index_form.dispatch
def pad_index_form(op: Pad, y: Node, args: Forms, networks: Networks) -> Written:
    """Along each axis Σ_i S[i, r] x[i]."""
    return _sliced(networks, args[0], op.start, op.step, y.args[0].shape, y.shape, taken=False)


def _sliced(
    networks: Networks, form: Form, start: Sequence[Dim], step: Sequence[int], few: Shape, all_: Shape,
    taken: bool,
) -> Form:  # fmt: skip
    """A slice with the shape ``few`` of an array with the shape ``all_``, or the transpose of this."""
    inner, outer, parts, dims = list[Any](), list[Any](), list[Any](), dict[Any, Dim]()
    for k, (first, by, count, rows) in enumerate(zip(start, step, few, all_, strict=True)):
        i, r = ("i", k), ("r", k)
        dims |= {i: count, r: rows}
        if same_dim(count, rows) and first == 0 and by == 1:
            i = r
        else:
            places = networks.add([
                (Fraction(1), dimension_form(first, networks)),
                (Fraction(by), networks.single(("iota",), (count,))),
            ])  # fmt: skip
            parts.append((_choice(places, (count,), rows, networks), (i, r)))
        inner.append(r if taken else i)
        outer.append(i if taken else r)
    return networks.contract([(form, inner), *parts], outer, dims)
