"""Generated kernels in the text of a module: one per distinct body, shared by all its calls."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from symad.core.graph import Graph, Node, Op, rebuild
from symad.gpu.cupy_library import real_type
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import KernelBody, statements
from symad.numeric.fusion.nest import Nest
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.selection import Condition


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of a kernel that CuPy completes: the element of an array, or all of a raw array."""

    dtype: str
    name: str
    raw: bool = False

    def __str__(self) -> str:
        return f"{'raw ' * self.raw}{self.dtype} {self.name}"


@dataclass(frozen=True)
class ElementwiseKernel:
    """A kernel that runs the lines of a body for every element.

    CuPy writes its loop around the body, and so does a .cu file (`symad.gpu.standalone_kernels`).
    """

    inputs: tuple[KernelParameter, ...]
    outputs: tuple[KernelParameter, ...]
    body: tuple[str, ...]
    preamble: tuple[str, ...] = ()

    def constructor(self, name: str) -> str:
        """The call that makes it in CuPy."""
        given = [_declared(self.inputs), _declared(self.outputs), block(self.body), quoted(name)]
        return f"ElementwiseKernel({', '.join([*given, *_preamble(self.preamble)])})"


@dataclass(frozen=True)
class SumKernel:
    """A kernel that adds up the expression ``mapped`` over axes; ``after`` is computed from the sum ``a``."""

    inputs: tuple[KernelParameter, ...]
    output: KernelParameter
    mapped: str
    after: str
    real: str
    preamble: tuple[str, ...]

    def constructor(self, name: str) -> str:
        """The call that makes it in CuPy."""
        given = [_declared(self.inputs), _declared((self.output,)), quoted(self.mapped), quoted("a + b")]
        given += [quoted(f"{self.output.name} = {self.after}"), quoted("0"), quoted(name)]
        given.append(f'reduce_type="{self.real}"')
        return f"ReductionKernel({', '.join([*given, *_preamble(self.preamble)])})"


def _declared(parameters: Sequence[KernelParameter]) -> str:
    return quoted(", ".join(map(str, parameters)))


def _preamble(lines: Sequence[str]) -> list[str]:
    return [f"preamble={block(lines)}"] if lines else []


@dataclass
class Kernels:
    """The kernels of one module, by their text."""

    dtype: str
    names: dict[ElementwiseKernel | SumKernel, str] = field(default_factory=dict)
    """The kernels that CuPy completes, and their names."""
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    """The complete CUDA functions, by name and text."""

    def elementwise(self, body: Graph, types: Sequence[str]) -> str:
        """The name of an `ElementwiseKernel` for a body, with arguments of these types."""
        text = KernelBody(real_type(self.dtype))
        results = statements(body.output_nodes, self._locals(body, types, text), text)
        lines = [*text.lines, *(f"out{k} = {result};" for k, result in enumerate(results))]
        kinds = [output_type(o.op, self.dtype) for o in body.output_nodes]
        outputs = tuple(KernelParameter(kind, f"out{k}") for k, kind in enumerate(kinds))
        preamble = (text.preamble(),) if text.helpers else ()
        return self.named(ElementwiseKernel(_numbered(types), outputs, tuple(lines), preamble))

    def sum(self, nest: Nest, total: Node, types: Sequence[str]) -> str:
        """The name of a `ReductionKernel` that computes the only sum of a nest, and a function of the sum."""
        text = KernelBody(real_type(self.dtype))
        names = {local: f"x{k}" for k, local in enumerate(nest.body.input_nodes)}
        (result,) = statements(total.args, names, text)
        (last,) = nest.body.output_nodes
        lines = [*text.lines, f"return {result};"]
        kinds = [t if t in ("bool", "int64") else text.real for t in types]
        c_kinds = [{"int64": "long long"}.get(kind, kind) for kind in kinds]
        signature = ", ".join(f"{kind} x{k}" for k, kind in enumerate(c_kinds))
        functions = [f"static __device__ {text.real} mapped({signature}) {{", *indent(lines), "}"]
        casts = ", ".join(f"({kind})x{k}" for k, kind in enumerate(c_kinds))
        after = "a" if last is total else "finished(a)"
        if last is not total:
            functions.append(f"static __device__ {text.real} finished({text.real} a) {{")
            ending = KernelBody(text.real)
            number = Node.of(Local(0, ()))
            (end,) = statements(rebuild((last,), {total: number}), {number: "a"}, ending)
            functions += [*indent([*ending.lines, f"return {end};"]), "}"]
            for name in ending.helpers:
                text.helper(name)
        preamble = (text.preamble(), *functions) if text.helpers else tuple(functions)
        output = KernelParameter(self.dtype, "out0")
        return self.named(SumKernel(_numbered(types), output, f"mapped({casts})", after, text.real, preamble))

    def named(self, kernel: ElementwiseKernel | SumKernel) -> str:
        """The name of a kernel."""
        return self.names.setdefault(kernel, f"_kernel_{len(self.names) + 1}")

    def by_name(self) -> dict[str, ElementwiseKernel | SumKernel]:
        """The kernels that CuPy completes, by their names in the module."""
        return {name: kernel for kernel, name in self.names.items()}

    def raw(self, function: str, source: str) -> str:
        """The name of a `RawKernel`."""
        return self.sources.setdefault((function, source), f"_kernel_of_{function}_{len(self.sources) + 1}")

    def definitions(self, prefix: str) -> list[str]:
        """The module's statements that make the kernels."""
        named = self.names.items()
        lines = [f"{name} = {prefix}.{kernel.constructor(name.strip('_'))}" for kernel, name in named]
        for (function, source), name in self.sources.items():
            lines.append(f"{name} = {prefix}.RawKernel({verbatim(source)}, {quoted(function)})")
        return lines

    def _locals(self, body: Graph, types: Sequence[str], text: KernelBody) -> dict[Node, str]:
        """The texts of the arguments, converted first if their type is not the body's."""
        names: dict[Node, str] = {}
        for k, (local, kind) in enumerate(zip(body.input_nodes, types, strict=True)):
            names[local] = f"x{k}"
            if kind in ("float16", "bfloat16", "int64"):
                text.lines.append(f"const {text.real} a{k} = ({text.real})x{k};")
                names[local] = f"a{k}"
        return names


def output_type(op: Op, dtype: str) -> str:
    """The type of the elements that an op computes."""
    flag = isinstance(op, Condition) or (isinstance(op, Constant) and isinstance(op.value, bool))
    return "bool" if flag else dtype


def _numbered(types: Sequence[str]) -> tuple[KernelParameter, ...]:
    return tuple(KernelParameter(kind, f"x{k}") for k, kind in enumerate(types))


def quoted(text: str) -> str:
    """A one-line string literal."""
    return f'"{text}"'


def block(lines: Sequence[str]) -> str:
    """A string literal over several lines."""
    return '"""\n' + "\n".join(indent(lines)) + '\n"""'


def verbatim(text: str) -> str:
    """A string literal with a file's exact text."""
    return f'r"""{text}"""'


def indent(lines: Sequence[str]) -> list[str]:
    """The lines one level deeper."""
    return [textwrap.indent(line, "  ") for line in lines]
