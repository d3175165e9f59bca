"""Elements of a flow in other places, or some of them only: transposes, axes, rows, triangles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from symad.core.graph import Op, op_of
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import MOVED, Spot
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.matching import Change
from symad.verification.mistakes.network import ChainNetwork, along
from symad.verification.mistakes.words import Words


def moved(net: ChainNetwork, places: Sequence[Spot], words: Words) -> Iterator[Change]:
    """Elements of one flow in other places: transposed, reversed, shifted; or only some of them."""
    for place in places:
        shape = lengths(place.node)
        for text, other in movements(place.flow.reshape(len(place.flow), *shape), shape):
            delta = other.reshape(place.flow.shape) - place.flow
            yield Change((MOVED, place.unnamed), f"{place.words}: {text}", net.changed(place.node, delta))
    for source in net.order:
        for edge in net.edges.get(source, ()) if source in net.flow else ():
            if edge.target in net.effect:
                yield from _of_edge(net, edge, words)


def movements(a: Array, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Arrays with their elements in other places, or with some of them; the first axis is that of points."""
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1:
        turned = np.swapaxes(a, 1, 2)
        lower, upper = np.tril(a), np.triu(a)
        diagonal = lower - np.tril(a, -1)
        yield "transposed", turned
        yield "symmetrized", (a + turned) / 2
        yield "the sum with its transpose instead of one half of it", a + turned
        yield "the upper triangle is missing", lower
        yield "the lower triangle is missing", upper
        yield "the lower triangle is doubled and the upper one missing", 2 * lower - diagonal
        yield "the sum with its transpose, less the diagonal", a + turned - diagonal
        yield "the diagonal is halved", a - diagonal / 2
        yield "the diagonal is doubled", a + diagonal
        yield "only the diagonal is there", diagonal
    for axis, length in enumerate(shape):
        if length < 2:
            continue
        where = f" along axis {axis}" if len(shape) > 1 else ""
        yield f"reversed{where}", np.flip(a, axis + 1)
        yield f"shifted by one place{where}", np.roll(a, 1, axis + 1)
        if length > 2:
            yield f"shifted by one place back{where}", np.roll(a, -1, axis + 1)
        yield f"its mean{where} in place of its elements", a.mean(axis + 1, keepdims=True) + 0 * a
        yield f"its sum{where} in place of its elements", a.sum(axis + 1, keepdims=True) + 0 * a
        for place, text in ((0, "first"), (length - 1, "last")):
            kept = np.zeros_like(a)
            index = (slice(None),) * (axis + 1) + (place,)
            kept[index] = a[index]
            yield f"only the {text} of {length} counts{where}", kept


Told = Iterator[tuple[float, str, Array]]
"""The rank and words of a mistake, and what passes along the edge then, points first."""


def _of_edge(net: ChainNetwork, edge: Edge, words: Words) -> Iterator[Change]:
    """What belongs to one op: another axis summed, rows of a table overwritten, a maximum as a sum."""
    source = net.flow[edge.source].reshape(-1, *lengths(edge.source))
    for kind, rule in RULES:
        if isinstance(edge.owner.op, kind):
            for rank, text, other in rule(net, edge, source, words):
                delta = other.reshape(len(source), -1) - net.along(edge)
                yield Change((MOVED, rank), text, net.changed(edge.target, delta))


def _other_axis(net: ChainNetwork, edge: Edge, source: Array, words: Words) -> Told:
    shape, target = source.shape[1:], lengths(edge.target)
    square = target if len(shape) < len(target) else shape
    is_square = len(square) == 2 and square[0] == square[1] > 1
    if len(edge.owner.args) != 1 or not is_square or len(shape) == len(target):
        return
    if len(shape) < len(target):
        other = np.swapaxes(net.along(edge).reshape(-1, *target), 1, 2)
    else:
        other = along(net.matrix[edge], np.swapaxes(source, 1, 2).reshape(len(source), -1))
    told = words.of(edge.owner if isinstance(edge.owner.op, Einsum) else edge.argument)
    yield 0.5, f"wrong axis: the sum of {told}", other


