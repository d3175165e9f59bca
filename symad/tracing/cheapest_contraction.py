"""Sums of products of arrays whose axes have labels, contracted two at a time in a cheap order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Dim
from symad.core.graph import Node
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant

Label = Hashable
NOMINAL = 100
"""The number that is put for a symbolic dimension when the order of a contraction is chosen."""


@dataclass(frozen=True)
class Labeled:
    """An array with a label for each axis; a label may occur twice (a diagonal)."""

    node: Node
    labels: tuple[Label, ...] = ()


def contract_all(factors: Sequence[Labeled], output: Sequence[Label]) -> Node:
    """Σ over all labels not in ``output`` of the product of the factors.

    Two factors at a time, in the greedy order of `numpy.einsum_path`; labels that only one factor has
    are summed out of it first.
    """
    sizes: dict[Label, Dim] = {
        label: dim for f in factors for label, dim in zip(f.labels, f.node.shape, strict=True)
    }
    scalars = [f.node for f in factors if not f.labels]
    rest = [f for f in factors if f.labels]
    if not rest:
        return mul(*scalars) if scalars else constant(1)
    rest = [_reduced(f, _needed(rest, k, output)) for k, f in enumerate(rest)]
    for step in _path(rest, output, sizes) if len(rest) > 2 else ():
        chosen = [rest[k] for k in sorted(step)]
        rest = [f for k, f in enumerate(rest) if k not in step]
        wanted = {label for f in rest for label in f.labels} | set(output)
        done = chosen[0]
        for k, factor in enumerate(chosen[1:], 2):
            later = {label for f in chosen[k:] for label in f.labels}
            done = _pair(done, factor, wanted | later, sizes)
        rest.append(done)
    result = _final(rest, output, sizes)
    return mul(*scalars, result) if scalars else result


def _path(
    factors: Sequence[Labeled], output: Sequence[Label], sizes: dict[Label, Dim]
) -> list[tuple[int, ...]]:
    """The factors to join, step by step; a joined factor is appended at the end."""
    numbers = {label: k for k, label in enumerate(sizes)}
    arguments: list[np.ndarray | list[int]] = []
    for factor in factors:
        arguments.append(np.broadcast_to(0.0, [_nominal(sizes[label]) for label in factor.labels]))
        arguments.append([numbers[label] for label in factor.labels])
    known = {label for f in factors for label in f.labels}
    arguments.append([numbers[label] for label in output if label in known])
    return np.einsum_path(*arguments, optimize="greedy")[0][1:]


def _nominal(dim: Dim) -> int:
    if isinstance(dim, int):
        return dim
    return max(1, int(dim.subs(dict.fromkeys(dim.free_symbols, NOMINAL))))


def _needed(factors: Sequence[Labeled], k: int, output: Sequence[Label]) -> set[Label]:
    """The labels of a factor that occur elsewhere too."""
    elsewhere = {label for j, f in enumerate(factors) if j != k for label in f.labels}
    return elsewhere | set(output)


def _reduced(factor: Labeled, needed: set[Label]) -> Labeled:
    """A factor whose diagonals are taken and whose private labels are summed, if it has any."""
    kept = tuple(dict.fromkeys(label for label in factor.labels if label in needed))
    if kept == factor.labels:
        return factor
    return Labeled(contract([factor.labels], kept, factor.node), kept)


def _pair(a: Labeled, b: Labeled, wanted: set[Label], sizes: dict[Label, Dim]) -> Labeled:
    """Two factors joined; labels that are not wanted are summed."""
    kept = tuple(x for x in dict.fromkeys((*a.labels, *b.labels)) if x in wanted)
    return Labeled(_final([a, b], kept, sizes), kept)


def _final(factors: Sequence[Labeled], output: Sequence[Label], sizes: dict[Label, Dim]) -> Node:
    """One or two factors, summed to the output labels; an elementwise product if nothing is summed."""
    labels = [f.labels for f in factors]
    joint = {label for part in labels for label in part}
    if len(factors) == 2 and joint == set(output) and max(map(len, labels)) == len(output):
        return mul(*(aligned(f, output, sizes) for f in factors))
    kept = [label for label in output if label in joint]
    result = contract(labels, kept, *(f.node for f in factors))
    return aligned(Labeled(result, tuple(kept)), output, sizes)


def aligned(value: Labeled, labels: Sequence[Label], sizes: dict[Label, Dim]) -> Node:
    """The array with its axes in the order of ``labels``, repeated along the labels that it lacks.

    A value without labels stays a scalar: scalars can be combined with arrays of any shape.
    """
    if not value.labels or tuple(value.labels) == tuple(labels):
        return value.node
    own = [label for label in labels if label in value.labels]
    ordered = contract([value.labels], own, value.node)
    return broadcast_axes(
        ordered,
        tuple(sizes[label] for label in labels),
        [k for k, x in enumerate(labels) if x in own],
    )
