"""A function computed part by part: a graph for each part, rules that combine its values, a graph after.

f(X) = after(combined values, shared inputs),    combined value k = rule_k of local_k(X_p), p = 1, ..., P

Values are combined two at a time, in floating point. A partial value of a weighted piece is a pair: the mean
over the parts so far, and the weight of these parts. With logarithmic weights this is the online rule of
softmax (Milakov and Gimelshein 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, same_dim
from symad.core.graph import Graph, Node, rebuild, topological
from symad.core.signatures import Over
from symad.errors import ShapeError
from symad.ops.basic.sources import Dimension, Input, input_node
from symad.splitting.states import Mixed, Rows, Same, State, Total, Weight, Whole, has, is_multiple, states_of


@dataclass(frozen=True)
class Piece:
    """One value of the parts, and the rule that combines it.

    Attributes:
        kind: "same", "rows", or the kind of a `Total`.
        axis: the axis along which rows are concatenated.
        weight: the number of the local value that weights it, or None.
        log: true if the weight is a logarithm.
        place: the axes of the value to which the axes of the weight belong.
    """

    kind: str
    axis: int = 0
    weight: int | None = None
    log: bool = False
    place: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The rule in words."""
        if self.kind == "rows":
            rows = f"concatenation along axis {self.axis}"
            return rows if self.weight is None else f"{rows}, {_weighted(self.log)}"
        if self.weight is None:
            return self.kind
        return "softmax-weighted mean" if self.log else "mean"


def _weighted(log: bool) -> str:
    return "weighted by exp(L_p − L)" if log else "weighted by n_p/n"


@dataclass(frozen=True)
class Cut:
    """The axes of inputs that are cut, all of one symbolic length."""

    axes: tuple[tuple[int, int], ...]
    """Pairs of the position of an input and its axis."""
    length: sympy.Symbol

    def axis(self, position: int) -> int | None:
        """The cut axis of an input, if there is one."""
        return dict(self.axes).get(position)


def cut_of(graph: Graph, over: Over) -> Cut:
    """The axes named by the user.

    Raises:
        ShapeError: unknown inputs, axes that do not exist, have a fixed length or different lengths,
            or an input that is not named and whose length is the same symbol.
    """
    names = [str(s) for s in graph.inputs]
    if not isinstance(over, Mapping):
        raise ShapeError(f"over is {over!r}: give a dict from inputs to the axis that is cut, as {{'X': 0}}")
    chosen: dict[int, int] = {}
    for key, axis in dict(over).items():
        if str(key) not in names:
            raise ShapeError(
                f"over names {key}, which is not an input of {graph.name}: it has {', '.join(names)}"
            )
        position = names.index(str(key))
        rank = graph.input_nodes[position].ndim
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
            raise ShapeError(f"over: {key} has {rank} axes; axis {axis!r} is not one")
        chosen[position] = axis % rank
    if not chosen:
        raise ShapeError(f"over is empty: name the axis of at least one input of {graph.name}, as {{'X': 0}}")
    return Cut(tuple(sorted(chosen.items())), _common_length(graph, names, chosen))


