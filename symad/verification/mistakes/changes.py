"""The mistakes that are tried, the simple ones first: each is a change of one place of the chain rule.

A place is the flow of a node, or what one edge adds to a node that has several; see `network`. Whole derivatives
are changed in `whole`, and values that are confused with one another in `confused`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Node
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme
from symad.ops.arrays.shaping import Broadcast, ShapingOp
from symad.ops.arrays.sources import Constant, Source
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.certificate.domain_repair import DEPTH, signature
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.matching import Change
from symad.verification.mistakes.network import Network, along
from symad.verification.mistakes.words import Words

MAX_PLACES = 400
"""The maximum number of places that are looked at."""

MAX_FACTORS = 60
"""The maximum number of values that may be forgotten, or be extra, as a factor of one place."""

MAX_RUNS = 60_000
"""The maximum number of edges in all sweeps through the network together."""

MAX_TOGETHER = 8
"""The maximum number of values of which two are left out together."""

PATH, SLOPE, SCALED, EDGE, MOVED, FACTOR, CONFUSED, EXTRA = range(2, 10)
"""Ranks of mistakes; whole derivatives have 0 and 1."""


@dataclass(frozen=True, eq=False)
class Place:
    """A flow, or a part of one."""

    node: Node
    """The node to whose flow it belongs."""
    flow: Array
    words: str
    unnamed: float
    """0 if its words are names that the user gave: these mistakes are told first."""
    edge: Edge | None = None


def places_of(net: Network, words: Words) -> list[Place]:
    """The flows of all nodes, and the parts of those that have several."""
    ends = {*net.last} if not net.forward else {*net.first}
    found = []
    for node in net.order:
        if node in net.flow and node in net.effect and node not in ends:
            told = f"the path through {words.path(node)}"
            found.append(Place(node, net.flow[node], told, words.distance(node)))
    into: dict[Node, list[Edge]] = {}
    for source in net.order:
        for edge in net.edges.get(source, ()):
            if source in net.flow and edge.target in net.effect:
                into.setdefault(edge.target, []).append(edge)
    for part in into.values():
        for edge in part if len(part) > 1 else ():
            told = f"the path from {words.of(edge.argument)} to {words.path(edge.owner)}"
            unnamed = words.distance(edge.argument) + words.distance(edge.owner)
            found.append(Place(edge.target, net.along(edge), told, unnamed, edge))
    return found[:MAX_PLACES]


def missing_paths(net: Network, places: Sequence[Place]) -> Iterator[Change]:
    """One path that is left out, or has another factor."""
    for place in places:
        effect = -net.changed(place.node, place.flow)
        rank = PATH if place.edge is None else EDGE
        yield Change((rank, place.unnamed), f"{place.words} is missing", effect)
        yield Change((SCALED, rank, place.unnamed), "", effect, f"{{}} of {place.words}")


def paths_counted_twice(net: Network, places: Sequence[Place]) -> Iterator[Change]:
    """Of two paths into one node the first counts twice, the second not: 2 A x in place of (A + Aᵀ) x; of several
    one alone counts: `=` in place of `+=`."""
    into: dict[Node, list[Place]] = {}
    for place in places:
        if place.edge is not None:
            into.setdefault(place.node, []).append(place)
    for node, pair in into.items():
        for first, second in (pair, pair[::-1]) if len(pair) == 2 else ():
            text = f"{first.words} counts twice, and {second.words.removeprefix('the path ')} is missing"
            effect = net.changed(node, first.flow - second.flow)
            yield Change((EDGE, 2.0, first.unnamed + second.unnamed), text, effect)
        for one in pair if len(pair) > 2 else ():
            text = f"only {one.words} counts, of {len(pair)} that are added"
            rest = sum(other.flow for other in pair if other is not one)
            yield Change((EDGE, 3.0, one.unnamed), text, net.changed(node, -np.asarray(rest)))


def several_paths(net: Network, words: Words) -> Iterator[Change]:
    """Several paths that are left out together: those of a loop's steps, or all statistics."""
    right, done = net.result, 0
    cost = sum(map(len, net.edges.values())) or 1
    groups: dict[Hashable, list[Node]] = {}
    inner = [n for n in net.order if n in net.flow and n not in {*net.last, *net.first}]
    for node in inner:
        for depth in (DEPTH, 1):
            groups.setdefault((depth, signature(node, depth)), []).append(node)
    statistics = [n for n in inner if _is_statistic(n, net)]
    sets = [statistics] if len(statistics) > 1 else []
    chosen = [n for n in inner if words.is_named(n) or n in statistics]
    distinct: dict[str, Node] = {}
    for node in chosen:
        distinct.setdefault(words.path(node), node)
    few = list(distinct.values())[:MAX_TOGETHER]
    loops = list({tuple(group): group for group in groups.values() if len(group) > 1}.values())
    for nodes in [*sets, *([a, b] for a, b in combinations(few, 2))]:
        done += cost
        if done > MAX_RUNS:
            return
        told = sorted({words.path(n) for n in nodes}, key=lambda t: (len(t), t))
        both = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
        text = f"the paths through {both} are missing"
        unnamed = float(not all(map(words.is_named, nodes)))
        yield Change((PATH, 2.0, unnamed), text, net.collected(net.run(dict.fromkeys(nodes, 0.0))) - right)
    for nodes in loops:
        for factor, text in ((0.0, "{} is missing"), (-1.0, "wrong sign of {}"), (0.5, "missing factor 2 of {}")):
            done += cost
            if done > MAX_RUNS:
                return
            told = f"the path through {words.path(nodes[-1])}, in each of {len(nodes)} places"
            made = net.collected(net.run(dict.fromkeys(nodes, factor))) - right
            yield Change((PATH if not factor else SCALED, 3.0, factor), text.format(told), made)


