"""Scalar graphs as one kernel: each point of a batch is a thread, which writes every output at the point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.graph import Graph, Node, topological
from symad.gpu.cupy_library import imports, real_type, type_text
from symad.gpu.printers.helpers import HELPERS
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter, Kernels
from symad.numeric.fusion.c_expressions import KernelBody, has_c_form, statements
from symad.numeric.modules.module_text import Names, frame, one_line, pack_text, summary
from symad.numeric.passes.memory_layout.packed_entries import constants_of, entries_of, is_scalar
from symad.numeric.targets.statements import indented
from symad.ops.basic.sources import ArrayConstant, Constant, Input
from symad.ops.elementwise.selection import Condition

MAX_DIRECT = 48
"""The most inputs, and the most outputs, that are kernel parameters; more are passed in one array.

Origin: the space of a kernel's parameters, 4 kB before CUDA 12.1, of which an array takes 32 bytes; not
measured on a device.
"""


@dataclass(frozen=True)
class _Place:
    """Where a kernel stores an output: in an array of its own, or behind others in one for all of a type."""

    array: str
    type: str
    before: int | None = None
    """How many entries of other outputs, at one point, lie before it; None in an array of its own."""


def _places(graph: Graph, dtype: str) -> list[_Place]:
    """Where the outputs are stored, in order."""
    types = ["bool" if isinstance(o.op, Condition) else dtype for o in graph.output_nodes]
    if len(types) <= MAX_DIRECT:
        return [_Place(f"out{k}", kind) for k, kind in enumerate(types)]
    places, filled = [], Counter[str]()
    for output, kind in zip(graph.output_nodes, types, strict=True):
        places.append(_Place(f"all_{kind}", kind, filled[kind]))
        filled[kind] += len(_entries(output))
    return places


def is_kernel(graph: Graph) -> bool:
    """Whether all values are scalars that a kernel body can compute."""
    if not is_scalar(graph):
        return False
    return all(
        isinstance(node.op, (Constant, Input)) or has_c_form(node)
        for node in topological([e for o in graph.output_nodes for e in _entries(o)])
    )


def _entries(output: Node) -> tuple[Node, ...]:
    """The scalars of an output, in row-major order."""
    if isinstance(output.op, ArrayConstant):
        return constants_of(output)
    return entries_of(output) or (output,)


def print_scalar_kernel(graph: Graph, dtype: str) -> tuple[str, tuple[str, ...], Kernels]:
    """The entry point's name, the source of the module and its kernels."""
    places = _places(graph, dtype)
    outputs = {place.array: KernelParameter(place.type, place.array, raw=True) for place in places}
    names = Names(("shape", "values", "count", *outputs))
    entry = names.unique(graph.name)
    inputs = [names.of(symbol) for symbol in graph.inputs]
    results = [names.unique(f"result_{k + 1}") for k in range(len(graph.output_nodes))]
    text = KernelBody(real_type(dtype))
    reading = _reads(graph, dtype, text)
    lines = _writes(graph, text, places)
    preamble = (text.preamble(),) if text.helpers else ()
    kernels = Kernels(dtype)
    name = kernels.named(ElementwiseKernel(reading, tuple(outputs.values()), (*text.lines, *lines), preamble))
    told = summary((), [output.shape for output in graph.output_nodes], graph.structure, ())
    body = indented([told, *_entry(graph, name, inputs, results, places, dtype)])
    helpers = [HELPERS["_array"]] if graph.inputs else []
    blocks = [kernels.definitions("cp"), [f"def {entry}({', '.join(inputs)}):", *body]]
    return entry, frame(graph.name, imports(dtype), helpers, blocks, "CuPy"), kernels


