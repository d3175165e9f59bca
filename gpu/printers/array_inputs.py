"""Inputs of CuPy code: DLPack is tried first, all arrays must be on one device, and errors name the input.

DLPack passes the current stream to the library that wrote the array, which makes the stream wait
(cupy/_core/dlpack.pyx of 14.2.0, lines 555-575), and it has bfloat16. The CUDA array interface has no type
for bfloat16: such arrays arrive as two bytes without meaning, V2, and are rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import sympy

from symad.core.graph import Graph
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.targets.sizes import doubtful, size_bindings, size_checks

TAKEN = '''def _taken(name, value, dtype):
    """An input as a CuPy array: the memory of another library on the device is not copied."""
    if isinstance(value, cp.ndarray):
        array = value
    elif hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] in (2, 13):  # CUDA, CUDA managed
        array = cp.from_dlpack(value.detach() if getattr(value, "requires_grad", False) else value)
    elif hasattr(value, "__cuda_array_interface__"):
        array = cp.asarray(value)
    elif hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0:
        return cp.asarray(float(value), dtype=$dtype)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(
            f"{name} is a {kind} outside of the GPU, but this code runs there and takes CuPy arrays: "
            f"pass cupy.asarray({name}), or lower with backend='numpy'"
        )
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    return array
'''

INPUTS = '''def _inputs(**given):
    """The inputs on the current device, in their types; each is given as (value, dtype, rank, shape)."""
    arrays = {name: _taken(name, value, dtype) for name, (value, dtype, _, _) in given.items()}
    current = cp.cuda.Device().id
    if any(array.device.id != current for array in arrays.values()):
        found = ", ".join(f"{name} on device {array.device.id}" for name, array in arrays.items())
        raise ValueError(
            f"the inputs must lie on the current device, {current}: {found}. Copy them there, or call "
            f"within cupy.cuda.Device({max(array.device.id for array in arrays.values())})"
        )
    for name, (_, dtype, rank, shape) in given.items():
        if rank is not None and arrays[name].ndim != rank:
            raise ValueError(f"{name} must have shape {shape}, not {arrays[name].shape}")
        arrays[name] = _typed(name, arrays[name], dtype)
    return arrays.values()
'''

TYPED = '''def _typed(name, array, dtype):
    return array if dtype is None else array.astype(dtype, copy=False)
'''

WHOLE = '''def _typed(name, array, dtype):
    """The array in a type; floats that number rows or classes are looked at first, which waits."""
    made = array if dtype is None else array.astype(dtype, copy=False)
    if dtype == cp.int64 and array.dtype.kind not in "iub" and (made != array).any().item():
        raise IndexError(f"{name} must hold integers: it numbers rows or classes")
    return made
'''


def input_helpers(whole: bool) -> dict[str, str]:
    """The functions that `inputs_line` needs, in order; ``whole`` says that some inputs are integers."""
    dtype = "cp.float64 if dtype == cp.int64 else dtype" if whole else "dtype"
    return {
        "_taken": Template(TAKEN).substitute(dtype=dtype),
        "_typed": WHOLE if whole else TYPED,
        "_inputs": INPUTS,
    }


def inputs_line(rows: Sequence[tuple[str, str, str, str]], titles: Sequence[str] = ()) -> list[str]:
    """The statement that reads the inputs; each is given by name, type, number of axes and shape.

    ``titles`` are the user's names for errors; if missing or not distinct, the code's names are used.
    """
    if not rows:
        return []
    names = [name for name, *_ in rows]
    given = [f'({name}, {kind}, {rank}, "{shape}"),' for name, kind, rank, shape in rows]
    if list(titles) == names or len(set(titles)) < len(names):
        parts = [f"    {name}={value}" for name, value in zip(names, given, strict=True)]
        opened, closed = "_inputs(", ")"
    else:
        parts = [f"    {title!r}: {value}" for title, value in zip(titles, given, strict=True)]
        opened, closed = "_inputs(**{", "})"
    return [f"{', '.join(names)}{',' * (len(rows) == 1)} = {opened}", *parts, closed]


CHECK = """def _check(name, array, shape):
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
"""


def shape_checks(
    graph: Graph, writer: ArrayWriter, inputs: Sequence[str], needed: Sequence[sympy.Expr]
) -> list[str]:
    """The lines that bind each dimension symbol to the length of an axis, and compare all shapes."""
    lines = [
        f"{writer.symbols[b.symbol]} = {b.text(f'{inputs[b.argument]}.shape[{b.axis}]', writer)}"
        for b in size_bindings([node.shape for node in graph.input_nodes], sorted(graph.dims, key=str))
    ]
    for name, node, symbol in zip(inputs, graph.input_nodes, graph.inputs, strict=True):
        if node.shape:
            checked = writer.helper("_check", CHECK)
            lines.append(f"{checked}({str(symbol)!r}, {name}, {writer.dims(node.shape)})")
    sizes = (*needed, *doubtful(node.shape for node in graph.nodes))
    return lines + size_checks(sizes, writer.dim)
