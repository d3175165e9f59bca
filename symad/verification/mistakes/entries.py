"""Jacobians and Hessians that are right but for some entries or blocks; inputs that a function lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise, product

import numpy as np

from symad.core.graph import Graph, Node, topological
from symad.ops.basic.sources import Input, symbol_of
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.local import lengths
from symad.verification.mistakes.matching import TOLD, Difference
from symad.verification.mistakes.words import factor_of

MAX_TOLD = 4
"""The maximum number of entries that are listed."""


def without_input(function: Graph, node: Node) -> str:
    """That the function does not depend on an input; empty if it may."""
    inside = [n for n in topological(function.output_nodes) if isinstance(n.op, Input)]
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
