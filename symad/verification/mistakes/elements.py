"""Elements of a flow in other places, or some of them only: transposes, axes, rows, triangles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import MOVED, Place
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.matching import Change
from symad.verification.mistakes.network import Network, along
from symad.verification.mistakes.words import Words


def moved(net: Network, places: Sequence[Place], words: Words) -> Iterator[Change]:
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


def _of_edge(net: Network, edge: Edge, words: Words) -> Iterator[Change]:
    """What belongs to one op: another axis summed, rows of a table overwritten, a maximum as a sum."""
    op, source = edge.owner.op, net.flow[edge.source]
    shape, target = lengths(edge.source), lengths(edge.target)
    points = len(source)

    def change(rank: float, text: str, other: Array) -> Change:
        return Change(
            (MOVED, rank), text, net.changed(edge.target, other.reshape(points, -1) - net.along(edge))
        )

    if isinstance(op, (Einsum, Broadcast)) and len(edge.owner.args) == 1:
        square = target if len(shape) < len(target) else shape
        if len(square) == 2 and square[0] == square[1] > 1 and len(shape) != len(target):
            if len(shape) < len(target):
                other = np.swapaxes(net.along(edge).reshape(points, *target), 1, 2).reshape(points, -1)
            else:
                turned = np.swapaxes(source.reshape(points, *shape), 1, 2).reshape(points, -1)
                other = along(net.matrix[edge], turned)
            told = words.of(edge.owner if isinstance(op, Einsum) else edge.argument)
            yield change(0.5, f"wrong axis: the sum of {told}", other)
        if isinstance(op, Broadcast) and not net.forward and len(shape) > len(target):
            summed = [k for k in range(len(shape)) if k not in op.axes]
            for first in (0, -1):
                part = source.reshape(points, *shape)
                for axis in sorted(summed, reverse=True):
                    part = np.take(part, first, axis + 1)
                told = "first" if first == 0 else "last"
                text = f"only the {told} of the cotangents of {words.of(edge.argument)} counts, not their sum"
                yield change(1.0, text, part)
    if isinstance(op, Gather) and not net.forward and edge.position == 0:
        rows = []
        for k, values in enumerate(net.values):
            kept = np.zeros(target)
            indices = np.asarray(values[edge.owner.args[1]]).astype(int)
            kept[indices] = source[k].reshape(shape)
            rows.append(kept.ravel())
        told = words.of(edge.argument)
        text = f"rows of {told} that are read several times count once (np.add.at adds them all)"
        yield change(-1.0, text, np.stack(rows))
    if isinstance(op, Cholesky) and not net.forward:
        L = net.value(edge.owner).reshape(points, *shape)
        for text, other in _of_cholesky(L, source.reshape(points, *shape)):
            yield change(-1.0, text, other)
    if isinstance(op, Extreme) and not net.forward:
        rank = [k for k in range(len(target)) if k not in op.axes]
        spread = source.reshape(points, *[target[k] if k in rank else 1 for k in range(len(target))])
        whole = spread + np.zeros((points, *target))
        count = int(np.prod([target[k] for k in op.axes]))
        told = words.of(edge.owner)
        best = "largest" if op.kind == "max" else "smallest"
        yield change(-1.0, f"every element counts in {told}, not the {best} alone", whole)
        yield change(-0.9, f"{told} is differentiated as a mean", whole / count)


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
