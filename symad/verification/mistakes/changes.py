"""The mistakes that are tried, the simple ones first: each is a change of one place of the chain rule.

A place is the flow of a node, or what one edge adds to a node that has several; see `network`. Whole
derivatives are changed in `whole`, functions of one number in `slopes`, elements in `elements`. Values are
confused with others: a matrix with its transpose, say.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice

import numpy as np

from symad.core.graph import Node, Op, topological
from symad.numbers.values import unchecked
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, ShapingOp
from symad.ops.basic.sources import Constant, Input, Source
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.solve_det import MatrixOp
from symad.verification.certificate.domain_repair import DEPTH, signature
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.local import Edge, lengths
from symad.verification.mistakes.network import ChainNetwork, Change, Difference
from symad.verification.mistakes.words import Words, base_of, without_reciprocal

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


FACTORS = ((0.0, "{} is missing"), (-1.0, "wrong sign of {}"), (0.5, "missing factor 2 of {}"))
"""How often the paths of a loop may count, in words."""


@dataclass(frozen=True, eq=False)
class Spot:
    """A flow, or a part of one."""

    node: Node
    """The node to whose flow it belongs."""
    flow: Array
    words: str
    unnamed: float
    """0 if its words are names that the user gave: these mistakes are told first."""
    edge: Edge | None = None


def places_of(net: ChainNetwork, words: Words) -> list[Spot]:
    """The flows of all nodes, and the parts of those that have several."""
    ends = {*net.last} if not net.forward else {*net.first}
    found = []
    for node in net.order:
        if node in net.flow and node in net.effect and node not in ends:
            told = f"the path through {words.path(node)}"
            if not _is_whole(net, node):
                users = dict.fromkeys(words.of(e.owner) for e in net.edges_of(node) if e.argument is node)
                told += f" in {' and '.join(users)}"
            found.append(Spot(node, net.flow[node], told, words.distance(node)))
    into: dict[Node, list[Edge]] = {}
    for source in net.order:
        for edge in net.edges.get(source, ()):
            if source in net.flow and edge.target in net.effect:
                into.setdefault(edge.target, []).append(edge)
    for part in into.values():
        for edge in part if len(part) > 1 else ():
            told = f"the path from {_argument(edge, words)} to {words.path(edge.owner)}"
            unnamed = words.distance(edge.argument) + words.distance(edge.owner)
            found.append(Spot(edge.target, net.along(edge), told, unnamed, edge))
    return found[:MAX_PLACES]


def _argument(edge: Edge, words: Words) -> str:
    """The argument of an edge; of a power with one value at both places, at which of them."""
    told = words.of(edge.argument)
    if edge.owner.args.count(edge.argument) > 1 and isinstance(edge.owner.op, Pow):
        return f"the {('base', 'exponent')[edge.position]} {told}"
    return told


def _is_whole(net: ChainNetwork, node: Node) -> bool:
    """Whether all paths through what a node is called lead through the node: others may use its base."""
    base = base_of(node)
    if base is node or base not in net.flow:
        return True
    part, whole = (net.changed(n, net.flow[n]) for n in (node, base))
    return bool(np.allclose(part, whole, rtol=1e-9, atol=1e-12 * float(np.abs(whole).max(initial=0.0))))


def missing_paths(net: ChainNetwork, places: Sequence[Spot]) -> Iterator[Change]:
    """One path that is left out, or has another factor."""
    for place in places:
        effect = -net.changed(place.node, place.flow)
        rank = PATH if place.edge is None else EDGE
        yield Change((rank, place.unnamed), f"{place.words} is missing", effect)
        yield Change((SCALED, rank, place.unnamed), "", effect, f"{{}} of {place.words}")


def paths_counted_twice(net: ChainNetwork, places: Sequence[Spot]) -> Iterator[Change]:
    """Of two paths into one node the first counts twice, the second not; of several one alone counts.

    These are 2 A x in place of (A + Aᵀ) x, and = in place of +=.
    """
    into: dict[Node, list[Spot]] = {}
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


def several_paths(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """Several paths that are left out together: those of a loop's steps, or all statistics."""
    ends = {*net.last, *net.first}
    inner = [n for n in net.order if n in net.flow and n not in ends and _is_whole(net, n)]
    runs = MAX_RUNS // (sum(map(len, net.edges.values())) or 1)
    for change in islice(chain(_paths_of_names(net, words, inner), _paths_of_loops(net, words, inner)), runs):
        yield change()


Later = Callable[[], Change]
"""A change that takes a run through the network."""


