"""How a claim is read: the candidate on the inputs of the function, in the layout of the reference.

A claim is data that is made once: the kind of derivative, the function, both sides, their domain. Nothing is
reshaped, stacked or replaced to make it fit: what may be read in two ways is refused, by the name of the
parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.dims import Shape, format_shape, same_dim, same_shape, size
from symad.core.graph import Graph, Node, TupleOf, rebuild, topological
from symad.core.identifiers import counted, listed
from symad.core.signatures import Traceable
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.stacking import concatenate, element, pack_scalars, stack
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import Input, described, dimension, symbol_of
from symad.verification.certificate.witness import promise_of

if TYPE_CHECKING:
    import sympy as sp


def told(kind: str) -> str:
    """A kind of derivatives in words: some are called after people."""
    return kind.capitalize() if kind in ("hessian", "jacobian") else kind


def _parts_told(wrt: Sequence[Node], wanted: Sequence[Node]) -> str:
    """The inputs that the parts belong to, arrays with their shapes."""
    if len(wrt) != len(wanted):
        return ", ".join(format_shape(w.shape) for w in wanted)
    pairs = zip(wrt, wanted, strict=True)
    return listed(f"by {symbol_of(n)}" + f" {format_shape(w.shape)}" * bool(w.shape) for n, w in pairs)


def formula_of(
    graph: Graph, wrt: Sequence[Node], reference: Graph, read: Graph, kind: str, by_position: bool
) -> Graph:
    """The candidate as a graph whose outputs have the shapes of the reference's."""
    formula = with_inputs_of(graph, read)
    formula = _on_inputs_of(reference, formula, kind, by_position)
    parts = list(formula.output_nodes)
    wanted = reference.output_nodes
    if kind == "gradient" and len(parts) == 1 and len(wanted) > 1:
        parts = _split_vector(parts[0], wanted)
    if kind in ("jacobian", "hessian"):
        parts = [_as_matrix(graph, wrt, parts, wanted[0], kind)]
    if len(parts) != len(wanted):
        raise ShapeError(
            f"the {told(kind)} has {counted(len(wanted), 'part')} ({_parts_told(wrt, wanted)}), but "
            f"the candidate has {len(parts)}; give a list with one for each"
        )
    fitted = tuple(_fitted(p, w, kind) for p, w in zip(parts, wanted, strict=True))
    inputs = tuple(dict.fromkeys((*reference.input_nodes, *formula.input_nodes)))
    return Graph(inputs, fitted, TupleOf((None,) * len(fitted)), "candidate")


def _on_inputs_of(reference: Graph, formula: Graph, kind: str, by_position: bool) -> Graph:
    """The formula on the inputs of the claim; those of other names by position.

    Raises:
        TraceError: the formula depends on something else.
    """
    known, own = reference.input_nodes, formula.input_nodes
    if by_position and len(own) == len(known):
        moved = {a: b for a, b in zip(own, known, strict=True) if a is not b}
        if all(_may_be(a, b) and a not in known for a, b in moved.items()):
            formula = Graph(known, rebuild(formula.output_nodes, moved), formula.structure, formula.name)
    others = [n for n in topological(formula.output_nodes) if isinstance(n.op, Input) and n not in known]
    if others:
        lists = [", ".join(_told(n, [*known, *others]) for n in nodes) for nodes in (others, known)]
        raise TraceError(
            f"verify: the candidate for the {told(kind)} depends on {lists[0]}; the {told(kind)} "
            f"depends on {lists[1]}. Use these symbols, with these assumptions"
        )
    return formula


def _told(node: Node, nodes: Sequence[Node]) -> str:
    """An input with its shape; of one name among several, with what its symbol promises."""
    name = str(symbol_of(node))
    twice = sum(str(symbol_of(other)) == name for other in nodes) > 1
    return f"{name} ({promise_of(node)})" if twice else described(node) if node.shape else name