def _one_of_many(net: ChainNetwork, edge: Edge, source: Array, words: Words) -> Told:
    if net.forward or source.ndim - 1 <= len(lengths(edge.target)):
        return
    summed = [k for k in range(source.ndim - 1) if k not in op_of(edge.owner, Broadcast).axes]
    for place, told in ((0, "first"), (-1, "last")):
        part = source
        for axis in sorted(summed, reverse=True):
            part = np.take(part, place, axis + 1)
        yield (
            1.0,
            f"only the {told} of the cotangents of {words.of(edge.argument)} counts, not their sum",
            part,
        )


def _overwritten(net: ChainNetwork, edge: Edge, source: Array, words: Words) -> Told:
    if net.forward or edge.position:
        return
    rows = []
    for k, values in enumerate(net.values):
        kept = np.zeros(lengths(edge.target))
        kept[np.asarray(values[edge.owner.args[1]]).astype(int)] = source[k]
        rows.append(kept)
    told = words.of(edge.argument)
    yield (
        -1.0,
        f"rows of {told} that are read several times count once (np.add.at adds them all)",
        np.stack(rows),
    )


def _factor(net: ChainNetwork, edge: Edge, source: Array, words: Words) -> Told:
    if not net.forward:
        for text, other in _of_cholesky(net.value(edge.owner).reshape(source.shape), source):
            yield -1.0, text, other


def _all_of_an_extreme(net: ChainNetwork, edge: Edge, source: Array, words: Words) -> Told:
    if net.forward:
        return
    op, target = op_of(edge.owner, Extreme), lengths(edge.target)
    spread = source.reshape(len(source), *(1 if k in op.axes else d for k, d in enumerate(target)))
    whole = spread + np.zeros((len(source), *target))
    told, best = words.of(edge.owner), "largest" if op.kind == "max" else "smallest"
    yield -1.0, f"every element counts in {told}, not the {best} alone", whole
    yield -0.9, f"{told} is differentiated as a mean", whole / np.prod([target[k] for k in op.axes])


RULES: tuple[tuple[type[Op], Callable[[ChainNetwork, Edge, Array, Words], Told]], ...] = (
    (Einsum, _other_axis), (Broadcast, _other_axis), (Broadcast, _one_of_many), (Gather, _overwritten),
    (Cholesky, _factor), (Extreme, _all_of_an_extreme),
)  # fmt: skip


def _of_cholesky(L: Array, bar: Array) -> Iterator[tuple[str, Array]]:
    """Wrong A_bar of A = L Lᵀ; right is S = L⁻ᵀ Φ(Lᵀ L_bar) L⁻¹ and its transpose, Φ halves the diagonal."""
    inner = np.swapaxes(L, 1, 2) @ bar
    lower, inverse = np.tril(inner), np.linalg.inv(L)
    diagonal = lower - np.tril(inner, -1)
    for text, middle in (
        ("", lower - diagonal / 2),
        ("Φ does not halve the diagonal", lower),
        ("Φ, the lower triangle with half the diagonal, is missing", inner),
        ("the diagonal of Φ is missing", lower - diagonal),
    ):
        s = np.swapaxes(inverse, 1, 2) @ middle @ inverse
        both = s + np.swapaxes(s, 1, 2)
        forms = [
            ("", np.tril(both) - np.tril(s) + np.tril(s, -1)),
            ("symmetrized", both / 2),
            ("S = L⁻ᵀ Φ L⁻¹ without its transpose", s),
            ("S + Sᵀ, with twice the diagonal", both),
        ]
        for more, other in forms:
            told = ", ".join(t for t in (text, more) if t)
            if told:
                yield f"in the derivative of a Cholesky factor: {told}", other
