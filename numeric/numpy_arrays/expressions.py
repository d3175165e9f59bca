"""Ops that fast array code writes differently from plain code: for speed, or by what the writer knows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from symad.core.dims import Dim, plus, size
from symad.core.graph import Node, Op
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.higher_order.checkpointed_chain import Chain, ChainOp, Kept, arguments, length_of
from symad.higher_order.checkpointed_chain_pullback import ChainPullback
from symad.higher_order.remat import Fallback, Remat
from symad.numeric.expressions.views import as_index, joined
from symad.numeric.numpy_arrays.memory_reuse import allocation
from symad.numeric.numpy_arrays.writer import ArrayWriter, Fast
from symad.numeric.passes.algebra.block_matrices import AddDiagonal, Mosaic
from symad.numeric.passes.memory_layout.memory_spans import Spread
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value, literal, op_in
from symad.numeric.program.statements import Allocate
from symad.numeric.program_passes.memory.reuse import is_large
from symad.numeric.targets import arrays, helpers, linear_algebra, scalars  # noqa: F401  (register their answers)
from symad.numeric.targets.pasting import pasted
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.statements import lines_of
from symad.numeric.targets.target import Level, Text, Texts
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.basic.shaping import Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Dimension
from symad.ops.elementwise.powers import Pow
from symad.ops.sparse.csr import CompressedRows
from symad.transforms import revolve

FILLED = '''def _filled(shape, dtype, blocks):
    """An array of blocks: the first row and column, the rows and columns, and the elements of each."""
    result = np.empty(shape, dtype)
    for (i, j), (m, n), block in blocks:
        result[i:i + m, j:j + n].reshape(block.shape)[...] = block
    return result
'''

PLUS_DIAGONAL = '''def _plus_diagonal(x, spec, d):
    """x + d on the diagonal of x that the subscripts show; x itself is changed."""
    view = np.einsum(spec, x)
    view += d
    return x
'''

SPREAD = '''def _spread(flat, shape, strides):
    """A view of a flat array; strides count elements."""
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, 0, [s*size for s in strides])
'''

MATRIX = '''def _matrix(structure, entries):
    """The matrix of a fixed structure with these entries; the index arrays are shared."""
    matrix = object.__new__(csr_array)
    vars(matrix).update(vars(structure), data=entries)
    return matrix
'''


def by_definition(op: Op, writer: ArrayWriter) -> Text:
    """The text of an op without a rule, by its definition.

    Raises:
        LoweringError: the op has no definition.
    """
    node = writer.plans.nodes.get(writer.at) if writer.at is not None else None
    stands_for = definition(op, node) if node is not None and node.op is op else None
    if node is None or not isinstance(stands_for, Node):
        raise LoweringError(f"the op {type(op).__name__} has no form for backend {writer.target.name!r}")
    return Text(defined(stands_for, node, writer))


def defined(stands_for: Node, node: Node, writer: ArrayWriter) -> str:
    """The text of a node in place of another one, whose arguments it reads; its statements come before."""
    at, over = writer.at, writer.over
    assert at is not None
    values = zip(node.args, writer.plans.arguments[at], strict=True)
    given = {a: value for a, value in values if not a.op.stored}
    program = writer.plans.definition(stands_for, given)
    writer.know(program)
    needed, writer.before = writer.before, []
    with writer.entered(given.values()):
        made = lines_of(program.statements, writer)
        text = writer.operand(program.results[0])
    writer.before, writer.at, writer.over = [*needed, *made], at, over
    return text


# ---- sources, powers, views ----------------------------------------------------------------------


@write.dispatch
def write_constant_array(
    op: ArrayConstant, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    """Integers that are read as numbers are floats: beside single precision they would give double."""
    whole = op.array.dtype.kind in "iu" and op not in writer.plans.numbers
    return Text(writer.constant(op.array.astype(np.float64) if whole else op.array))


@write.dispatch
def write_size(op: Dimension, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    """In single precision with its type: quotients of Python's numbers would be in double precision."""
    text = dimension(op.expression, writer)
    plain = writer.dtype != "float32" or writer.at in writer.plans.numbers
    return text if plain else Text(f"{writer.np}.float32({text})")