def _may_be(own: Node, known: Node) -> bool:
    """True if an argument of a traced function may stand for an input of another name."""
    return same_shape(own.shape, known.shape) and str(symbol_of(own)) != str(symbol_of(known))


def as_array(candidate: Any) -> Traceable:
    """Nested lists and NumPy arrays of expressions and numbers as an array; anything else as it is."""
    if isinstance(candidate, np.ndarray):
        return sympy.ImmutableDenseNDimArray(candidate.ravel().tolist(), candidate.shape)
    if isinstance(candidate, (list, tuple)) and any(isinstance(part, np.ndarray) for part in candidate):
        return [as_array(part) for part in candidate]
    rows = isinstance(candidate, (list, tuple)) and all(isinstance(r, (list, tuple)) for r in candidate)
    return sympy.ImmutableDenseNDimArray(candidate) if rows and candidate else candidate


def _split_vector(vector: Node, wanted: Sequence[Node]) -> list[Node]:
    """The scalar parts of a vector that has all of them."""
    flat = [d for d in vector.shape if d != 1]
    if all(w.shape == () for w in wanted) and flat == [len(wanted)]:
        line = reshape(vector, (len(wanted),))
        return [element(line, k) for k in range(len(wanted))]
    return [vector]


def _fitted(part: Node, wanted: Node, kind: str) -> Node:
    """The part in the expected shape; rows and columns count as the same where that is unambiguous."""
    part = fit(part, wanted)
    if same_shape(part.shape, wanted.shape):
        return part
    if part.shape == () and all(d == 1 for d in wanted.shape):
        return reshape(part, wanted.shape)
    if (
        len(part.shape) == len(wanted.shape) == 2
        and same_shape(part.shape[::-1], wanted.shape)
        and 1 in part.shape
    ):
        return permute(part, (1, 0))
    raise ShapeError(
        f"the {told(kind)} has shape {format_shape(wanted.shape)}, but the candidate "
        f"{format_shape(part.shape)}"
    )


def _as_matrix(graph: Graph, wrt: Sequence[Node], parts: Sequence[Node], wanted: Node, kind: str) -> Node:
    """A Jacobian or Hessian given as a matrix, as an array over all axes, or entry by entry."""
    if len(parts) != 1:
        return _joined(graph.output_nodes if kind == "jacobian" else wrt, wrt, parts, wanted, kind)
    (part,) = parts
    if same_shape(part.shape, wanted.shape) or len(wrt) != 1 or len(graph.output_nodes) != 1:
        return part
    inner = wrt[0].shape
    outer = graph.output_nodes[0].shape if kind == "jacobian" else inner
    if same_shape(part.shape, (*outer, *inner)):
        return reshape(part, wanted.shape)
    if same_shape(part.shape, (*inner, *outer)):  # SymPy's order
        rank = len(inner)
        order = (*range(rank, len(part.shape)), *range(rank))
        return reshape(permute(part, order), wanted.shape)
    if same_dim(size(part.shape), size(wanted.shape)) and 1 in wanted.shape:
        return reshape(part, wanted.shape)
    return part


ASSUMED = ("nonnegative", "nonpositive", "zero", "integer", "even", "odd", "prime")


def _alike(a: Node, b: Node) -> bool:
    """True if two inputs of one name have the same assumptions among `ASSUMED`."""
    first, second = symbol_of(a), symbol_of(b)
    if a.shape:  # MatrixSymbol answers False where IndexedBase and ArraySymbol answer None
        return all(_promises(first, k) == _promises(second, k) for k in ASSUMED)
    return all(getattr(first, f"is_{k}", None) is getattr(second, f"is_{k}", None) for k in ASSUMED)


def _promises(symbol: sp.Basic, kind: str) -> bool:
    """True if an array has assumptions on its elements."""
    return getattr(symbol, f"is_{kind}", None) is True