def _is_statistic(node: Node, net: Network) -> bool:
    """Whether a node is computed of sums, is smaller than what it is used with, and is repeated."""
    edges = net.edges.get(node, ()) if net.forward else [e for s in net.order for e in net.edges.get(s, ())
                                                         if e.target is node]  # fmt: skip
    return any(isinstance(e.owner.op, Broadcast) for e in edges) and not isinstance(node.op, (Source, ShapingOp))


# ---- moved elements -----------------------------------------------------------------------------


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
    """Arrays with the same elements in other places, or with some of them; the first axis is that of points."""
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1:
        turned = np.swapaxes(a, 1, 2)
        lower, upper = np.tril(a), np.triu(a)
        diagonal = lower - np.tril(a, -1)
        yield "transposed", turned
        yield "symmetrised", (a + turned) / 2
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
    """What belongs to one op: another axis summed, elements of a table overwritten, all elements of a maximum."""
    op, source = edge.owner.op, net.flow[edge.source]
    shape, target = lengths(edge.source), lengths(edge.target)
    points = len(source)
    if isinstance(op, (Einsum, Broadcast)) and len(edge.owner.args) == 1:
        square = target if len(shape) < len(target) else shape
        if len(square) == 2 and square[0] == square[1] > 1 and len(shape) != len(target):
            if len(shape) < len(target):
                other = np.swapaxes(net.along(edge).reshape(points, *target), 1, 2).reshape(points, -1)
            else:
                turned = np.swapaxes(source.reshape(points, *shape), 1, 2).reshape(points, -1)
                other = along(net.matrix[edge], turned)
            text = f"wrong axis: the sum of {words.of(edge.owner if isinstance(op, Einsum) else edge.argument)}"
            yield Change((MOVED, 0.5), text, net.changed(edge.target, other - net.along(edge)))
        if isinstance(op, Broadcast) and not net.forward and len(shape) > len(target):
            summed = [k for k in range(len(shape)) if k not in op.axes]
            for first in (0, -1):
                part = source.reshape(points, *shape)
                for axis in sorted(summed, reverse=True):
                    part = np.take(part, first, axis + 1)
                told = f"only the {'first' if first == 0 else 'last'} row counts, not the sum over the rows, of"
                text = f"{told} the cotangents of {words.of(edge.argument)}"
                yield Change((MOVED, 1.0), text, net.changed(edge.target, part.reshape(points, -1) - net.along(edge)))
    if isinstance(op, Gather) and not net.forward and edge.position == 0:
        rows = []
        for k, values in enumerate(net.values):
            kept = np.zeros(target)
            indices = np.asarray(values[edge.owner.args[1]]).astype(int)
            kept[indices] = source[k].reshape(shape)
            rows.append(kept.ravel())
        text = f"rows of {words.of(edge.argument)} that are read several times count once (np.add.at adds them all)"
        yield Change((MOVED, -1.0), text, net.changed(edge.target, np.stack(rows) - net.along(edge)))
    if isinstance(op, Cholesky) and not net.forward:
        for text, other in _of_cholesky(net.value(edge.owner).reshape(points, *shape), source.reshape(points, *shape)):
            yield Change((MOVED, -1.0), text, net.changed(edge.target, other.reshape(points, -1) - net.along(edge)))
    if isinstance(op, Extreme) and not net.forward:
        rank = [k for k in range(len(target)) if k not in op.axes]
        spread = source.reshape(points, *[target[k] if k in rank else 1 for k in range(len(target))])
        whole = (spread + np.zeros((points, *target))).reshape(points, -1)
        count = int(np.prod([target[k] for k in op.axes]))
        told = words.of(edge.owner)
        yield Change((MOVED, -1.0), f"every element counts in {told}, not the largest alone" if op.kind == "max"
                     else f"every element counts in {told}, not the smallest alone",
                     net.changed(edge.target, whole - net.along(edge)))  # fmt: skip
        yield Change((MOVED, -0.9), f"{told} is differentiated as a mean",
                     net.changed(edge.target, whole / count - net.along(edge)))  # fmt: skip


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
        forms = (("", np.tril(both) - np.tril(s) + np.tril(s, -1)), ("symmetrised", both / 2),
                 ("S = L⁻ᵀ Φ L⁻¹ without its transpose", s), ("S + Sᵀ, with twice the diagonal", both))  # fmt: skip
        for more, other in forms:
            told = ", ".join(t for t in (text, more) if t)
            if told:
                yield f"in the derivative of a Cholesky factor: {told}", other