def _paths_of_names(net: ChainNetwork, words: Words, inner: Sequence[Node]) -> Iterator[Later]:
    """All statistics together, and each two values with names."""
    statistics = [n for n in inner if _is_statistic(n, net)]
    distinct: dict[str, Node] = {}
    for node in inner:
        if words.is_named(node) or node in statistics:
            distinct.setdefault(words.path(node), node)
    few = list(distinct.values())[:MAX_TOGETHER]
    for nodes in [*[statistics] * (len(statistics) > 1), *([a, b] for a, b in combinations(few, 2))]:
        told = sorted({words.path(n) for n in nodes}, key=lambda t: (len(t), t))
        both = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
        rank = PATH, 2.0, float(not all(map(words.is_named, nodes)))
        yield partial(_left_out, net, nodes, 0.0, rank, f"the paths through {both} are missing")


def _paths_of_loops(net: ChainNetwork, words: Words, inner: Sequence[Node]) -> Iterator[Later]:
    """The values that a loop computes in each of its steps."""
    groups: dict[Hashable, list[Node]] = {}
    for node in inner:
        for depth in (DEPTH, 1):
            groups.setdefault((depth, signature(node, depth)), []).append(node)
    for nodes in {tuple(group): group for group in groups.values() if len(group) > 1}.values():
        if _is_recurrence(nodes, net.forward):
            yield partial(_without_carry, net, nodes, words.path(nodes[-1]))
        where = f"the path through {words.path(nodes[-1])}, in each of {len(nodes)} places"
        for factor, form in FACTORS:
            rank = SCALED if factor else PATH, 3.0, factor
            yield partial(_left_out, net, nodes, factor, rank, form.format(where))


def _is_recurrence(nodes: Sequence[Node], forward: bool) -> bool:
    """Whether each of some values is computed from the one before."""
    before = set(topological([nodes[-1 if forward else 0]]))
    return all(node in before for node in nodes)


def _without_carry(net: ChainNetwork, nodes: Sequence[Node], path: str) -> Change:
    """What flows from each step of a loop to its neighbor is left out; what flows to the ends is kept."""
    ends = {*net.last, *net.first}
    between = [e for n in nodes for e in net.edges.get(n, ()) if e.target not in ends]
    flow = net.run(None, {e: 0 * net.matrix[e] for e in between})
    side = "next step" if net.forward else "step before"
    text = f"the carry to the {side} is missing, through {path} in each of {len(nodes)} places"
    return Change((PATH, 2.5, 0.0), text, net.collected(flow) - net.result)


def _left_out(
    net: ChainNetwork, nodes: Sequence[Node], factor: float, rank: tuple[float, ...], text: str
) -> Change:
    """The paths through some nodes count so many times."""
    return Change(rank, text, net.collected(net.run(dict.fromkeys(nodes, factor))) - net.result)


def _is_statistic(node: Node, net: ChainNetwork) -> bool:
    """Whether a node is computed of sums, is smaller than what it is used with, and is repeated."""
    repeated = any(isinstance(e.owner.op, Broadcast) and e.argument is node for e in net.edges_of(node))
    return repeated and not isinstance(node.op, (Source, ShapingOp))


# ---- factors and terms --------------------------------------------------------------------------


def wrong_factors(net: ChainNetwork, places: Sequence[Spot], words: Words) -> Iterator[Change]:
    """A value that is forgotten, or extra, as a factor of one place."""
    values: dict[tuple[int, ...], list[tuple[Node, Array]]] = {}
    for node, value in net.values[0].items():
        if not isinstance(node.op, Constant) and np.asarray(value).dtype.kind == "f":
            values.setdefault(lengths(node), []).append((node, net.value(node)))
    for place in places:
        shape = lengths(place.node)
        near = [*values.get(shape, ()), *(values.get((), ()) if shape else ())]
        for node, numbers in near[-MAX_FACTORS:]:
            unnamed = (0.0 if words.is_named(node) else 1.0, place.unnamed, float(len(words.of(node))))
            with np.errstate(all="ignore"):
                for word, factor in (("missing", 1 / numbers), ("extra", numbers)):
                    delta = place.flow * (factor - 1)
                    told = words.of(node)
                    if told.startswith("`1/sigmoid"):
                        word, told = {"missing": "extra", "extra": "missing"}[word], without_reciprocal(told)
                    text = f"{word} factor {told} of {place.words}"
                    yield Change((FACTOR, *unnamed), text, net.changed(place.node, delta))


def extra_terms(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """A flow of the shape of the result that is added to it."""
    for end in net.last:
        for node, flow in net.flow.items():
            if node.shape == end.shape and node is not end:
                effect = net.changed(end, flow)
                told = f"the {'tangent' if net.forward else 'cotangent'} of {words.of(node)}"
                yield Change((EXTRA, 1.0), f"an extra term: {told}", effect)
                yield Change((EXTRA, 1.0), f"{told} is subtracted", -effect)


# ---- values that are confused with others in a derivative ----------------------------------------


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