def _common_length(graph: Graph, names: list[str], chosen: Mapping[int, int]) -> sympy.Symbol:
    lengths = {names[k]: graph.input_nodes[k].shape[axis] for k, axis in chosen.items()}
    first_name, first = next(iter(lengths.items()))
    for name, length in lengths.items():
        if not isinstance(length, sympy.Symbol):
            raise ShapeError(
                f"over: the axis of {name} has the length {length}; only an axis whose length is a symbol "
                "can be split: give the input a symbolic size, as in MatrixSymbol('X', n, d)"
            )
        if not same_dim(length, first):
            raise ShapeError(
                f"over: the axes of {first_name} and {name} have the lengths {first} and {length}; axes that "
                "are split together have one length"
            )
    for k, node in enumerate(graph.input_nodes):
        for axis, dim in enumerate(node.shape):
            if has(dim, first) and chosen.get(k) != axis:
                raise ShapeError(
                    f"axis {axis} of {names[k]} has the length {dim} too: name it in over, or give it another"
                )
    return first


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan by which a function is computed part by part.

    Attributes:
        graph: the function.
        cut: the axes that are cut.
        local: the graph computed on every part; its outputs are the values to combine, then weights.
        pieces: the rule that combines each of its outputs.
        after: the function of the combined values and the inputs that are not cut, in the order of ``needs``;
            its first inputs are the combined values.
        needs: the positions of the inputs that ``after`` also takes.
    """

    graph: Graph
    cut: Cut
    local: Graph
    pieces: tuple[Piece, ...]
    after: Graph
    needs: tuple[int, ...]

    @cached_property
    def direct(self) -> bool:
        """True if every output is one of the combined values."""
        return all(isinstance(o.op, Input) for o in self.after.output_nodes)


def analyzed(graph: Graph, cut: Cut) -> tuple[Graph, dict[Node, State]]:
    """The graph in which the length occurs only as a sum over the parts, and the states of its nodes."""
    """The plan of a graph whose nodes have these states; None if an output mixes parts."""
    outputs = _plain_lengths(graph.output_nodes, cut.length)
    whole = graph.with_outputs(outputs, graph.structure)
    known: dict[Node, State] = {graph.input_nodes[k]: Rows(axis) for k, axis in cut.axes}
    known |= {node: Same() for node in graph.input_nodes if node not in known}
    return whole, states_of(outputs, known, cut.length)


def _plain_lengths(outputs: tuple[Node, ...], n: Dim) -> tuple[Node, ...]:
    """Values such as n − 1 computed from the value n."""
    from symad.ops.basic.sources import dimension
    from symad.tracing import as_graph

    replaced: dict[Node, Node] = {}
    for node in topological(outputs):
        op = node.op
        if isinstance(op, Dimension) and has(op.expression, n) and not is_multiple(op.expression, n):
            lengths = sorted(op.expression.free_symbols, key=str)
            stand_ins = [sympy.Dummy(str(length), real=True) for length in lengths]
            formula = op.expression.xreplace(dict(zip(lengths, stand_ins, strict=True)))
            traced = as_graph(formula, inputs=stand_ins)
            values = zip(traced.input_nodes, map(dimension, lengths), strict=True)
            replaced[node] = rebuild(traced.output_nodes, dict(values))[0]
    return rebuild(outputs, replaced) if replaced else tuple(outputs)


def plan_of(graph: Graph, cut: Cut, states: Mapping[Node, State]) -> Plan | None:
    """The plan of a graph whose nodes have these states; None where an output mixes parts."""
    if any(isinstance(states[o], Mixed) for o in graph.output_nodes):
        return None
    frontier = _frontier(graph.output_nodes, states)
    nodes = list(frontier)
    pieces = [_piece(states[node], nodes) for node in frontier]
    pieces += [Piece("logsumexp" if _is_log(w, states, nodes) else "sum") for w in nodes[len(pieces) :]]
    stand_ins = {
        node: input_node(sympy.IndexedBase(sympy.Dummy(f"part_{k}"), shape=node.shape) if node.shape else
                         sympy.Dummy(f"part_{k}", real=True), node.shape)
        for k, node in enumerate(frontier)
    }  # fmt: skip
    outputs = rebuild(graph.output_nodes, stand_ins)
    used = set(topological(outputs))
    needs = tuple(k for k, node in enumerate(graph.input_nodes) if node in used)
    after = Graph(
        (*stand_ins.values(), *(graph.input_nodes[k] for k in needs)), outputs, graph.structure, graph.name
    )
    from symad.core.graph import TupleOf

    local = Graph(graph.input_nodes, tuple(nodes), TupleOf((None,) * len(nodes)), f"{graph.name}_part")
    return Plan(graph, cut, local, tuple(pieces), after, needs)


def _frontier(outputs: tuple[Node, ...], states: Mapping[Node, State]) -> list[Node]:
    """The values to combine: the last reductions over the parts on the paths to the outputs."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(reversed(outputs))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        state = states[node]
        if isinstance(state, (Rows, Total)):
            found[node] = None
        elif isinstance(state, Whole) or state != Same():
            stack.extend(reversed(node.args))
    return list(found)