# ---- factors and terms --------------------------------------------------------------------------


def wrong_factors(net: Network, places: Sequence[Place], words: Words) -> Iterator[Change]:
    """A value that is forgotten, or extra, as a factor of one place."""
    values: dict[tuple[int, ...], list[tuple[Node, Array]]] = {}
    for node in net.values[0]:
        if not isinstance(node.op, Source) or not isinstance(node.op, Constant):
            if np.asarray(net.values[0][node]).dtype.kind == "f":
                values.setdefault(lengths(node), []).append((node, net.value(node)))
    for place in places:
        shape = lengths(place.node)
        near = [*values.get(shape, ()), *(values.get((), ()) if shape else ())]
        for node, value in near[-MAX_FACTORS:]:
            unnamed = (0.0 if words.is_named(node) else 1.0, place.unnamed, float(len(words.of(node))))
            with np.errstate(all="ignore"):
                for word, factor in (("missing", 1 / value), ("extra", value)):
                    delta = place.flow * (factor - 1)
                    told = words.of(node)
                    if told.startswith("1/sigmoid"):
                        word, told = {"missing": "extra", "extra": "missing"}[word], told.removeprefix("1/")
                    text = f"{word} factor {told} of {place.words}"
                    yield Change((FACTOR, *unnamed), text, net.changed(place.node, delta))


def extra_terms(net: Network, words: Words) -> Iterator[Change]:
    """A flow of the shape of the result that is added to it."""
    for end in net.last:
        for node, flow in net.flow.items():
            if node.shape == end.shape and node is not end:
                effect = net.changed(end, flow)
                for sign in ("extra", "subtracted"):
                    told = "cotangent" if not net.forward else "tangent"
                    text = f"an {sign} term: the {told} of {words.of(node)}" if sign == "extra" else (
                        f"the {told} of {words.of(node)} is subtracted")  # fmt: skip
                    yield Change((EXTRA, 1.0), text, effect if sign == "extra" else -effect)
