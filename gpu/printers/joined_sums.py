"""Several sums over rows in one launch; see `symad.gpu.passes.joined_sums`."""

from __future__ import annotations

from symad.core.graph import Node
from symad.gpu import module_text
from symad.gpu.compile import kernel_text
from symad.gpu.cupy_library import real_type
from symad.gpu.passes.joined_sums import Sums
from symad.gpu.printers.kernels import verbatim
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.recurrences.kernel_text import BITS, ELEMENT
from symad.numeric.targets.statements import Lines

MAX_TOGETHER = 24
"""The most arrays of one launch; a kernel has 4096 bytes of parameters.

Origin: the space of a kernel's parameters.
"""

RUN = '''def _sums(source, arrays, kept, dtype, size, most):
    """The sums of some arrays over all axes but those kept."""
    made = [cp.empty([a.shape[k] for k in axes], dtype=dtype) for a, axes in zip(arrays, kept)]
    table = np.zeros(most, dtype=[("at", np.int64, 17)])["at"]
    first, used = 0, 0
    for a, axes, result in zip(arrays, kept, made):
        others = [k for k in range(a.ndim) if k not in axes]
        length = math.prod(a.shape[k] for k in others)
        if not result.size:
            continue
        row = [a.data.ptr, result.data.ptr, first, result.size, length]
        for part in (axes, others):
            filler = [None]*(3 - len(part))
            row += [1 if k is None else a.shape[k] for k in (*filler, *part)]
            row += [0 if k is None else a.strides[k]//a.itemsize for k in (*filler, *part)]
        table[used] = row
        first += -(-result.size//32)
        used += 1
    if used:
        argument = np.zeros(1, dtype=[("at", np.int64, table.shape)])
        argument["at"][0] = table
        kernel = _module(source).get_function("sums")
        kernel((first,), (256,), (argument, cp.int32(used)), shared_mem=256*size)
    return made
'''


def sums_source(dtype: str) -> str:
    """The kernel for an element type."""
    head = f"#define SYMAD_REAL {real_type(dtype)}\n#define SYMAD_ELEMENT_BITS {BITS[dtype]}\n"
    middle = f"typedef {ELEMENT[dtype]} E;\nconstexpr int ARRAYS = {MAX_TOGETHER};\n"
    return head + kernel_text("prims.h") + middle + kernel_text("sums.cu")


def sums_lines(op: Sums, node: Node, printer: CuPyWriter) -> Lines:
    """The statements that compute all sums, with a limited number in one launch."""
    source = printer.constant_source(verbatim(sums_source(printer.dtype)))
    printer.imports |= {"from functools import lru_cache", "import math", "import numpy as np"}
    printer.helper("_module", module_text.MODULE)
    printer.helpers.setdefault("_sums", RUN)
    lines = []
    size = 8 if printer.dtype == "float64" else 4
    for start in range(0, len(node.args), MAX_TOGETHER):
        some = range(start, min(start + MAX_TOGETHER, len(node.args)))
        names = ", ".join(printer.result_names(some)) + "," * (len(some) == 1)
        arrays = ", ".join(_typed(node.args[k], printer) for k in some)
        kept = ", ".join(str(op.kept[k]) for k in some)
        rest = f"{printer.type_text}, {size}, {MAX_TOGETHER}"
        lines.append(f"{names} = _sums({source}, [{arrays}], [{kept}], {rest})")
    return lines


def _typed(arg: Node, printer: CuPyWriter) -> str:
    text = printer.array_text(arg)
    return text if printer.kernels.type_of(arg) == printer.dtype else f"{text}.astype({printer.type_text})"