@write.dispatch
def write_fast_power(op: Pow, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    base, value = args[0].inside(Level.ATOM), literal(node.args[1])
    if value in (2, 3):
        return Text("*".join([base] * int(value)), Level.PRODUCT)
    if value == 4:
        return Text(f"{target.np}.square({base}*{base})")
    if value == Fraction(3, 2):
        return Text(f"{base}*{target.np}.sqrt({args[0]})", Level.PRODUCT)
    if value == Fraction(1, 2) or literal(node.args[0]) is not None:
        return scalars.write_power_in_python(op, target, node, args, writer)
    return Text(f"{target.np}.power({args[0]}, {args[1]})")


@write.dispatch
def write_view(op: Reshape, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    """A slice that loses axes of length 1 is one index: ``h[T - 1]`` for ``h[T - 1:][0]``."""
    inner = as_index(node.args[0]) if isinstance(op_in(node.args[0]), Slice) else None
    view = None if inner is None else joined(Compute(op, (inner,), node.shape))
    if isinstance(view, Index):
        return writer.index_text(view)
    return arrays.write_reshape(op, target, node, args, writer)


@write.dispatch
def write_spread(op: Spread, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    return Text(f"{writer.helper('_spread', SPREAD)}({args[0]}, {writer.dims(op.shape)}, {op.strides})")


# ---- selection by index --------------------------------------------------------------------------


def _row_numbers(indices: Expression, writer: ArrayWriter) -> ArrayConstant | Positions | None:
    """The op of indices that are written as integers, as other ops do not read them as numbers."""
    key = indices.value if isinstance(indices, Read) else op_in(indices)
    if key not in writer.plans.numbers:
        return None
    op = writer.plans.nodes[key].op if isinstance(key, Value) else key
    return op if isinstance(op, (ArrayConstant, Positions)) else None


def _fit(indices: Expression, rows: Dim, writer: ArrayWriter) -> bool:
    """Whether indices are written as integers and are in range, by a check before or as constants."""
    op = _row_numbers(indices, writer)
    if not isinstance(op, ArrayConstant):
        return op is not None
    known = isinstance(rows, int) and op.array.dtype.kind in "iu"
    return known and (not op.array.size or bool(op.array.min() >= 0 and op.array.max() < rows))


@write.dispatch
def write_checked(op: Positions, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    made = arrays.write_positions(op, target, node, args, writer)
    assert isinstance(made, Text)
    whole = writer.at in writer.plans.numbers
    return made if whole else Text(f"{made.inside(Level.ATOM)}.astype({writer.type_text})")


@write.dispatch
def write_fast_gather(op: Gather, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    if _fit(node.args[1], node.args[0].shape[0], writer):
        return Text(f"{args[0].inside(Level.ATOM)}[{args[1]}]")
    return arrays.write_gather(op, target, node, args, writer)


@write.dispatch
def write_fast_scatter(
    op: ScatterAdd, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    if not _fit(node.args[0], op.size, writer):
        return arrays.write_scatter_add(op, target, node, args, writer)
    return Text(f"{writer.helper(helpers._scatter_add)}({args[0]}, {args[1]}, {writer.dim(op.size)})")


@write.dispatch
def write_order(
    op: SortingPositions, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    """Integers if they are read as row numbers only, numbers of the module's dtype otherwise."""
    order = f"{target.np}.argsort({args[0]}, axis=-1, kind='stable')"
    return Text(order if writer.at in writer.plans.numbers else f"{order}.astype({writer.type_text})")


# ---- arrays of parts -----------------------------------------------------------------------------


@write.dispatch
def write_mosaic(op: Mosaic, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    """One call. A block of another shape is copied once, into a reshaped view of its place."""
    blocks = ", ".join(f"({a}, {b}, {c})" for a, b, c in zip(op.starts, op.shapes, args, strict=True))
    helper = writer.helper("_filled", FILLED)
    return Text(f"{helper}({writer.dims(op.shape)}, {writer.type_text}, [{blocks}])")


@write.dispatch
def write_diagonal(op: AddDiagonal, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    """The array with the part added on its diagonal: in place if it is not read again, else in a copy."""
    whole = args[0].inside(Level.ATOM)
    kept = whole if writer.over is not None and Read(writer.over) == node.args[0] else f"{whole}.copy()"
    part = f"{'' if op.sign == 1 else '-'}{args[1].inside(Level.ATOM)}"
    return Text(f'{writer.helper("_plus_diagonal", PLUS_DIAGONAL)}({kept}, "{op.spec}", {part})')


@write.dispatch
def write_matrix(
    op: CompressedRows, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    """A scipy ``csr_array``. Its index arrays are read-only, since all results share them."""
    structure = _structure(op, writer)
    entries = node.args[0] if len(node.args) == 1 else None
    whole = entries is not None and writer.index_of(op.places_of[0], True) == f":{len(op.columns)}"
    ready = whole and isinstance(entries, Read) and _is_ready(entries.value, writer)
    text = args[0].text if ready else _assigned(op, node, args, writer)
    return Text(f"{writer.helper('_matrix', MATRIX)}({structure}, {text})")


def _is_ready(entries: Value, writer: ArrayWriter) -> bool:
    """Whether an array contains the entries alone: the program has put them there, or gathered them."""
    op = op_in(writer.made[entries]) if entries in writer.made else None
    alone = writer.reads[entries] == 1 and isinstance(op, Gather) and len(entries.shape) == 1
    return alone or entries not in writer.plans.nodes


def _assigned(op: CompressedRows, node: Compute, args: Texts, writer: ArrayWriter) -> str:
    """The name of an array of entries, to which each part is assigned."""
    entries, count = writer.value_name("entries"), (len(op.columns),)
    made = Allocate(Value("", count), kept=is_large(count, writer.itemsize, {}))
    lines = [f"{entries} = {allocation(made, writer)}"]
    flat: dict[Expression, str] = {}
    for (places, gaps, adds), arg, text in zip(op.writes, node.args, args, strict=True):
        if len(gaps):
            lines.append(f"{entries}[{writer.index_of(gaps, False)}] = 0")
        if len(arg.shape) > 1 and arg not in flat:
            flat[arg] = writer.value_name()
            lines.append(f"{flat[arg]} = {writer.np}.ravel({text})")
        index = writer.index_of(places, bool(arg.shape))
        lines.append(f"{entries}[{index}] {'+=' if adds else '='} {flat.get(arg, text)}")
    writer.before += lines
    return entries


def _structure(op: CompressedRows, writer: ArrayWriter) -> str:
    """Add a matrix of zeros with the structure of the results to the module. Returns its name."""
    writer.imports.add("from scipy.sparse import csr_array")
    columns, rows = writer.constant(op.columns), writer.constant(op.rows)
    name = writer.names.unique("structure")
    entries = f"{writer.np}.zeros({len(op.columns)}, dtype={writer.type_text})"
    writer.settings += [
        *(f"{index}.flags.writeable = False" for index in (columns, rows)),
        f"{name} = csr_array(({entries}, {columns}, {rows}), shape={tuple(op.shape)})",
        f"{name}.has_canonical_format = True",
    ]
    return name


# ---- parts that are computed again, and loops with a policy of memory -----------------------------


def called(node: Compute, writer: ArrayWriter) -> list[str]:
    """The names of the functions that an expression calls."""
    return [writer.functions[value][0] for value in node.functions]


@write.dispatch
def write_remat(op: Remat, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    (name,) = called(node, writer)
    return Text(f"{name}({', '.join(map(writer.typed, node.args))})")


@write.dispatch
def write_fallback(
    op: Fallback, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    (name,) = called(node, writer)
    q, y = args[0].inside(Level.SUM), args[1].inside(Level.OR)
    known = f"{op.low!r} <= {q} <= {op.high!r}"
    if node.args[0].shape:
        known = f"{writer.helper(helpers._in_range)}({q}, {op.low!r}, {op.high!r})"
    return Text(f"{y} if {known} else {name}({', '.join(map(writer.typed, node.args))})", Level.CONDITION)


def revolving(writer: ArrayWriter, *names: str) -> None:
    """Add functions of `symad.transforms.revolve` to the module, with the functions that they call."""
    for name in ("places", *names):
        found = pasted(getattr(revolve, name), "_", writer.np)
        writer.imports.update(found.imports)
        writer.helpers.update(found.functions)


def policy_text(op: ChainOp, length: str) -> tuple[str, str]:
    """The texts of the distance of kept states and of the number of slots, from that of the length."""
    if op.policy == "binomial":
        return "0", str(op.number) if op.number else f"2*({length}).bit_length()"
    return {"recompute": "1", "every": str(op.number), "sqrt": f"max(1, int({length}**0.5))"}[op.policy], "0"


@write.dispatch
def write_kept(op: Kept, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    revolving(writer, "keep_states")
    given: Any = node.args
    length = writer.atom(length_of(given))
    distance, slots = ("1", "0") if op.history else policy_text(op, length)
    (step,) = called(node, writer)
    state, *others = map(writer.typed, node.args)
    xs = "".join(f"{x}, " for x in others[: op.slices])
    return Text(f"_keep_states({step}, {state}, ({xs}), _places({length}, {distance}, {slots}))")


@write.dispatch
def write_chain(op: Chain, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    states = args[-1].inside(Level.ATOM)
    given: Any = node.args
    return Text(f"{states}[:{writer.atom(length_of(given))}]" if op.history else f"{states}[-1]")


@write.dispatch
def write_chain_pullback(
    op: ChainPullback, target: Fast, node: Compute, args: Texts, writer: ArrayWriter
) -> Written:
    """One flat array of all cotangents, filled stretch by stretch."""
    revolving(writer, "reverse_chain")
    given: Any = node.args
    values, _, _ = arguments(op, given)
    texts, kept = [writer.typed(v) for v in given[: len(values)]], args[len(values)].inside(Level.ATOM)
    bar = writer.typed(node.args[-1])
    length = writer.atom(length_of(values))
    distance, slots = policy_text(op, length)
    if op.history:
        distance, slots = ("1" if distance == "0" else distance), "0"
    step, pulled = called(node, writer)
    flat, stops, carry = (writer.value_name(stem) for stem in ("flat", "stops", "carry"))
    np_, outs, first = writer.np, "", []
    offset: Dim = 0
    for k, (value, flag) in enumerate(zip(values, op.active, strict=True)):
        if not flag:
            continue
        end = plus(offset, size(value.shape))
        part = f"{flat}[{writer.atom(offset)}:{writer.atom(end)}]"
        if k:
            outs += f"({part}.reshape({writer.dims(value.shape)}), {k <= op.slices}), "
        else:
            first = [f"{part} = 0.0 if {carry} is None else {np_}.ravel({carry})"]
        offset = end
    states = f"({kept}[{'k - 1' if op.history else 'j'}] for j, k in enumerate({stops}))"
    xs = "".join(f"{x}, " for x in texts[1 : 1 + op.slices])
    writer.before += [
        f"{flat} = {np_}.zeros({writer.atom(offset)}, dtype={writer.type_text})",
        f"{stops} = _places({length}, {distance}, {slots})",
        f"{carry} = _reverse_chain({step}, {pulled}, ({xs}), [{texts[0]}, *{states}], {stops}, {slots}, "
        f"{bar}, {op.history}, [{outs}])",
        *first,
    ]
    return Text(flat)
