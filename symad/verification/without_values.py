"""Claims about functions without a real value anywhere: every derivative would be correct; none is certified.

log(−1 − x²) is not a function on the real line, nor is 1/h for an h that is 0 by an identity. So an element
is decided only if a point is found at which the function and both sides of the claim have values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.core.process import without_collecting
from symad.evaluation.value_ranges import promised
from symad.ops.basic.sources import input_node, inputs_in
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import sqrt
from symad.verification.certificate.certificate import Entry
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.user_rules import is_users
from symad.verification.terms.depending import depending
from symad.verification.values.domains import may_lack_values, nowhere
from symad.verification.values.find_values import MOST_ELEMENTS, is_too_large, places, valued
from symad.verification.values.ranges import domain_margins, given_numbers

NOT_INSIDE = (
    "an empty claim: no open set of points was found on which where= holds and the function has values"
)
NO_VALUE = "an empty claim: no point was found at which it has a real value"

MAX_ELEMENTS = 1 << 18
"""The maximum number of elements of an array in a claim. With 100,000 the work allowed is used up in 25 s."""


def is_fixed(node: Node) -> bool:
    """Whether the sizes of a node are numbers."""
    return all(isinstance(d, int) for d in node.shape)


def largest(nodes: Iterable[Node]) -> int:
    """The number of elements of the largest array below some nodes whose size is a number."""
    return max((prod(n.shape) for n in topological(nodes) if is_fixed(n)), default=0)


def claimed_of(
    sides: Sequence[Node],
    function: Sequence[Node],
    kind: str,
    output: int | None,
    domain: Node | None,
    fixed: Collection[sympy.Symbol] = (),
) -> Claimed:
    """What has to have values for a claim about some outputs, or a single one, on a domain.

    It may give numbers to the parameters ``fixed``.
    """
    if kind == "pushforward" and output is not None:
        function = function[output : output + 1]
    inside = () if domain is None else tuple(sqrt(margin) for margin in domain_margins(domain))
    nodes = rebuild((*sides, *function, *inside), given_numbers(domain, fixed))
    return Claimed(nodes, len(sides) // 2, kind, len(inside))


@dataclass(frozen=True)
class Claimed:
    """The outputs of a claim of equality; for a claim about a derivative, with the function."""

    nodes: tuple[Node, ...]
    """The nodes that must have values: the left sides, the right sides, the function."""
    count: int
    """The number of outputs."""
    kind: str = "value"
    also: int = 0
    """The last so many nodes have a value where the claim is made."""

    def combined(self, found: Sequence[Array]) -> list[Array]:
        """For each output the elements that have values, from those of the nodes."""
        count, last = self.count, len(found) - self.also
        left, right, function = found[:count], found[count : 2 * count], found[2 * count : last]
        inside = all(bool(f.all()) for f in found[last:])
        return [
            inside & a & b & self.has_function(function, a.shape, k)
            for k, (a, b) in enumerate(zip(left, right, strict=True))
        ]

    def nothing(self) -> list[Array]:
        """Flags that say that no element has a value."""
        return [np.zeros([int(d) for d in n.shape], dtype=bool) for n in self.nodes[: self.count]]

    def has_function(self, function: Sequence[Array], shape: tuple[int, ...], output: int = 0) -> Array:
        """True where the function has the values whose derivatives are the elements of an output."""
        if self.kind == "pushforward":
            return function[output].reshape(shape)
        flat = np.concatenate([f.ravel() for f in function]) if function else np.ones(1, dtype=bool)
        return flat[:, None] if self.kind == "jacobian" else np.asarray(flat.all())


def _any_values(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with new inputs for users' functions without an implementation: they may have any values."""
    known: dict[object, bool] = {}

    def free(node: Node, args: tuple[Node, ...]) -> Node:
        new = node.over(args)
        if not isinstance(node.op, Apply) or not is_users(node.op.head):
            return new
        if (key := (node.op.head, len(args))) not in known:
            inputs = [input_node(sympy.Dummy(real=True)) for _ in args]
            alone = [apply(node.op.head, *inputs)]
            known[key] = any(f.all() for point in places(alone) for f in valued(alone, point))
        return new if known[key] else input_node(sympy.Dummy(real=True), node.shape)

    return rebuild(nodes, {}, free)


@lru_cache(maxsize=4)  # the entries of a gradient are about one function
def _may_lack(nodes: tuple[Node, ...]) -> bool:
    """Whether one of some nodes may lack a value where its inputs have one."""
    given = _any_values(nodes)
    return not depending(given, may_lack_values).isdisjoint(given)


@without_collecting
def with_values(claim: Claimed) -> list[Array] | None:
    """The elements of the outputs of a claim that have values at some point.

    None if no search is needed: all ops have values wherever their arguments have. Users' functions without
    an implementation may have any values.
    """
    sides, function = claim.nodes[: 2 * claim.count], claim.nodes[2 * claim.count :]
    if not _may_lack(sides) and not _may_lack(function):
        return None
    claim, total = replace(claim, nodes=_any_values(claim.nodes)), claim.nothing()
    for point in _places(claim.nodes):
        found = valued(claim.nodes, point)
        total = [t | f for t, f in zip(total, claim.combined(found), strict=True)]
        if all(f.all() for f in total):
            break
    return total


def _places(nodes: Sequence[Node]) -> Iterator[Mapping[Node, Any]]:
    """Points at which nodes may have values; none of graphs that are too large."""
    if nodes and not is_too_large(nodes):
        yield from places(nodes)


def why(claim: Claimed) -> str:
    """The reason why nothing is claimed."""
    if claim.also:
        return NOT_INSIDE
    inputs = inputs_in(claim.nodes)
    if is_too_large(claim.nodes):
        return f"graphs of more than {MOST_ELEMENTS:,} elements are not evaluated, so that no value is known"
    if apart := _apart(claim):
        return apart
    empty = nowhere(claim.nodes, promised(inputs))
    names = dict.fromkeys(str(n.op.head) if isinstance(n.op, Apply) else "a root" for n in empty)
    return f"{NO_VALUE}; intervals show that {', '.join(names)} has none" if names else NO_VALUE


def _apart(claim: Claimed) -> str:
    """That each side of an equality has values, but both together none; empty if one has none at all."""
    if len(claim.nodes) > 2 * claim.count:
        return ""
    sides = claim.nodes[: claim.count], claim.nodes[claim.count : 2 * claim.count]
    found = [with_values(claimed_of((*side, *side), (), "value", None, None)) for side in sides]
    if any(flags is not None and not any(f.any() for f in flags) for flags in found):
        return ""
    return (
        "an empty claim: each side has values, but no open set of points was found on which both have: their "
        "domains touch at most"
    )


def nowhere_defined(function: tuple[Node, ...], domain: Node | None) -> str:
    """Why a function of known sizes has no value in a domain; empty where it may have one."""
    if not function or not all(map(is_fixed, topological(function))):
        return ""
    claim = claimed_of((*function, *function), (), "value", None, domain)
    found = with_values(claim)
    return why(claim) if found is not None and not any(f.any() for f in found) else ""


def measured_with_values(claim: Claimed, entries: Sequence[Entry]) -> list[Entry]:
    """The measured entries of a program, output by output; undecided where elements have no values."""
    found = with_values(claim)
    if found is None or all(flags.all() for flags in found):
        return list(entries)
    reason = why(claim)
    return [
        entry if flags.all() else replace(entry, status="undecided", witness=None, blame=None, reason=reason)
        for entry, flags in zip(entries, found, strict=True)
    ]
