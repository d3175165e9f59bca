"""Values that are confused with others in a derivative: a matrix with its transpose, say."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import numpy as np

from symad.core.graph import Node, Op, topological
from symad.numbers.values import unchecked
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Input
from symad.ops.linalg.solve_det import MatrixOp
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import CONFUSED, MAX_RUNS
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.matching import Change, Difference
from symad.verification.mistakes.network import ChainNetwork
from symad.verification.mistakes.words import Words

MAX_EVALUATIONS = 6_000
"""The maximum number of evaluations of the derivative of one operation at the first point."""

MAX_OTHERS = 16
"""The maximum number of values with which one is confused."""


def confused(net: ChainNetwork, words: Words, difference: Difference) -> Iterator[Change]:
    """A value that the derivative of one operation uses is another one."""
    for edge, leaf, text, rank, others in islice(_confusions(net, words), MAX_EVALUATIONS):
        used, value = set(topological([edge.made])), edge.value
        for again in (False, True) if leaf in value.args and value in used else (False,):
            also = value if again else None
            first = _with(net, edge, leaf, others[:1], also)
            if first is None or not difference.may_be(net.effect[edge.target][0] @ first[0]):
                continue
            delta = _with(net, edge, leaf, others, also)
            if delta is not None:
                where = f"in the derivative of {words.of(edge.owner)} by {words.of(edge.argument)}"
                yield Change((CONFUSED, rank), f"{text}, {where}", net.changed(edge.target, delta))


def _confusions(net: ChainNetwork, words: Words) -> Iterator[tuple[Edge, Node, str, float, list[Array]]]:
    """Edges, a leaf of each that they use, and the words, rank and values of what may stand there."""
    named: dict[tuple[int, ...], list[Node]] = {}
    for node in net.values[0]:
        if (words.is_named(node) or node in net.flow) and _is_float(net, node):
            named.setdefault(lengths(node), []).append(node)
    edges = (e for s in net.order if s in net.flow for e in net.edges.get(s, ()) if e.target in net.effect)
    for edge in edges:
        used = set(topological([edge.made]))
        for leaf, node in edge.leaves.items():
            if leaf in used and _is_float(net, node):
                for text, rank, others in _others(net, edge, node, named.get(lengths(node), []), words):
                    yield edge, leaf, text, rank, others


def _is_float(net: ChainNetwork, node: Node) -> bool:
    return np.asarray(net.values[0][node]).dtype.kind == "f"


def transposed_in_loops(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """A square matrix that is transposed in the derivatives of all operations that are built alike."""
    groups: dict[tuple[Node, Op, int], list[tuple[Edge, Node]]] = {}
    for edge, leaf, node in _read_by_products(net):
        shape = lengths(node)
        if len(shape) == 2 and shape[0] == shape[1] > 1:
            groups.setdefault((node, edge.owner.op, edge.position), []).append((edge, leaf))
    done, cost = 0, sum(map(len, net.edges.values())) or 1
    for (node, _, _), group in groups.items():
        done += cost
        if len(group) < 2 or done > MAX_RUNS:
            continue
        text = f"{words.of(node)} is transposed, in each of {len(group)} places"
        turned = [[np.asarray(v[node], dtype=float).T for v in net.values]] * len(group)
        yield Change((CONFUSED, 0.0), text, _run_with(net, group, turned))


def next_in_loops(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """In each step of a loop the new state in place of the old one."""
    groups: dict[Hashable, list[tuple[Edge, Node]]] = {}
    for edge, leaf, node in _read_by_products(net):
        groups.setdefault((edge.owner.op, edge.argument, node.shape), []).append((edge, leaf))
    position = {n: k for k, n in enumerate(net.values[0])}
    done, cost = 0, sum(map(len, net.edges.values())) or 1
    for group in groups.values():
        states = [edge.leaves[leaf] for edge, leaf in group]
        if len(set(states)) < max(len(states), 2):
            continue
        order = sorted(range(len(group)), key=lambda k: position[states[k]])
        old = [states[k] for k in order]
        later = [n for n in net.flow if n.op is old[-1].op and n.shape == old[-1].shape and n not in old]
        for last in later:
            done += cost
            if done > MAX_RUNS:
                return
            new = [*old[1:], last]
            others = [[np.asarray(v[n], dtype=float) for v in net.values] for n in new]
            text = f"{words.of(last)} stands in place of {words.of(old[-1])}, in each of {len(group)} steps"
            yield Change((CONFUSED, 0.2), text, _run_with(net, [group[k] for k in order], others))


def _read_by_products(net: ChainNetwork) -> Iterator[tuple[Edge, Node, Node]]:
    """The values that derivatives of products and solves read: edge, placeholder, node."""
    for source in net.order:
        for edge in net.edges.get(source, ()) if source in net.flow else ():
            used = set(topological([edge.made])) if isinstance(edge.owner.op, (Einsum, MatrixOp)) else set()
            yield from ((edge, leaf, node) for leaf, node in edge.leaves.items() if leaf in used)


def _run_with(
    net: ChainNetwork, group: Sequence[tuple[Edge, Node]], others: Sequence[Sequence[Array]]
) -> Array:
    """The change of the derivative where values at all points are others, for each edge of a group."""
    matrices = {}
    for (edge, leaf), values in zip(group, others, strict=True):
        rows = []
        for here, other in zip(net.values, values, strict=True):
            leaves = {placed: here[n] for placed, n in edge.leaves.items()}
            rows.append(edge.matrix({**leaves, leaf: other}))
        matrices[edge] = np.stack(rows)
    return net.collected(net.run(None, matrices)) - net.result


def _others(
    net: ChainNetwork, edge: Edge, node: Node, alike: list[Node], words: Words
) -> Iterator[tuple[str, float, list[Array]]]:
    """What may stand in place of the values of a node: text, rank, and the values at each point."""
    shape, told = lengths(node), words.of(node)
    values = [np.asarray(v[node], dtype=float) for v in net.values]
    if len(shape) == 2 and shape[0] == shape[1] > 1:
        yield f"{told} is transposed", 0.0, [v.T for v in values]
    for axis, length in enumerate(shape):
        if length > 1:
            where = f" along axis {axis}" if len(shape) > 1 else ""
            yield f"{told} is reversed{where}", 0.1, [np.flip(v, axis) for v in values]
    near = [n for n in alike if n is not node and (words.is_named(n) or isinstance(n.op, Input))]
    rest = [n for n in alike if n is not node and n not in near]
    for other in [*near, *rest][:MAX_OTHERS]:
        text = f"{words.of(other)} stands in place of {told}"
        if words.of(other) != told:
            yield text, 0.2 if other in near else 0.3, [np.asarray(v[other], dtype=float) for v in net.values]


def _with(net: ChainNetwork, edge: Edge, leaf: Node, others: list[Array], again: Node | None) -> Array | None:
    """How the cotangents of an edge change with others as the values of a leaf.

    ``again`` is a placeholder whose value is computed anew from these; None if it is not there.
    """
    shape, rows = lengths(edge.source), []
    for k, values in enumerate(net.values[: len(others)]):
        here = {placed: values[n] for placed, n in edge.leaves.items()}
        here[leaf] = others[k]
        try:
            if again is not None:
                del here[again]
                (here[again],) = unchecked((again,), here)
            rows.append(edge.at(net.flow[edge.source][k].reshape(shape), here).ravel())
        except (ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
            return None
    return np.stack(rows) - net.along(edge)[: len(others)]
