"""The values of a CuPy program that are integers, and remain 64-bit integers whatever its dtype is.

Class numbers, row numbers and positions do not survive bfloat16, which represents integers up to 256, nor
float16, which represents them up to 2048. They enter as integers (inputs that index something, `Iota`,
constants, sorted positions) and remain integers while they are moved, gathered, added and multiplied. A
kernel reads them as integers and converts them to float where it computes with real numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sympy

from symad.core.graph import Graph, Node, topological
from symad.core.nodes import Moved
from symad.higher_order.scan import Scan
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import on_host
from symad.numeric.fusion.nest import Nest
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Iota
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select

WHOLE_HEADS: dict[type[sympy.Basic], str] = {sympy.Max: "maximum", sympy.Min: "minimum", sympy.Abs: "abs"}
"""Functions of integers whose values are integers, by their names in CuPy."""


def index_arguments(node: Node) -> Collection[int]:
    """The arguments of a node that it reads as row numbers, class numbers or positions."""
    if isinstance(node.op, Scan):
        needed = needed_as_integers(node.op.body.output_nodes, None)
        inputs = node.op.body.input_nodes
        return [k for k, local in enumerate(inputs) if k > 0 and local in needed]
    return node.op.row_numbers


def _sources(node: Node) -> Sequence[Node] | None:
    """The arguments that must be integers for the value to be an integer; None if it never is one."""
    op = node.op
    if op.outside or isinstance(op, (Iota, Positions, SortingPositions, Dimension)):
        return ()
    if isinstance(op, ArrayConstant):
        whole = op.array.dtype.kind in "iu" and _fits(op.array.max(initial=0))
        return () if whole else None
    if isinstance(op, Constant):
        whole = isinstance(op.value, int) and not isinstance(op.value, bool)
        return () if whole and _fits(abs(op.value)) else None
    if isinstance(op, Gather):
        return node.args[:1]
    if op.moves <= Moved.PADDED or isinstance(op, Add):
        return node.args
    if isinstance(op, Mul):
        return node.args if set(op.powers) == {1} else None
    if isinstance(op, Apply):
        return node.args if op.head in WHOLE_HEADS else None
    return node.args[1:] if isinstance(op, Select) else None


def _fits(largest: int) -> bool:
    """Whether the device's signed 64-bit integers can hold a number; larger ones are floats."""
    return bool(largest < 2**63)


def _whole(order: Sequence[Node], given: Collection[Node] | None) -> set[Node]:
    """The nodes with integer values if the inputs in ``given`` are integers (None: if all inputs are)."""
    found: set[Node] = set()
    for node in order:
        sources = _sources(node)
        outside = node.op.outside and given is not None and node not in given
        if sources is not None and not outside and all(a in found for a in sources):
            found.add(node)
    return found


def needed_as_integers(outputs: Sequence[Node], given: Collection[Node] | None) -> set[Node]:
    """The nodes whose values are read as integers, directly or after they were moved or computed with.

    Args:
        outputs: the outputs of a program or of the body of a loop.
        given: the inputs that are integers; None if this is to be found out.
    """
    order = topological(outputs)
    whole = _whole(order, given)
    needed: set[Node] = set()
    for node in reversed(order):
        rows = index_arguments(node)
        needed.update(arg for k, arg in enumerate(node.args) if k in rows and arg in whole)
        if node in needed:
            needed.update(_sources(node) or ())
    return needed


def integer_inputs(graph: Graph) -> set[Node]:
    """The inputs of a program that are converted to integers on entry."""
    needed = needed_as_integers(graph.output_nodes, None)
    return {node for node in graph.input_nodes if node in needed}


def _wanted(order: Sequence[Node], wanted: set[Node]) -> set[Node]:
    """The arrays of which kernels, results, or moved values that are wanted read the stored type."""
    for node in reversed(order):
        if _reads_any_type(node):
            wanted.update(node.args)
        elif node in wanted and node.op.moves <= Moved.PADDED:
            wanted.update(_sources(node) or ())
    return wanted


def integer_nodes(
    outputs: Sequence[Node], known: Mapping[Node, bool], results: Collection[Node] = ()
) -> set[Node]:
    """The arrays that the statements of some outputs store as 64-bit integers.

    Sources and moved values are stored so if anything reads them as integers, or if kernels read them, which
    convert exactly. Results of arithmetic are stored so only if they are needed as integers. ``known`` says
    whether existing values, including inputs, are integers; ``results`` are returned with the type they have.
    """
    order = topological(outputs)
    given = {node for node, whole in known.items() if whole}
    whole, needed = _whole(order, given), needed_as_integers(outputs, given)
    host = on_host(order)
    wanted = _wanted(order, needed | set(results))
    found: set[Node] = set()
    for node in order:
        if node in known:
            found.update([node] if known[node] else [])
        if node in known or node not in whole or node in host:
            continue
        arrays = [a for a in _sources(node) or () if a not in host]
        moved = bool(arrays) and not isinstance(node.op, ElementwiseOp)  # it has the type of its argument
        source = not _sources(node) and node in wanted
        if (moved or source or node in needed) and all(a in found for a in arrays):
            found.add(node)
    return found


def _reads_any_type(node: Node) -> bool:
    """Whether a kernel reads the arguments, each in its own type."""
    return isinstance(node.op, Nest) or (
        isinstance(node.op, ElementwiseOp) and has_c_form(node)
    )


def wide_constants(outputs: Sequence[Node]) -> set[Node]:
    """The constant arrays of real numbers that kernels alone read; a half precision would round them."""
    order = topological(outputs)
    narrow: set[Node] = set(outputs)
    for node in reversed(order):
        moves = node.op.moves <= Moved.SOME and node not in narrow
        if not (_reads_any_type(node) or moves):
            narrow.update(node.args)
    real = {n for n in order if isinstance(n.op, ArrayConstant) and n.op.array.dtype.kind == "f"}
    return real - narrow