def fit(node: Node, like: Node) -> Node:
    """The node in the shape of another: a 1×1 array as a scalar, an (n, 1) array as an (n,) array."""
    if len(node.shape) == len(like.shape) or not same_dim(size(node.shape), size(like.shape)):
        return node
    kept = [[d for d in n.shape if d != 1] for n in (node, like)]
    if len(kept[0]) == len(kept[1]) and all(same_dim(p, q) for p, q in zip(*kept, strict=True)):
        return reshape(node, like.shape)
    return node


def with_inputs_of(left: Graph, right: Graph) -> Graph:
    """The right graph on the left one's inputs where symbols, or names and shapes, agree.

    A size of the left one's arrays is no input of the right one, where perhaps no array has it, as in I/n.
    """
    by_symbol = {symbol_of(node): node for node in left.input_nodes}
    by_name = {str(symbol): node for symbol, node in by_symbol.items()}
    replaced: dict[Node, Node] = {}
    for node in right.input_nodes:
        symbol = symbol_of(node)
        found = by_symbol.get(symbol) or by_name.get(str(symbol))
        if found is not None and found is not node and found.shape == node.shape and _alike(found, node):
            replaced[node] = found
        elif found is None and symbol in left.dims:
            replaced[node] = dimension(symbol)
    if not replaced:
        return right
    moved = (replaced.get(n, n) for n in right.input_nodes)
    inputs = tuple(n for n in moved if isinstance(n.op, Input))
    return Graph(inputs, rebuild(right.output_nodes, replaced), right.structure, right.name, right.report)


def _joined(
    outer: Sequence[Node], wrt: Sequence[Node], parts: Sequence[Node], wanted: Node, kind: str
) -> Node:
    """A matrix from its rows, from its entries, or from blocks (axes of an output..., of an input...).

    Raises:
        ShapeError: the parts have other shapes, or may be rows as well as blocks.
    """
    shapes = [(*y.shape, *x.shape) for y in outer for x in wrt]
    are_blocks = len(parts) == len(shapes) and all(map(same_shape, [p.shape for p in parts], shapes))
    are_rows = _are_rows(wrt, parts, wanted)
    given = ", ".join(format_shape(p.shape) for p in parts)
    if are_rows and are_blocks and len(wrt) > 1:
        names = ", ".join(str(symbol_of(x)) for x in wrt)
        raise ShapeError(
            f"verify: the {told(kind)} is given in {len(parts)} parts of shapes {given}, which may "
            f"be its rows, or one block for each of {names}, as JAX returns them; give one matrix "
            f"{format_shape(wanted.shape)}"
        )
    if are_blocks:
        return _of_blocks(outer, wrt, parts)
    if are_rows:
        return stack([reshape(p, wanted.shape[1:]) for p in parts])
    if all(same_dim(size(p.shape), 1) for p in parts) and same_dim(len(parts), size(wanted.shape)):
        return reshape(pack_scalars([reshape(p, ()) for p in parts], (len(parts),)), wanted.shape)
    raise ShapeError(
        f"verify: the {told(kind)} has shape {format_shape(wanted.shape)}, but the candidate has "
        f"{len(parts)} parts of shapes {given}: give its rows, its blocks for each output and input, or "
        "one matrix"
    )


def _are_rows(wrt: Sequence[Node], parts: Sequence[Node], wanted: Node) -> bool:
    """Whether parts may be the rows of a matrix; those by one input may have its shape."""
    rows, columns = wanted.shape
    lines: list[Shape] = [(columns,), (1, columns), *(x.shape for x in wrt if len(wrt) == 1)]
    return same_dim(len(parts), rows) and all(any(same_shape(p.shape, s) for s in lines) for p in parts)


def _of_blocks(outer: Sequence[Node], wrt: Sequence[Node], parts: Sequence[Node]) -> Node:
    """A matrix from a block for each output and, inside, each input."""
    pairs = [(y, x) for y in outer for x in wrt]
    flat = [reshape(p, (size(y.shape), size(x.shape))) for p, (y, x) in zip(parts, pairs, strict=True)]
    return concatenate([concatenate(flat[k : k + len(wrt)], 1) for k in range(0, len(flat), len(wrt))], 0)
