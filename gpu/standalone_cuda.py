"""Standalone CUDA: a file of all kernels of a function and one that launches them, and a header for C."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.identifiers import ascii_identifier
from symad.core.structures import leaves, pack
from symad.errors import LoweringError
from symad.gpu.passes.integers import integer_inputs
from symad.gpu.standalone_kernels import C_TYPES, HALVES, Value, number
from symad.gpu.traced_launches import CAPABILITY, Launch, Memory, Trace, traced
from symad.numeric.compiler.c_header import checked_c_name
from symad.numeric.kernel import Kernel, leaves_of_result
from symad.numeric.modules.module_text import one_line
from symad.numeric.standalone_c import all_numbers
from symad.numeric.targets.c_module import c_name

HOST_TYPES = {**C_TYPES, "float16": "uint16_t", "bfloat16": "uint16_t", "bool": "unsigned char"}
"""The types of a C header: half precisions are their bits."""


def standalone(kernel: Kernel) -> tuple[str, str]:
    """The CUDA source of a lowered function, and its header.

    All sizes are numbers. The launcher takes device addresses, memory for intermediate values, and a stream,
    and does not wait. Tiles are those for compute capability 8.0 and above with 99 KiB of shared memory.

    Raises:
        LoweringError: a size is open, arguments are packed, or the code needs more than kernels of symad.
    """
    origin = kernel.origin
    if origin is None or dict(origin.options).get("packed"):
        raise LoweringError(f"{kernel.name} is packed, but a .cu file takes arrays: lower it without packed")
    graph = origin.graph
    all_numbers(graph, {}, "lower(f.at({n: 4}), ...)")
    given: list[Memory] = []

    whole = integer_inputs(graph)

    def arguments(trace: Trace) -> list[Value]:
        for node in graph.input_nodes:
            kind = np.int64 if node in whole else _dtype(origin.dtype)
            given.append(trace.empty(tuple(map(int, node.shape)), kind))
        rest = iter(given)
        return [pack(a.structure, [next(rest) for _ in range(leaves(a.structure))]) for a in graph.arguments]

    trace, made = traced(kernel, arguments)
    results: list[Memory] = []
    for result in leaves_of_result(made):
        results.append(_own(trace, trace.known(result), [*given, *results]))
    names = [f"in_{ascii_identifier(one_line(s))}" for s in graph.inputs]
    if len(set(names)) < len(names):
        names = [f"in_{k}" for k in range(1, len(given) + 1)]
    outer = dict(zip(names, given, strict=True)), {f"out_{k}": r for k, r in enumerate(results, 1)}
    if trace.flags:
        outer[1]["out_wrong_row"] = trace.flags[0]
    places = _places(trace, {**outer[0], **outer[1]})
    return _texts(checked_c_name(c_name(kernel.name)), trace.launches, places, *outer)


def _dtype(name: str) -> Value:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)


def _start(memory: Memory) -> int:
    return int(memory.ctypes.data)


def _own(trace: Trace, result: Memory, taken: list[Memory]) -> Memory:
    """A result in memory of its own, which the caller gives: copied if a part, an input or a constant."""
    others = [*map(_start, taken), *trace.constants]
    whole = any(_start(m) == _start(result) not in others and m.nbytes == result.nbytes for m in trace.memory)
    if whole and result.flags.c_contiguous:
        return result
    made = trace.empty(result.shape, result.dtype)
    made[...] = result
    return made


# ---- where arrays lie -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Addresses:
    """Where the arrays of a function lie.

    Attributes:
        arrays: all arrays, by address while the launches were written down.
        texts: the text of their addresses in the file, by that address.
        constants: the names and elements of the arrays whose elements are known.
        room: the bytes of the workspace.
    """

    arrays: tuple[Memory, ...]
    texts: dict[int, str]
    constants: dict[str, np.ndarray[Value, Value]]
    room: int = 0

    def start_of(self, address: int) -> int:
        """The start of the array that holds an address; 0 if none does."""
        k = bisect_right(self.arrays, address, key=_start) - 1
        within = k >= 0 and address < _start(self.arrays[k]) + max(self.arrays[k].nbytes, 1)
        return _start(self.arrays[k]) if within else 0

    def inside(self, structure: np.ndarray[Value, Value]) -> list[tuple[int, int]]:
        """The addresses of arrays in a structure, with their places in bytes: no other number is so large."""
        words = np.frombuffer(structure.tobytes()[: structure.nbytes // 8 * 8], np.int64).tolist()
        return [(8 * k, word) for k, word in enumerate(words) if self.start_of(word)]

    def read(self, launch: Launch) -> list[int]:
        """The starts of the arrays that a launch has addresses of."""
        found = []
        for value in launch.arguments:
            if isinstance(value, Memory):
                found.append(_start(value))
            elif isinstance(value, np.ndarray):
                found += [address for _, address in self.inside(value)]
        return list(map(self.start_of, found))

    def address(self, address: int) -> str:
        """The text of an address."""
        start = self.start_of(address)
        return f"(char *){self.texts[start]}" + (f" + {address - start}" if address > start else "")


def _places(trace: Trace, outer: Mapping[str, Memory]) -> Addresses:
    """Places for all arrays: of the caller, constant, or in the workspace while they are in use."""
    places = Addresses(tuple(sorted(trace.memory, key=_start)), {_start(m): n for n, m in outer.items()}, {})
    used: dict[int, list[int]] = {}
    for k, launch in enumerate(trace.launches):
        for start in places.read(launch):
            used.setdefault(start, [k, k])[1] = k
    room, placed = 0, list[tuple[int, int, int, int]]()
    for memory in trace.memory:
        start, size = _start(memory), -(-memory.nbytes // 256) * 256
        if start in places.texts or start not in used:
            continue
        if start in trace.constants:
            name = f"constant_{len(places.constants)}"
            places.constants[name], places.texts[start] = trace.constants[start], f"address_of({name})"
            continue
        first, last = used[start]
        at = 0
        for begin, end in sorted((b, e) for b, e, f, t in placed if f <= last and first <= t):
            at = max(at, end) if begin < at + size else at
        placed.append((at, at + size, first, last))
        places.texts[start], room = f"workspace + {at}", max(room, at + size)
    return Addresses(places.arrays, places.texts, places.constants, room)


# ---- the texts ------------------------------------------------------------------------------------

START = f"""#include <cuda_runtime.h>
#include <math_constants.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDA_ARCH__
#define CAPABILITY __CUDA_ARCH__
#else  // the compiler reads the text for the host, too
#define CAPABILITY {CAPABILITY}0
#endif
"""
ADDRESS = """
static char *address_of(const void *symbol) {
  void *found = nullptr;
  cudaGetSymbolAddress(&found, symbol);
  return (char *)found;
}
"""
LAUNCH = """
template <class... P>
static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments, size_t shared,
                          cudaStream_t stream) {
  if (shared > 49152) {
    const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t status = cudaFuncSetAttribute(kernel, attribute, int(shared));
    if (status != cudaSuccess) return status;
  }
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
"""

ROWS = """
   out_wrong_row is 0 in the end, or else a row number was out of range, and counted as 0: then it is the
   length of the axis plus 2**48 times the number of the place."""

HEADER = """#ifndef {guard}
#define {guard}
#include <stdint.h>

/* Bytes of device memory for intermediate values, at a multiple of 256 bytes. */
#define {workspace}

#ifdef __cplusplus
extern "C" {{
#endif

struct CUstream_st; /* what a cudaStream_t points to */

/* All arrays are contiguous, row after row, on the current device, at multiples of 16 bytes:
{arrays}{rows}
   {count} launches on a stream, each with at most {shared} bytes of dynamic shared memory; no wait.
   Returns 0, or the cudaError_t of the launch that failed. Source {digest}. */
{prototype};

#ifdef __cplusplus
}}
#endif
#endif
"""


def _texts(
    name: str, launches: Sequence[Launch], places: Addresses, given: Mapping[str, Memory],
    results: Mapping[str, Memory],
) -> tuple[str, str]:  # fmt: skip
    """The source and the header."""
    kernels = dict.fromkeys(x.text for x in launches if x.text)
    spaces = {text: f"text_{k}" for k, text in enumerate(kernels)}
    parameters = [f"const {HOST_TYPES[a.dtype.name]} *{n}" for n, a in given.items()]
    parameters += [f"{HOST_TYPES[a.dtype.name]} *{n}" for n, a in results.items()]
    prototype = f"int {name}({', '.join([*parameters, 'void *workspace', 'struct CUstream_st *stream'])})"
    source = "\n".join([
        f"// {name}: {len(launches)} launches, for compute capability {CAPABILITY / 10} and above.",
        START,
        *(text for half, text in HALVES.items() if any(f"{half} *" in t for t in spaces)),
        *(_constant(n, values) for n, values in places.constants.items()),
        *(_isolated(text, space) for text, space in spaces.items()),
        ADDRESS * bool(places.constants) + LAUNCH,
        f'extern "C" {prototype} {{\n  cudaError_t status = cudaSuccess;',
        *(f"  // {k}: {_launch(launch, places, spaces)}" for k, launch in enumerate(launches, 1)),
        "  return status;\n}\n",
    ])  # fmt: skip
    header = HEADER.format(
        guard=f"{name.upper()}_H",
        workspace=f"{name.upper()}_WORKSPACE {max(places.room, 256)}",
        arrays="\n".join(f"   {n}: {a.dtype}, shape {a.shape}" for n, a in {**given, **results}.items()),
        rows=ROWS if "out_wrong_row" in results else "",
        count=len(launches),
        shared=max((x.shared for x in launches), default=0),
        digest=hashlib.sha256(source.encode()).hexdigest()[:12],
        prototype=prototype,
    )
    return source, header


def _launch(launch: Launch, places: Addresses, spaces: Mapping[str, str]) -> str:
    """A launch, with the variables that hold the arguments."""
    if not launch.text:
        (memory,) = launch.arguments
        call = f"cudaMemsetAsync({places.address(_start(memory))}, 0, {memory.nbytes}, stream)"
        return f"zeros\n  if ((status = {call}) != cudaSuccess) return status;"
    values = [_argument(f"a{k}", a, places) for k, a in enumerate(launch.arguments)]
    sizes = ", ".join(f"dim3{{{', '.join(map(str, axes))}}}" for axes in (launch.grid, launch.block))
    kernel = f"{spaces[launch.text]}::{launch.kernel}"
    return "\n".join([
        f"{launch.kernel}\n  {{",
        *(f"    {line}" for line in values),
        f"    void *arguments[] = {{{', '.join(f'&a{k}' for k in range(len(values)))}}};",
        f"    status = launch({kernel}, {sizes}, arguments, {launch.shared}, stream);",
        "    if (status != cudaSuccess) return status;\n  }",
    ])  # fmt: skip


def _argument(name: str, value: Value, places: Addresses) -> str:
    """The variable that holds an argument of a kernel."""
    if isinstance(value, Memory):
        return f"char *{name} = {places.address(_start(value))};"
    if isinstance(value, np.ndarray):
        held, lines = bytearray(value.tobytes()), []
        for offset, address in places.inside(value):
            held[offset : offset + 8] = bytes(8)  # an address of this process, which differs from run to run
            lines.append(f"    {{ char *p = {places.address(address)}; memcpy({name} + {offset}, &p, 8); }}")
        lines.insert(0, f"alignas(16) unsigned char {name}[] = {{{', '.join(map(str, held))}}};")
        return "\n".join(lines)
    plain = np.asarray(value)  # numbers of Python are 8 bytes long, as in CuPy
    return f"{C_TYPES[plain.dtype.name]} {name} = {number(plain, plain.dtype.name)};"


def _constant(name: str, values: np.ndarray[Value, Value]) -> str:
    """An array in device memory, as bits."""
    words = np.frombuffer(values.tobytes() + b"\0" * (-values.nbytes % 4), np.uint32).tolist()
    told, listed = f"// {values.dtype.name}, shape {values.shape}", ", ".join(map(hex, words or [0]))
    return f"{told}\n__device__ alignas(256) const unsigned {name}[] = {{{listed}}};"


def _isolated(text: str, space: str) -> str:
    """A text in a namespace of its own, whose macros end with it."""
    lines = [line.split() for line in text.splitlines() if line.startswith("#define ")]
    macros = dict.fromkeys(words[1].partition("(")[0] for words in lines)
    inside = text.replace('extern "C" __global__', "__global__").replace("__CUDA_ARCH__", "CAPABILITY")
    return "\n".join([f"namespace {space} {{", inside, "}", *(f"#undef {m}" for m in macros), ""])
