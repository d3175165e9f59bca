"""Guessing which nodes of a candidate are tangents and cotangents of nodes of the function, by their values.

The derivatives of all nodes are made by symad's rules, and compared with the nodes of the candidate at a few
points. The checker shows for each pair that the guess is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.claims import Derived
from symad.core.dims import same_shape
from symad.core.graph import Graph, Node, rebuild, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.arrays.softmax import LogSumExp, Softmax
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import inner
from symad.ops.basic.sources import Input, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Logic
from symad.transforms.cotangents import fresh_seed, transpose_linear
from symad.transforms.tangents import dense, push
from symad.verification.checker.proofs import DAMAGE
from symad.verification.terms.depending import depending
from symad.verification.values.instance_sizes import sizes_of
from symad.verification.values.point_set import PointSet

Pairs: TypeAlias = list[tuple[Node, Node]]
Sweeps: TypeAlias = tuple[tuple[str, dict[Node, Node]], ...]
"""Letters as in `Proof`, each with pairs of nodes: the second is the tangent, or cotangent, of the first."""

CLOSE, FAR = 1e-9, 1e-4
"""The relative differences of values that are taken for equal, and of those that are certainly not."""

POINTS, TRIED = 3, 12
"""At how many points nodes are compared, and how many are tried until all values are finite."""

MOST = 5_000_000
"""Elements of all nodes beyond which nothing is compared."""

SMALL = 0.25
"""The factor of the points tried first: at large scores a softmax has hardly a derivative."""


def guessed(claim: Derived, letters: str) -> tuple[Sweeps, set[int]]:
    """Sweeps with the pairs that have equal values at some points; and the outputs that have wrong values.

    There are no pairs if none can be compared.
    """
    try:
        return _guessed(claim, letters)
    except (SymadError, *DAMAGE):  # an op has no derivative, or the candidate no values
        return (), set()


def _guessed(claim: Derived, letters: str) -> tuple[Sweeps, set[int]]:
    derivative, outputs = claim
    wrt, along, given = derivative.wrt, {"V": derivative.v, "W": derivative.w}, topological(outputs)
    values, order = SweepValues(claim), topological(derivative.function)
    value, sweeps = _scalar(claim), list[tuple[str, dict[Node, Node]]]()
    for letter in letters:
        seeds = dict(zip(wrt, along.get(letter.upper(), ()), strict=False))
        inside = depending([*order, value], set(wrt).__contains__).intersection(order)
        if letter.isupper():
            pairs, last = _cotangents(value, wrt)
        else:
            pairs, last = _tangents(value, order, seeds)
        pairs = [(a, b) for a, b in pairs if a in inside and not isinstance(a.op, Input)]
        meant = values.alike([*(b for _, b in pairs), *last], given)
        known = {a: meant[b] for a, b in pairs if b in meant and values.is_number(a)}
        sweeps.append((letter, known))
        order = list(dict.fromkeys([*order, *known.values()]))
        last = list(rebuild(last, meant))
        bars = zip(last, seeds.values(), strict=False)
        value = last[0] if letter.islower() else add(*[inner(bar, d) for bar, d in bars]) if seeds else value
        last = [value] if seeds else last
    return tuple(sweeps), values.wrong(last, outputs) if len(derivative.function) == 1 else set()


def _scalar(claim: Derived) -> Node:
    """The number that is differentiated; 0 if there are several."""
    derivative = claim.derivative
    if derivative.w and derivative.kind != "curvature":
        return add(*map(inner, derivative.w, derivative.function))
    return derivative.function[0] if len(derivative.function) == 1 else constant(0)


def _tangents(value: Node, order: Sequence[Node], seeds: Mapping[Node, Node]) -> tuple[Pairs, list[Node]]:
    """Nodes with their tangents, and the tangent of the value."""
    dots = push([*order, value], seeds)
    pairs = [(n, dot) for n, dot in zip(order, dots[:-1], strict=True) if isinstance(dot, Node)]
    return pairs, [dots[-1] if isinstance(dots[-1], Node) else constant(0)]


def _cotangents(value: Node, wrt: Sequence[Node]) -> tuple[Pairs, list[Node]]:
    """Nodes with their cotangents, and the cotangents of the inputs."""
    seeds, order = [fresh_seed(x) for x in wrt], topological([value])
    dots = push(order, dict(zip(wrt, seeds, strict=True)), transposed=True)
    if value.shape or not isinstance(dots[-1], Node):
        return [], []
    passed = dict[Node, Node]()
    bars = transpose_linear([dots[-1]], [constant(1)], seeds, passed)
    found = [(n, passed[dot]) for n, dot in zip(order, dots, strict=True) if dot in passed]
    return found, [dense(bar, x) for bar, x in zip(bars, wrt, strict=True)]


class SweepValues:
    """The values of nodes at a few points, with numbers for symbolic sizes."""

    def __init__(self, claim: Derived) -> None:
        """All nodes of the claim are evaluated."""
        nodes = claim.nodes
        graph = Graph(tuple(n for n in nodes if isinstance(n.op, Input)), tuple(nodes))
        self.sizes = {s: numbers[0] for s, numbers in sizes_of(graph, graph)}
        self.points = list[dict[Node, Any]]()
        outputs = graph.at(self.sizes).output_nodes
        self.infinite = _may_be_infinite(nodes)
        drawn, count = PointSet(outputs), sum(prod(n.shape) for n in topological(outputs))
        for k, point in enumerate(drawn.plain(TRIED) if count <= MOST else ()):
            scale = SMALL if k < TRIED // 2 else 1
            self.points.append({n: v * (1 if n in drawn.integers else scale) for n, v in point.items()})
            if not self._at_last_point(outputs):
                self.points.pop()
            if len(self.points) == POINTS:
                break

    def _at_last_point(self, outputs: Sequence[Node]) -> bool:
        try:
            found = unchecked(outputs, self.points[-1])
        except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
            return False
        self.points[-1] |= dict(zip(outputs, found, strict=True))
        return not any(np.isnan(np.asarray(v, dtype=float)).any() for v in found)

    def of(self, nodes: Sequence[Node]) -> list[np.ndarray]:
        """The values of some nodes at all points, one after the other."""
        outputs = Graph((), tuple(nodes)).at(self.sizes).output_nodes
        rows = [unchecked(outputs, point) for point in self.points]
        return [np.stack([np.asarray(v, dtype=float) for v in row]) for row in zip(*rows, strict=True)]

    def is_number(self, node: Node) -> bool:
        """Whether a node is nowhere −∞: that is no number to go on with."""
        return node not in self.infinite

    def alike(self, own: Sequence[Node], given: Sequence[Node]) -> dict[Node, Node]:
        """For each node of ours itself, or the first one of the candidate that has its values."""
        there = set(given)
        made = {a: a for a in own if a in there}
        own = [a for a in own if a not in made]
        numbers = [b for b in given if not isinstance(b.op, (Compare, Logic))]
        found, others, alike = self.of(own), self.of(numbers), dict[tuple[int, ...], list[int]]()
        for k, v in enumerate(others):
            alike.setdefault(v.shape, []).append(k)
        rows = {shape: np.stack([others[k].ravel() for k in ks]) for shape, ks in alike.items()}
        for a, u in zip(own, found, strict=False):
            size = np.abs(u).max(initial=0)
            if not 0 < size < np.inf or u.shape not in rows:
                continue
            with np.errstate(invalid="ignore"):
                near = np.abs(rows[u.shape] - u.ravel()).max(axis=1) <= CLOSE * size
            chosen = (numbers[alike[u.shape][k]] for k in np.flatnonzero(near))
            if (b := next((b for b in chosen if same_shape(a.shape, b.shape)), None)) is not None:
                made[a] = b
        return made

    def wrong(self, own: Sequence[Node], given: Sequence[Node]) -> set[int]:
        """The numbers of the nodes of the candidate that have other values than ours."""
        found, there = set[int](), bool(self.points) and len(own) == len(given)
        for k, (u, v) in enumerate(zip(self.of(own), self.of(given), strict=True) if there else ()):
            size = max(np.abs(u).max(initial=0), np.abs(v).max(initial=0))
            if u.shape == v.shape and 0 < size < np.inf and np.abs(u - v).max() > FAR * size:
                found.add(k)
        return found


FINITE = (Softmax, LogSumExp, Compare)
"""Ops whose values are finite where some of their arguments are −∞."""


def _may_be_infinite(nodes: Sequence[Node]) -> set[Node]:
    """The nodes that hold −∞ somewhere, as masks of scores do."""
    found = set[Node]()
    for n in nodes:
        exponential = isinstance(n.op, Apply) and n.op.head is sympy.exp
        finite = exponential or isinstance(n.op, FINITE) or found.isdisjoint(n.args)
        if constant_value(n) == -math.inf or not finite:
            found.add(n)
    return found


def numbered(claim: Derived, sweeps: Sweeps) -> list[list[object]]:
    """Sweeps as proofs write them."""
    place = {node: k for k, node in enumerate(claim.nodes)}
    return [[letter, [[place[a], place[b]] for a, b in pairs.items()]] for letter, pairs in sweeps]
