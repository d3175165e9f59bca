"""Sums over pairs in CuPy modules: the streaming kernels as text, and the calls that launch them.

The number of components and of weights per point must be known when the code is written. Half precisions are
computed in float32. Tangents, and sums that no kernel supports, are computed by the definition.
"""

from __future__ import annotations

from symad.core.graph import Node
from symad.errors import LoweringError
from symad.fused.pair_sum import NUMBER, PairOp, PairSum, PairSumCotangent, parts_of, unread
from symad.gpu import module_text
from symad.gpu.cupy_library import real_type
from symad.gpu.device_formulas import Device
from symad.gpu.pairs.kernel_text import (
    ROWS,
    PairPlan,
    has_products,
    pair_text,
    payload_columns,
    plan,
    products_bytes,
    products_source,
)
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.settings import current
from symad.numeric.numpy_arrays.pairs.pair_sum_printer import call_text, traced
from symad.numeric.numpy_arrays.statements import Made, computed, results_by_number
from symad.numeric.pairs.pair_functions import PairFunction
from symad.numeric.program.expressions import Compute

MAX_COMPONENTS = 128
"""The most components of a point that the kernels support.

Origin: the kernels of gpu/kernels, which support no more.
"""

LAUNCH = '''def _pair_grid(owned, streamed, points, plan, dimension, columns):
    """Blocks of owned points, parts of the other points, chunks of columns."""
    blocks, chunks = -(-owned//points), -(-columns//plan["columns"])
    wanted = -(-_device(cp.cuda.Device().id)[2]*32//(blocks*chunks))
    room = 2**26//(owned*max(dimension, columns))
    return blocks, max(1, min(wanted, -(-streamed//plan["tile"]), room, 1024)), chunks


def _pair_launch(plan, name, grid, *args):
    args = tuple(cp.int32(a) if isinstance(a, int) else a for a in args)
    kernel = _module(plan["source"]).get_function(name)
    if plan["shared"] > 49152:
        kernel.max_dynamic_shared_size_bytes = plan["shared"]
    kernel(grid, (128,), args, shared_mem=plan["shared"])


def _pair_combine(plan, parts):
    """The parts added up in their order."""
    if len(parts) == 1:
        return parts[0]
    out = cp.empty(parts.shape[1:], dtype=parts.dtype)
    grid = (-(-out.size//128), 1, 1)
    _pair_launch(plan, "pair_combine", grid, parts, out, cp.int64(out.size), len(parts))
    return out


def _pair_entries(params, real):
    """All parameters in one vector."""
    if not params:
        return cp.zeros(1, dtype=real)
    return cp.concatenate([cp.asarray(p, dtype=real).reshape(-1) for p in params])
'''

PLAN = '''def _pair_plan(plan):
    """The kernels to use: those on tensor cores where they were asked for and the device has them."""
    products = plan.get("products")
    capability, room, _ = _device(cp.cuda.Device().id)
    return products if products and capability >= 80 and products["shared"] <= room else plan
'''

SUM = """def _pair_sum(x, y, b, params, plan, reduce, dtype, real):
    x, y, b = (cp.ascontiguousarray(a.astype(real, copy=False)) for a in (x, y, b))
    (n, d), m, columns = x.shape, len(y), b.shape[1]
    lse = cp.full(n, -cp.inf, dtype=real)
    if not n or not m:
        fill = {"sum": 0, "logsumexp": -cp.inf, "softmax": cp.nan}[reduce]
        return cp.full((n, columns), fill, dtype=dtype), lse
    chosen = _pair_plan(plan)
    grid = _pair_grid(n, m, chosen["forward"], chosen, d, columns)
    parts = cp.empty((grid[1], n, columns), dtype=real)
    levels = cp.empty((grid[1], n, 2) if reduce != "sum" else 1, dtype=real)
    entries = _pair_entries(params, real)
    _pair_launch(chosen, chosen["names"][0], grid, x, y, b, entries, parts, levels, n, m, columns)
    if reduce == "sum":
        return _pair_combine(plan, parts).astype(dtype, copy=False), lse
    out = cp.empty((n, columns), dtype=real)
    grid = (-(-n//128), 1, 1), grid[1]
    _pair_launch(plan, "pair_combine_levels", grid[0], parts, levels, out, lse, n, columns, grid[1])
    return out.astype(dtype, copy=False), lse
"""

BARS = """def _pair_bars(x, y, b, params, out_bar, out, lse, plan, reduce, dtype, real):
    shapes = [p.shape for p in params]
    x, y, b, rows_bar = (
        cp.ascontiguousarray(a.astype(real, copy=False)) for a in (x, y, b, out_bar)
    )
    (n, d), m, columns = x.shape, len(y), b.shape[1]
    packed = cp.zeros(plan["entries"], dtype=real)
    bars = [cp.zeros_like(a) for a in (x, y, b)]
    if n and m:
        stats = cp.zeros(1, dtype=real)
        if reduce != "sum":
            out = out.astype(real, copy=False)
            level = out[:, 0] if reduce == "logsumexp" else lse.astype(real, copy=False)
            stats = cp.stack([cp.ascontiguousarray(level), (rows_bar*out).sum(axis=1)], axis=1)
        entries, chosen = _pair_entries(params, real), _pair_plan(plan)
        common, (_, by_rows, by_columns) = (x, y, b, rows_bar, stats, entries), chosen["names"]
        grid = _pair_grid(n, m, chosen["backward"], chosen, d, columns)
        parts = cp.empty((grid[1]*grid[2], n, d), dtype=real)
        sums = cp.empty((grid[0]*grid[1]*grid[2], max(plan["entries"], 1)), dtype=real)
        _pair_launch(chosen, by_rows, grid, *common, parts, sums, n, m, columns)
        bars[0] = _pair_combine(plan, parts)
        packed = sums.sum(axis=0)
        grid = _pair_grid(m, n, chosen["backward"], chosen, d, columns)
        parts = cp.empty((grid[1]*grid[2], m, d), dtype=real)
        b_parts = cp.empty((grid[1], m, columns), dtype=real)
        _pair_launch(chosen, by_columns, grid, *common, parts, b_parts, n, m, columns)
        bars[1:] = _pair_combine(plan, parts), _pair_combine(plan, b_parts)
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        bars.append(packed[start:start + size].reshape(shape))
        start += size
    return tuple(bar.astype(dtype, copy=False) for bar in bars)
"""


