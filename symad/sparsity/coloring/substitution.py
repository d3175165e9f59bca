"""Decompression of acyclic colorings: the entries along two-colored trees, by substitution.

A vertex w whose neighbors of color c make up the tree of the colors of w and c has in the
compressed matrix the number B[w, c] = Σ H[w, y] over those neighbors y. With a root chosen in every
tree, the entry x(v) between v and its parent obeys

    x(v) = B(v) − Σ_{children u} x(u) = Σ_{u below v} (−1)^(depth u − depth v) B(u),

where B(v) is B[w, c] and v counts as below itself. Either form can be computed:

- *substitution* goes from the leaves up, one array step for each height. Its error is that of sums
  over all entries below an edge, which can exceed a small entry by far when the entries of one tree
  differ by orders of magnitude; direct recovery (star coloring) has no such error.
- *prefix* computes every sum as the difference of two cumulative sums along a depth-first order,
  separately for every subtree of a root: a few array steps for any depth of the trees. Its error is
  that of the whole subtree of the root, and one nan or inf in it invalidates all its entries.

Trees are rooted at their centers, which makes them half as deep. Both are exact on integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symad.core.arrays import Array
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern


@dataclass(frozen=True, eq=False)
class HeightLevel:
    """Nodes of one height: the step x(nodes) = B(nodes), then B(parents) −= x(nodes)."""

    nodes: IntArray
    parents: IntArray


@dataclass(frozen=True, eq=False)
class Batch:
    """Subtrees of about one size, in depth-first order, one in a row and padded at its end.

    With t = signs · B[reads], of shape (count, width), and s the cumulative sums of its rows after
    a leading 0, the entries are ``leading · (s[stops] − s[starts])`` at flat positions in s.
    """

    reads: IntArray
    signs: NDArray[np.int8]
    leading: NDArray[np.int8]
    starts: IntArray
    stops: IntArray


@dataclass(frozen=True, eq=False)
class Forest:
    """All two-colored trees of an acyclic coloring of an n×n symmetric pattern with p colors.

    Attributes:
        reads: flat positions in the n×p compressed matrix of B(v), for each tree node v.
        levels: the nodes that are not roots, by height.
        batches: the nodes that are not roots, in runs for cumulative sums.
        entries: for each stored entry of the pattern its position among the results of
            `substitution`: first x(v) for all tree nodes, then the diagonal.
        batched_entries: likewise for `prefix`: first the batches in turn, then the diagonal.
        diagonal: flat positions of the diagonal entries in the compressed matrix.
    """

    reads: IntArray
    levels: tuple[HeightLevel, ...]
    batches: tuple[Batch, ...]
    entries: IntArray
    batched_entries: IntArray
    diagonal: IntArray

    def substitution(self, compressed: Any) -> Array:
        """The stored entries (..., nnz) from the compressed matrix (..., n, p), leaves first."""
        flat = compressed.reshape((*compressed.shape[:-2], -1))
        x = flat.take(_like(self.reads, flat), axis=-1)
        for level in self.levels:
            where: Any = (..., level.parents)
            np.subtract.at(x, where, x[..., level.nodes])
        diagonal = flat.take(_like(self.diagonal, flat), axis=-1)
        return np.concatenate([x, diagonal], axis=-1).take(_like(self.entries, flat), axis=-1)

    def prefix(self, compressed: Any) -> Array:
        """The stored entries (..., nnz) from the compressed matrix (..., n, p), by prefix sums."""
        lead = compressed.shape[:-2]
        flat = compressed.reshape((*lead, -1))
        parts = []
        for batch in self.batches:
            terms = flat.take(_like(batch.reads, flat), axis=-1) * _like(batch.signs, flat)
            sums = np.pad(terms.cumsum(axis=-1), [(0, 0)] * (len(lead) + 1) + [(1, 0)])
            sums = sums.reshape((*lead, -1))
            above = sums.take(_like(batch.stops, flat), axis=-1)
            parts.append((above - sums.take(_like(batch.starts, flat), axis=-1)) * _like(batch.leading, flat))
        parts.append(flat.take(_like(self.diagonal, flat), axis=-1))
        return np.concatenate(parts, axis=-1).take(_like(self.batched_entries, flat), axis=-1)


def _like(index: np.ndarray, array: Any) -> np.ndarray:
    """An index array of the array library of ``array``."""
    return index if isinstance(array, np.ndarray) else np.asarray(index, like=array)


def forest(pattern: Pattern, colors: IntArray, p: int) -> Forest:
    """The trees of an acyclic coloring (n,) with p colors of a pattern with full diagonal."""
    i, j = pattern.rows, pattern.indices
    off = i != j
    # The tree node (w, c) has the key w p + c, which is also the position of B(v). Entry (i, j) joins
    # the nodes (i, c(j)) and (j, c(i)).
    keys, number = np.unique((i * p + colors[j])[off], return_inverse=True)
    mirrored = number[_mirror(pattern, off)]
    parent, order, height = _rooted(len(keys), number, mirrored)
    batches, place = _batches(keys, parent, order)

    below = parent[number] == mirrored  # the node of (i, j) is the child, else that of (j, i)
    child = np.where(below, number, mirrored)
    entries, batched = np.empty(pattern.nnz, np.int64), np.empty(pattern.nnz, np.int64)
    entries[off], batched[off] = child, place[child]
    n = pattern.shape[0]
    entries[~off] = len(keys) + np.arange(n)
    batched[~off] = sum(len(batch.starts) for batch in batches) + np.arange(n)
    return Forest(keys, _levels(parent, height), batches, entries, batched, np.arange(n) * p + colors)


def _mirror(pattern: Pattern, off: BoolArray) -> IntArray:
    """For each off-diagonal entry (i, j) the position of (j, i) among the off-diagonal entries."""
    position = np.cumsum(off) - 1
    return np.asarray(position[pattern.transposing_order[off]])


def _rooted(count: int, ends: IntArray, others: IntArray) -> tuple[IntArray, list[int], IntArray]:
    """Root every tree at a center: parents (−1 for roots), leaves-first order, heights.

    ``ends`` and ``others`` list every edge in both directions. Leaves are removed in rounds; the
    exclusive or of the remaining neighbors is, at a leaf, its only remaining neighbor.
    """
    left = np.bincount(ends, minlength=count).tolist()
    mixed = np.zeros(count, np.int64)
    np.bitwise_xor.at(mixed, ends, others)
    neighbor = mixed.tolist()
    parent, height = [-1] * count, [0] * count
    order = [v for v in range(count) if left[v] == 1]
    for v in order:
        if left[v] == 0:
            continue  # the last of its tree: the root
        u = parent[v] = neighbor[v]
        height[u] = max(height[u], height[v] + 1)
        neighbor[u] ^= v
        left[u] -= 1
        left[v] = 0
        if left[u] == 1:
            order.append(u)
    return np.array(parent, np.int64), order, np.array(height, np.int64)


def _levels(parent: IntArray, height: IntArray) -> tuple[HeightLevel, ...]:
    below = np.flatnonzero(parent >= 0)
    below = below[np.argsort(height[below], kind="stable")]
    cuts = np.flatnonzero(np.diff(height[below])) + 1
    return tuple(HeightLevel(nodes, parent[nodes]) for nodes in np.split(below, cuts) if len(nodes))


def _batches(reads: IntArray, parent: IntArray, order: list[int]) -> tuple[tuple[Batch, ...], IntArray]:
    """Depth-first runs of the subtrees under the roots, and the position of every node's entry."""
    run, offset, size, sign = _depth_first(parent.tolist(), order)
    lengths = np.bincount(run, minlength=int(run.max(initial=-1)) + 1) if len(run) else run
    place = np.full(len(reads), -1)
    batches: list[Batch] = []
    width, done = 1, 0
    below = np.flatnonzero(parent >= 0)
    while done < len(below):
        fits = (lengths > width // 2) & (lengths <= width)
        row_of = np.cumsum(fits) - 1
        nodes = below[fits[run[below]]]
        if len(nodes):
            row, column = row_of[run[nodes]], offset[nodes]
            shape = (int(fits.sum()), width)
            table, signs = np.zeros(shape, np.int64), np.zeros(shape, np.int8)
            table[row, column], signs[row, column] = reads[nodes], sign[nodes]
            starts = row * (width + 1) + column
            batches.append(Batch(table, signs, sign[nodes], starts, starts + size[nodes]))
            place[nodes] = done + np.arange(len(nodes))
            done += len(nodes)
        width *= 2
    return tuple(batches), place


def _depth_first(
    parent: list[int], order: list[int]
) -> tuple[IntArray, IntArray, IntArray, NDArray[np.int8]]:
    """For each node: its run (a subtree under a root), position in it, subtree size, (−1)^depth."""
    count = len(parent)
    size = [1] * count
    for v in order:
        if parent[v] >= 0:
            size[parent[v]] += size[v]
    run, offset, cursor, sign = [0] * count, [0] * count, [0] * count, [1] * count
    runs = 0
    for v in reversed(order):
        u = parent[v]
        if u < 0:
            continue
        if parent[u] < 0:
            run[v] = runs
            runs += 1
        else:
            run[v], offset[v], sign[v] = run[u], cursor[u], -sign[u]
            cursor[u] += size[v]
        cursor[v] = offset[v] + 1
    runs_, offsets, sizes = (np.array(values, np.int64) for values in (run, offset, size))
    return runs_, offsets, sizes, np.array(sign, np.int8)
