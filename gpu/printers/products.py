"""Matrix products in CuPy code: one cuBLAS call for a stack of them, with sums in float32 or float64.

CuPy's ``@`` multiplies stacks of float16 in float32 after two copies, and does not multiply stacks of
bfloat16 (cupy/_core/_routines_linalg.pyx of 14.2.0, lines 901 and 992; 13.6.0: 889 and 980). The call here
supports all four types, transposes by flags, and repeats an operand along a batch by a stride of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from symad.gpu import module_text
from symad.gpu.compile import kernel_files
from symad.gpu.cupy_library import OnDevice, real_type
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.recurrences.kernel_text import BITS, ELEMENT
from symad.gpu.settings import current
from symad.numeric.program.expressions import Compute
from symad.numeric.targets.linear_algebra import write_einsum
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Text, Texts
from symad.ops.basic.contraction import Einsum

OPERAND = '''def _operand(x):
    """An array of matrices as cuBLAS reads it: array, transposed, leading dimension, distance of matrices."""
    count, rows, columns = x.shape
    size = x.itemsize
    for turned, high, wide, row, column in (
        (False, rows, columns, x.strides[1], x.strides[2]), (True, columns, rows, x.strides[2], x.strides[1]),
    ):
        lead = wide if high == 1 else row//size
        dense = column == size or wide == 1
        if dense and wide <= lead < 2**31 and lead*size in (row, wide*size) and x.strides[0] >= 0:
            return x, turned, lead, 0 if count == 1 else x.strides[0]//size
    return cp.ascontiguousarray(x), False, columns, rows*columns
'''

PRODUCT = '''def _product(a, a_axes, b, b_axes, batches, summed, order=None):
    """Σ_k a[batch, m, k] b[batch, k, n], its axes put in this order first: (batch, m, n)."""
    a, b = a.transpose(a_axes), b.transpose(b_axes)
    batch, high, deep = a.shape[:batches], a.shape[batches:a.ndim - summed], a.shape[a.ndim - summed:]
    wide = b.shape[batches + summed:]
    count, m, k, n = (math.prod(part) for part in (batch, high, deep, wide))
    result = cp.empty((*batch, *high, *wide), dtype=a.dtype)
    if result.size and k:
$body    else:
        result.fill(0)
    return result if order is None else result.transpose(order)
'''
"""A product, with one of the two bodies that follow."""

CUBLAS = """\
        a, turned_a, lead_a, step_a = _operand(a.reshape(count, m, k))
        b, turned_b, lead_b, step_b = _operand(b.reshape(count, k, n))
        one, zero = np.ones(1, np.$real), np.zeros(1, np.$real)
        kind, compute = cp.cuda.runtime.$kind, cublas.$compute
        cublas.gemmStridedBatchedEx(  # of the transposes, since cuBLAS has columns one after another
            cp.cuda.device.get_cublas_handle(), int(turned_b), int(turned_a), n, m, k, one.ctypes.data,
            b.data.ptr, kind, lead_b, step_b, a.data.ptr, kind, lead_a, step_a, zero.ctypes.data,
            result.data.ptr, kind, n, m*n, count, compute, cublas.CUBLAS_GEMM_DEFAULT,
        )
"""

OWN = """\
        a, b = a.reshape(count, m, k), b.reshape(count, k, n)
        operands = [
            np.array([(x.data.ptr, *(x.strides[k]//x.itemsize for k in axes))], "i8,i8,i8,i8")
            for x, axes in ((a, (0, 1, 2)), (b, (0, 2, 1)))
        ]
        grid = -(-m//64), -(-n//64), count
        if max(grid[1:]) > 65535:
            raise ValueError(f"a product of {count} matrices with {n} columns is too large to be recorded")
        args = (*operands, result, cp.int32(m), cp.int32(n), cp.int32(k))
        shared = 16384 if a.itemsize == 8 else 8192
        _module($source).get_function("matrix_product")(grid, (128,), args, shared_mem=shared)
"""

TYPES = {
    "float64": ("float64", "CUDA_R_64F", "CUBLAS_COMPUTE_64F"),
    "float32": ("float32", "CUDA_R_32F", "CUBLAS_COMPUTE_32F"),
    "float16": ("float32", "CUDA_R_16F", "CUBLAS_COMPUTE_32F"),
    "bfloat16": ("float32", "CUDA_R_16BF", "CUBLAS_COMPUTE_32F"),
}
"""The types of the factors alpha and beta and of the arrays, and the arithmetic."""


@write.dispatch
def einsum_cupy(op: Einsum, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    """Products with a sum by cuBLAS; other products and sums of one array as for NumPy."""
    if len(args) == 2 and set(op.inputs[0]) & set(op.inputs[1]) - set(op.output):
        return Text(_by_cublas(op, [a.text for a in args], writer))
    return write_einsum(op, target, node, args, writer)


def _by_cublas(op: Einsum, args: Sequence[str], printer: CuPyWriter) -> str:
    """The call; each label must be in both operands or in the result (`symad.gpu.passes.fusion`)."""
    (left, right), (a, b) = op.inputs, args
    own = [label for label in op.output if (label in left) != (label in right)]
    if own and own[0] in right:  # the operand whose labels come first in the result is the first factor
        left, right, a, b = right, left, b, a
    batch = [label for label in op.output if label in left and label in right]
    summed = [label for label in left if label in right and label not in op.output]
    high = [label for label in op.output if label in left and label not in right]
    wide = [label for label in op.output if label in right and label not in left]
    first = tuple(left.index(label) for label in (*batch, *high, *summed))
    second = tuple(right.index(label) for label in (*batch, *summed, *wide))
    made = [*batch, *high, *wide]
    order = tuple(made.index(label) for label in op.output)
    parts = [a, str(first), b, str(second), str(len(batch)), str(len(summed))]
    if order != tuple(range(len(made))):
        parts.append(f"order={order}")
    return f"{product_helper(printer)}({', '.join(parts)})"


def product_helper(printer: CuPyWriter) -> str:
    """The name of the helper that calls cuBLAS, or of the kernel that replaces it in recorded graphs."""
    if current().capture:
        return _own_product_helper(printer)
    printer.imports |= {"import math", "import numpy as np", "from cupy_backends.cuda.libs import cublas"}
    printer.helpers.setdefault("_operand", OPERAND)
    real, kind, compute = TYPES[printer.dtype]
    if current().tf32 and printer.dtype == "float32":
        compute = "CUBLAS_COMPUTE_32F_FAST_TF32"
    body = Template(CUBLAS).substitute(real=real, kind=kind, compute=compute)
    text = Template(PRODUCT).substitute(body=body)
    printer.helpers.setdefault("_product", text)
    return "_product"


def product_source(dtype: str) -> list[str]:
    """The kernel of products for an element type, in pieces."""
    head = f"#define SYMAD_REAL {real_type(dtype)}\n#define SYMAD_ELEMENT_BITS {BITS[dtype]}\n"
    tiles = kernel_files("prims.h", "tile.h", "matrix.h", "product.h")
    return [head, *tiles, f"typedef {ELEMENT[dtype]} E;\n", *kernel_files("matrix_product.cu")]


def _own_product_helper(printer: CuPyWriter) -> str:
    printer.imports |= {"import math", "import numpy as np", "from functools import lru_cache"}
    printer.helper("_module", module_text.MODULE)
    source = printer.constant_source(product_source(printer.dtype))
    body = Template(OWN).substitute(source=source)
    return str(printer.helper("_product", Template(PRODUCT).substitute(body=body)))