def has_kernels(op: PairOp, node: Node | Compute, dtype: str) -> bool:
    """Whether the kernels support this sum."""
    d, columns = node.args[0].shape[1], node.args[2].shape[1]
    if not isinstance(op, (PairSum, PairSumCotangent)) or not isinstance(columns, int) or not columns:
        return False
    if not isinstance(d, int) or not 0 < d <= MAX_COMPONENTS:
        return False
    try:
        _text(op, node, dtype)
    except LoweringError:
        return False
    return True


def _text(op: PairOp, node: Node | Compute, dtype: str) -> tuple[PairFunction, PairPlan, str]:
    """The traced function, its plan, and the text that precedes pair_sum.cu."""
    function, real = traced(op, node), real_type(dtype)
    chosen = plan(function, int(node.args[2].shape[1]), real)
    return function, chosen, pair_text(function, chosen, op.reduce, Device(real, current().fast))


def pair_lines(op: PairOp, printer: CuPyWriter, made: Made) -> list[str]:
    """The statement that computes all results of a sum over pairs."""
    found, results = computed(made), results_by_number(made)
    printer.imports.add("from functools import lru_cache")
    printer.helper("_module", module_text.MODULE)
    printer.helper("_device", module_text.DEVICE)
    printer.helper("_pair_launch", LAUNCH)
    printer.helper("_pair_plan", PLAN)
    types = f"{printer.type_text}, cp.{printer.accumulator}"
    last = f"{plan_constant(op, found, printer)}, {op.reduce!r}, {types}"
    cotangents = isinstance(op, PairSumCotangent)
    printer.imports |= {"import math"} if cotangents else set()
    helper = printer.helper(*(("_pair_bars", BARS) if cotangents else ("_pair_sum", SUM)))
    texts = ["" if k in unread(op) else printer.array_text(a) for k, a in enumerate(found.args)]
    call = call_text(op, texts, helper, last)
    names = printer.result_names(parts_of(op), results)
    if isinstance(op, PairSum):
        names += ["_"] * (2 - len(names))
        if 1 in results:
            printer.kinds[results[1]] = printer.accumulator
    return [f"{', '.join(names)} = {call}"]


def _products_lines(function: PairFunction, chosen: PairPlan, reduce: str, printer: CuPyWriter) -> list[str]:
    """The entry of a plan with the tensor-core kernel; empty if the option is off or no kernel fits."""
    kind = current().pair_products
    if kind == "off" or printer.dtype != "float32" or not has_products(function):
        return []
    source = products_source(function, chosen, reduce, kind)
    columns = payload_columns(function.dimension, chosen.columns, kind)
    shared = products_bytes(function.dimension, columns, kind)
    return [
        f'    "products": {{"columns": {columns}, "tile": {ROWS}, "forward": {ROWS}, "backward": {ROWS},',
        f'        "shared": {shared},',
        '        "names": ("pair_products", "pair_products_rows", "pair_products_columns"),',
        f'        "source": {printer.kernel_source(source)}}},',
    ]


def plan_constant(op: PairOp, node: Compute, printer: CuPyWriter) -> str:
    """The name of the module's constant with the kernels of one function."""
    columns = node.args[2].shape[1]
    key = (op.formula, op.parameters, node.args[0].shape[1], columns, op.reduce)
    number = printer.scores.setdefault(key, len(printer.scores) + 1)
    name = f"_pair_plan_{number}"
    if name in printer.helpers:
        return name
    function, chosen, text = _text(op, node, printer.dtype)
    prims, sums = map(printer.kernel_file, ("prims.h", "pair_sum.cu"))
    own = printer.text_constant(f"_PAIR_{number}", text)
    real = real_type(printer.dtype)
    size = 4 if real == "float" else 8
    entries = sum(1 if length == NUMBER else length for _, length in op.parameters)
    lines = [
        f"{name} = {{",
        f'    "columns": {chosen.columns}, "tile": {chosen.tile}, "entries": {entries},',
        f'    "forward": {chosen.forward.points}, "backward": {chosen.backward.points},',
        '    "names": ("pair_forward", "pair_backward_rows", "pair_backward_columns"),',
        f'    "shared": {chosen.shared_bytes(function.dimension, size)},',
        f'    "source": "#define SYMAD_REAL {real}\\n" + {prims} + {own} + {sums},',
        *_products_lines(function, chosen, op.reduce, printer),
        "}",
        "",
    ]
    printer.helpers[name] = "\n".join(lines)
    return name