def _piece(state: State, nodes: list[Node]) -> Piece:
    weight: Weight | None = getattr(state, "weight", None)
    index: int | None = None
    log, place = False, tuple[int, ...]()
    if weight is not None:
        if weight.node not in nodes:
            nodes.append(weight.node)
        index, log, place = nodes.index(weight.node), weight.log, weight.place
    if isinstance(state, Rows):
        return Piece("rows", state.axis, index, log, place)
    return Piece(state.kind if isinstance(state, Total) else "same", 0, index, log, place)


def _is_log(node: Node, states: Mapping[Node, State], nodes: list[Node]) -> bool:
    """True if an added weight is a log Σ exp; the other kind is a length."""
    return not isinstance(node.op, Dimension)


# ---- combining the values of parts, two at a time, in floating point -----------------------------


Values = tuple[Any, ...]


def merge(pieces: Sequence[Piece], left: Values, right: Values) -> Values:
    """The values of two neighboring parts as those of one; rows are lists of blocks."""
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(_merge(p, k, left, right) for k, p in enumerate(pieces))


def _merge(piece: Piece, k: int, left: Values, right: Values) -> Any:
    a, b = left[k], right[k]
    if piece.kind == "rows":
        return [*a, *b]
    if piece.weight is not None:
        return _mean(piece, a, b, left[piece.weight], right[piece.weight])
    return _REDUCE[piece.kind](a, b)


_REDUCE: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logsumexp": np.logaddexp,
}


def _mean(
    piece: Piece, a: Array | float, b: Array | float, w: Array | float, v: Array | float
) -> Array | float:
    """(w a + v b)/(w + v); weights of logarithms are taken relative to the larger one."""
    if piece.log:
        top = np.maximum(w, v)
        top = np.where(np.isfinite(top), top, 0.0)
        w, v = np.exp(w - top), np.exp(v - top)
    total = w + v
    return _times(a, w / total, piece.place) + _times(b, v / total, piece.place)


def _times(value: Array | float, factor: Array | float, place: Sequence[int]) -> Array:
    """A value times a factor along some of its axes; parts with weight 0 are ignored."""
    factor = _along(factor, place, np.ndim(value))
    return np.where(factor == 0, 0.0, value * factor)[()]


def _along(factor: Array | float, place: Sequence[int], rank: int) -> np.ndarray:
    factor = np.asarray(factor)
    order = sorted(range(len(place)), key=lambda k: place[k])
    shape = [1] * rank
    for k in order:
        shape[place[k]] = factor.shape[k]
    return np.transpose(factor, order).reshape(shape)


def start(pieces: Sequence[Piece], values: Sequence[Array] | tuple[float, Array, float]) -> Values:
    """The values of one part, ready to merge."""
    made = []
    for piece, value in zip(pieces, values, strict=True):
        weight = None if piece.weight is None else values[piece.weight]
        made.append([(value, weight)] if piece.kind == "rows" else value)
    return tuple(made)


def finish(pieces: Sequence[Piece], values: Values) -> Values:
    """The combined values."""
    return tuple(
        _rows(piece, value, None if piece.weight is None else values[piece.weight])
        if piece.kind == "rows"
        else value
        for piece, value in zip(pieces, values, strict=True)
    )


def _rows(piece: Piece, blocks: Sequence[tuple[Array, Array]], total: Array | float | None) -> Array:
    parts = [block_of(piece, v, w, total) for v, w in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=piece.axis)


def block_of(piece: Piece, value: Array, weight: Array, total: Any) -> Array:
    """The rows of one part, times its share of the total weight."""
    if piece.weight is None:
        return value
    with np.errstate(invalid="ignore"):
        share = np.exp(np.subtract(weight, total)) if piece.log else np.divide(weight, total)
    return _times(value, share, piece.place)


def combined(pieces: Sequence[Piece], parts: Sequence[Sequence[Array]]) -> Values:
    """The values of all parts as one, by a tree that depends on their number alone."""
    level = [start(pieces, part) for part in parts]
    while len(level) > 1:
        pairs = [merge(pieces, *level[k : k + 2]) for k in range(0, len(level) - 1, 2)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return finish(pieces, level[0])