def _reads(graph: Graph, dtype: str, text: KernelBody) -> tuple[KernelParameter, ...]:
    """The kernel's inputs; their values get names in ``text``."""
    count = len(graph.input_nodes)
    direct = count <= MAX_DIRECT
    parameters: tuple[KernelParameter, ...]
    if not count:
        parameters = (KernelParameter(dtype, "nothing", raw=True),)
    elif direct:
        parameters = tuple(KernelParameter(dtype, f"x{k}") for k in range(count))
    else:
        parameters = (KernelParameter(dtype, "values", raw=True),)
    for k, node in enumerate(graph.input_nodes):
        source = f"x{k}" if direct else f"values[{k} * count + i]"
        text.lines.append(f"const {text.real} a{k} = ({text.real}){source};")
        text.text[node] = f"a{k}"
    return (*parameters, KernelParameter("int64", "count")) if _is_counted(graph) else parameters


def _is_counted(graph: Graph) -> bool:
    """Whether inputs or outputs lie in one array; the kernel then needs the number of points."""
    return max(len(graph.input_nodes), len(graph.output_nodes)) > MAX_DIRECT


def _writes(graph: Graph, text: KernelBody, places: Sequence[_Place]) -> list[str]:
    """The statements that store every entry of every output."""
    entries = [_entries(o) for o in graph.output_nodes]
    values = statements([e for part in entries for e in part], {}, text)
    lines, rest = [], iter(values)
    for place, part in zip(places, entries, strict=True):
        start = f"{place.before} * count + " if place.before else ""
        for j in range(len(part)):
            entry = "i" if len(part) == 1 else f"i * {len(part)} + {j}"
            lines.append(f"{place.array}[{start}{entry}] = {next(rest)};")
    return lines


def _entry(
    graph: Graph,
    kernel: str,
    inputs: Sequence[str],
    results: Sequence[str],
    places: Sequence[_Place],
    dtype: str,
) -> list[str]:
    """The lines that broadcast the inputs, allocate the outputs, and run the kernel."""
    titles = zip(inputs, map(str, graph.inputs), strict=True)
    lines = [f'{name} = _array("{one_line(title)}", {name}, {type_text(dtype)})' for name, title in titles]
    read, size = list(inputs), "1"
    if not inputs:
        lines.append("shape = ()")
        read = [f"cp.empty(0, dtype={type_text(dtype)})"]
    elif len(inputs) > MAX_DIRECT:
        lines.append(f"values = cp.stack(cp.broadcast_arrays({', '.join(inputs)}))")
        lines.append("shape = values.shape[1:]")
        read, size = ["values"], f"values.size//{len(inputs)}"
    else:
        lines.append(f"shape = cp.broadcast({', '.join(inputs)}).shape")
        size = f"cp.broadcast({', '.join(inputs)}).size"
    if _is_counted(graph):
        lines.append(f"count = {size}")
        read, size = [*read, "count"], "count"
    made, arrays = _allocated(graph, results, places)
    is_told_by_inputs = 0 < len(inputs) <= MAX_DIRECT
    arguments = [*read, *arrays, *([] if is_told_by_inputs else [f"size={size}"])]
    run = f"{kernel}({', '.join(arguments)})"
    return [*lines, *made, run, f"return {pack_text(graph.structure, results)}"]


def _allocated(
    graph: Graph, results: Sequence[str], places: Sequence[_Place]
) -> tuple[list[str], Sequence[str]]:
    """The lines that allocate the outputs, and the names of the arrays that the kernel writes."""
    shared = {p.array: p.type for p in places if p.before is not None}
    outputs = list(zip(results, places, graph.output_nodes, strict=True))
    lines = []
    for array, kind in shared.items():
        total = sum(len(_entries(output)) for _, place, output in outputs if place.array == array)
        lines.append(f"{array} = cp.empty({total}*count, dtype={_kind(kind)})")
    for name, place, output in outputs:
        tail = "".join(f", {d}" for d in output.shape)
        shape = f"(*shape{tail})" if tail else "shape"
        if place.before is None:
            lines.append(f"{name} = cp.empty({shape}, dtype={_kind(place.type)})")
        else:
            stop = place.before + len(_entries(output))
            lines.append(f"{name} = {place.array}[{place.before}*count:{stop}*count].reshape({shape})")
    return lines, list(shared) or results


def _kind(dtype: str) -> str:
    return "bool" if dtype == "bool" else type_text(dtype)
