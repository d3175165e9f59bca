"""Elements of a flow in other places, or some of them only: transposes, axes, rows, triangles; wrong entries.

Jacobians and Hessians may be right but for some entries or blocks; a function may lack inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, pairwise, product

import numpy as np

from symad.core.graph import Graph, Node, Op, op_of
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Input, inputs_in, symbol_of
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import MOVED, Spot
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.network import TOLD, ChainNetwork, Change, Difference, along
from symad.verification.mistakes.words import Words, factor_of


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


# ---- Jacobians and Hessians that are right but for some entries or blocks ------------------------


MAX_TOLD = 4
"""The maximum number of entries that are listed."""


def without_input(function: Graph, node: Node) -> str:
    """That the function does not depend on an input; empty if it may."""
    inside = inputs_in(function.output_nodes)
    if node in inside:
        return ""
    others = ", ".join(dict.fromkeys(str(symbol_of(n)) for n in inside))
    told = f"{function.name} does not depend on {symbol_of(node)}" + (f", but on {others}" if others else "")
    return f"it should be zero: {told}"


def owners(nodes: Sequence[Node]) -> list[Node]:
    """For each row or column of a matrix the node to whose element it belongs."""
    return [n for n in nodes for _ in range(int(np.prod(lengths(n))))]


def of_matrix(
    difference: Difference, rows: Sequence[Node], columns: Sequence[Node], each: Collection[tuple[int, ...]]
) -> str:
    """What is wrong in a matrix whose rows and columns are the elements of some nodes, in order.

    ``each`` are the entries that are known to be wrong, if there is a verdict on each.
    """
    sizes = [[int(np.prod(lengths(n))) for n in nodes] for nodes in (rows, columns)]
    shape = sum(sizes[0]), sum(sizes[1])
    (part,) = difference.parts
    floor = difference.floor(part)
    apart = np.abs(difference.of(part))
    differs, unsure = ((apart > k * floor).any(axis=0).reshape(shape) for k in (TOLD, 1))
    seen = {tuple(place) for place in np.argwhere(differs).tolist()}
    if not seen or (each and seen != set(each)) or (unsure & ~differs).any():
        return ""  # what is close to rounding is no entry that agrees
    right, found = (v.reshape(-1, *shape) for v in (difference.right, difference.found))
    allowed = floor[:, :, None]
    whole = (name for name, c in _changed(right, found) if np.all(np.abs(found - c) <= TOLD * allowed))
    return (
        next(whole, "")
        or _of_blocks(right, found, differs, allowed, [rows, columns], sizes)
        or _of_entries(right, found, differs, allowed)
    )


def _of_blocks(
    right: Array,
    found: Array,
    differs: Array,
    allowed: Array,
    nodes: Sequence[Sequence[Node]],
    sizes: Sequence[Sequence[int]],
) -> str:
    """The blocks that differ, if there are several blocks and each that differs has one name."""
    ends = [list(pairwise(accumulate(s, initial=0))) for s in sizes]
    blocks, told = list(product(*(range(len(s)) for s in sizes))), dict[tuple[int, int], str]()
    for i, j in blocks:
        at = slice(*ends[0][i]), slice(*ends[1][j])
        if differs[at].any():
            a, b = right[(slice(None), *at)], found[(slice(None), *at)]
            fitting = (name for name, c in _changed(a, b) if np.all(np.abs(b - c) <= TOLD * allowed))
            told[i, j] = next(fitting, "") if a[0].size > 1 else ""
    names = set(told.values())
    if len(names) != 1 or "" in names or len(told) == len(blocks):
        return ""
    (name,) = names
    labels = [f"({_name(nodes[0][i], i)}, {_name(nodes[1][j], j)})" for i, j in told]
    return f"{name} in {_listed(labels, ('block', 'blocks'))}; {_others(len(blocks) - len(told))}"


def _name(node: Node, k: int) -> str:
    """An input by its name, an output by its number."""
    return str(symbol_of(node)) if isinstance(node.op, Input) else f"output {k}"


def _changed(right: Array, found: Array) -> Iterator[tuple[str, Array]]:
    """Blocks with a mistake, points first."""
    rows, columns = right.shape[1:]
    if min(rows, columns) > 1:
        yield "transposed", np.swapaxes(right, 1, 2).reshape(right.shape)
    yield from _scaled(right, found)


def _scaled(right: Array, found: Array) -> Iterator[tuple[str, Array]]:
    """Entries with another factor, all with the same one."""
    size = float(np.sum(right * right))
    scale = float(np.sum(right * found)) / size if size else 0.0
    if size and abs(scale) < 1e-7:
        yield "it should not be zero", 0 * right
    elif size and (factor := factor_of(scale)):
        yield "wrong sign" if factor == "-1" else f"missing factor {factor}", scale * right
    elif not size:
        yield "it should be zero", found


def _of_entries(right: Array, found: Array, differs: Array, allowed: Array) -> str:
    """The entries that differ, if they are few."""
    places, count = np.argwhere(differs), differs.size
    if len(places) > MAX_TOLD or 2 * len(places) >= count:
        return ""
    a, b = right[:, differs], found[:, differs]
    names = (name for name, c in _scaled(a, b) if np.all(np.abs(b - c) <= TOLD * allowed[:, :, 0]))
    labels = [f"({', '.join(map(str, place))})" for place in places.tolist()]
    which, rest = _listed(labels, ("entry", "entries")), _others(count - len(places))
    if name := next(names, ""):
        return f"{name} in {which}; {rest}"
    return f"{which} differ{'s' * (len(places) == 1)}, {rest}"


def _listed(labels: Sequence[str], words: tuple[str, str]) -> str:
    """The labels of what differs."""
    several = len(labels) > 1
    return f"{words[several]} " + (f"{', '.join(labels[:-1])} and " * several) + labels[-1]


def _others(count: int) -> str:
    return f"the other {count} agree" if count > 1 else "the other one agrees"
