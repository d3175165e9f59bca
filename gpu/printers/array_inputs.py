"""Inputs of CuPy code: DLPack is tried first, all arrays must be on one device, and errors name the input.

DLPack passes the current stream to the library that wrote the array, which makes the stream wait
(cupy/_core/dlpack.pyx of 14.2.0, lines 555-575), and it has bfloat16. The CUDA array interface has no type
for bfloat16: such arrays arrive as two bytes without meaning, V2, and are rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from symad.core.dims import format_shape
from symad.numeric.modules.module_text import one_line
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.targets.module import Arguments
from symad.numeric.targets.sizes import size_bindings, size_checks

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


def inputs_line(call: Arguments, kinds: Sequence[str], points: bool = False) -> list[str]:
    """The statement that reads the inputs, in their types ``kinds``; ``points`` may have any shapes.

    Errors show the code's names if those of the user are not distinct.
    """
    if not call.names:
        return []
    given = [
        f'({name}, {kind}, None, ""),' if points
        else f'({name}, {kind}, {len(shape)}, "{one_line(format_shape(shape))}"),'
        for name, kind, shape in zip(call.names, kinds, call.shapes, strict=True)
    ]  # fmt: skip
    titles = tuple(map(one_line, call.titles))
    if titles == call.names or len(set(titles)) < len(titles):
        parts = [f"    {name}={value}" for name, value in zip(call.names, given, strict=True)]
        opened, closed = "_inputs(", ")"
    else:
        parts = [f"    {title!r}: {value}" for title, value in zip(titles, given, strict=True)]
        opened, closed = "_inputs(**{", "})"
    return [f"{call.signature}{',' * (len(call.names) == 1)} = {opened}", *parts, closed]


CHECK = """def _check(name, array, shape):
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
"""


def shape_checks(call: Arguments, writer: ArrayWriter) -> list[str]:
    """The lines that bind each dimension symbol to the length of an axis, and compare all shapes."""
    lines = [
        f"{writer.symbols[b.symbol]} = {b.text(f'{call.names[b.argument]}.shape[{b.axis}]', writer)}"
        for b in size_bindings(call.shapes, call.dims)
    ]
    for name, title, shape in zip(call.names, call.titles, call.shapes, strict=True):
        if shape:
            checked = writer.helper("_check", CHECK)
            lines.append(f"{checked}({title!r}, {name}, {writer.dims(shape)})")
    return lines + size_checks(call.needed, writer.dim)
