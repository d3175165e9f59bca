"""Scalar graphs as one kernel: each point of a batch is a thread, which writes every output at the point."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node, topological
from symad.gpu.cupy_library import imports, real_type, type_text
from symad.gpu.printers.array_inputs import input_helpers, inputs_line
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter, Kernels
from symad.numeric.fusion.c_expressions import KernelBody, has_c_form, statements
from symad.numeric.modules.module_text import Names, frame, pack_text, summary
from symad.numeric.passes.memory_layout.packed_entries import constants_of, entries_of, is_scalar
from symad.numeric.targets.module import Arguments
from symad.numeric.targets.statements import indented
from symad.ops.basic.sources import ArrayConstant, Constant, Input
from symad.ops.elementwise.selection import Condition

MAX_DIRECT = 48
"""The most inputs that are kernel parameters, whose space is limited; more are passed in one array.

Origin: the space of a kernel's parameters; not measured on a device.
"""


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
    names = Names(("shape", "values", "count"))
    entry = names.unique(graph.name)
    inputs = [names.of(symbol) for symbol in graph.inputs]
    results = [names.unique(f"result_{k + 1}") for k in range(len(graph.output_nodes))]
    text = KernelBody(real_type(dtype))
    reading = _reads(graph, dtype, text)
    lines = _writes(graph, text)
    types = [_type(o, dtype) for o in graph.output_nodes]
    outputs = [KernelParameter(kind, f"out{k}", raw=True) for k, kind in enumerate(types)]
    preamble = (text.preamble(),) if text.helpers else ()
    kernels = Kernels(dtype)
    name = kernels.named(ElementwiseKernel(reading, tuple(outputs), (*text.lines, *lines), preamble))
    told = summary((), [output.shape for output in graph.output_nodes], graph.structure, ())
    body = indented([told, *_entry(graph, name, inputs, results, dtype)])
    helpers = input_helpers(False).values() if graph.inputs else ()
    blocks = [kernels.definitions("cp"), [f"def {entry}({', '.join(inputs)}):", *body]]
    return entry, frame(graph.name, imports(dtype), helpers, blocks, "CuPy"), kernels


def _type(output: Node, dtype: str) -> str:
    return "bool" if isinstance(output.op, Condition) else dtype


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
        parameters = KernelParameter(dtype, "values", raw=True), KernelParameter("int64", "count")
    for k, node in enumerate(graph.input_nodes):
        source = f"x{k}" if direct else f"values[{k} * count + i]"
        text.lines.append(f"const {text.real} a{k} = ({text.real}){source};")
        text.text[node] = f"a{k}"
    return parameters


def _writes(graph: Graph, text: KernelBody) -> list[str]:
    """The statements that store every entry of every output."""
    entries = [_entries(o) for o in graph.output_nodes]
    values = statements([e for part in entries for e in part], {}, text)
    lines, rest = [], iter(values)
    for k, part in enumerate(entries):
        for j in range(len(part)):
            place = "i" if len(part) == 1 else f"i * {len(part)} + {j}"
            lines.append(f"out{k}[{place}] = {next(rest)};")
    return lines


def _entry(graph: Graph, kernel: str, inputs: Sequence[str], results: Sequence[str], dtype: str) -> list[str]:
    """The lines that broadcast the inputs, allocate the outputs, and run the kernel."""
    call = Arguments(tuple(inputs), tuple(map(str, graph.inputs)), ((),) * len(inputs), ())
    lines = inputs_line(call, [type_text(dtype)] * len(inputs), points=True)
    many = len(inputs) > MAX_DIRECT
    if not inputs:
        lines.append("shape = ()")
    elif many:
        lines += [
            f"values = cp.stack(cp.broadcast_arrays({', '.join(inputs)}))",
            "shape = values.shape[1:]",
        ]
    else:
        lines.append(f"shape = cp.broadcast({', '.join(inputs)}).shape")
    for name, output in zip(results, graph.output_nodes, strict=True):
        tail = "".join(f", {d}" for d in output.shape)
        kind = "bool" if _type(output, dtype) == "bool" else type_text(dtype)
        whole = f"(*shape{tail})" if tail else "shape"
        lines.append(f"{name} = cp.empty({whole}, dtype={kind})")
    if not inputs:
        arguments = [f"cp.empty(0, dtype={type_text(dtype)})", *results, "size=1"]
    elif many:
        count = f"values.size//{len(inputs)}"
        arguments = ["values", count, *results, f"size={count}"]
    else:
        arguments = [*inputs, *results]
    return [*lines, f"{kernel}({', '.join(arguments)})", f"return {pack_text(graph.structure, results)}"]
