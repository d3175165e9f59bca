"""Random numbers on the device: every element computes its own block of Philox 4×32-10.

The integer arithmetic is that of `symad.numbers.philox`, so that the bits are equal. Half precisions are
rejected: between 1/2 and 1, a float16 has 2¹⁰ steps and a bfloat16 2⁷.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from symad.errors import LoweringError
from symad.gpu.cupy_library import HALVES, OnDevice, real_type
from symad.gpu.printers.indices import rows_of
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter
from symad.gpu.printers.printing import CuPyWriter
from symad.numeric.program.expressions import Compute
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Text, Texts
from symad.ops.arrays.random import FoldIn, Uniform

PHILOX = """static __device__ void symad_philox(unsigned int *c, unsigned int k0, unsigned int k1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long left = c[0] * 0xD2511F53ull, right = c[2] * 0xCD9E8D57ull;
    c[0] = (unsigned int)(right >> 32) ^ c[1] ^ k0;
    c[2] = (unsigned int)(left >> 32) ^ c[3] ^ k1;
    c[1] = (unsigned int)right;
    c[3] = (unsigned int)left;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}"""

WORDS = """const unsigned int k0 = (unsigned int)(key[4*row] | key[4*row + 1] << 16);
const unsigned int k1 = (unsigned int)(key[4*row + 2] | key[4*row + 3] << 16);"""

UNIFORM = f"""const long long row = i / count, place = i % count;
const long long block = place / 2;
{WORDS}
unsigned int c[4] = {{(unsigned int)block, (unsigned int)(block >> 32), 0u, 0u}};
symad_philox(c, k0, k1);
const unsigned int high = c[place % 2 * 2], low = c[place % 2 * 2 + 1];
u = $value;"""

VALUES = {
    "float32": "((float)(high >> 9) + 0.5f) * 1.1920928955078125e-07f",
    "float64": "((double)((unsigned long long)high << 20 | low >> 12) + 0.5) * 2.220446049250313e-16",
}

FOLD_IN = f"""const long long row = i / 4, place = i % 4;
const long long block = number[row];
{WORDS}
unsigned int c[4] = {{(unsigned int)block, (unsigned int)(block >> 32), 0u, 1u}};
symad_philox(c, k0, k1);
limb = ($real)(c[place / 2] >> place % 2 * 16 & 65535u);"""

RANDOM = """def _uniform(kernel, words, shape, dtype):
    result = cp.empty((*words.shape[:-1], *shape), dtype=dtype)
    if result.size:
        kernel(words, math.prod(shape), result)
    return result
"""

FOLDED = """def _fold_in(kernel, words, numbers, dtype):
    result = cp.empty(words.shape, dtype=dtype)
    if result.size:
        kernel(words, numbers, result)
    return result
"""

WORDS_OF_KEY = KernelParameter("int64", "key", raw=True)
KEY = "a random key is four integers in 0..65535"
NUMBER = "fold_in takes integers from 0 up"


def _kernel(inputs: Sequence[KernelParameter], output: str, body: str, printer: CuPyWriter) -> str:
    """The name of an elementwise kernel with this body."""
    if printer.dtype in HALVES:
        raise LoweringError(
            f"random numbers need float32 or float64: {printer.dtype} has too few steps in (0, 1)"
        )
    outputs = (KernelParameter(printer.dtype, output),)
    return printer.kernels.named(ElementwiseKernel(tuple(inputs), outputs, (body,), (PHILOX,)))


@write.dispatch
def uniform_cupy(op: Uniform, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    body = Template(UNIFORM).substitute(value=VALUES.get(writer.dtype, ""))
    kernel = _kernel([WORDS_OF_KEY, KernelParameter("int64", "count")], "u", body, writer)
    helper = writer.helper("_uniform", RANDOM)
    writer.imports.add("import math")
    words = rows_of(node.args, (65536,), False, [KEY], writer, ValueError)
    return Text(f"{helper}({kernel}, {words}, {writer.dims(op.shape)}, {writer.type_text})")


@write.dispatch
def fold_in_cupy(op: FoldIn, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    body = Template(FOLD_IN).substitute(real=real_type(writer.dtype))
    kernel = _kernel([WORDS_OF_KEY, KernelParameter("int64", "number", raw=True)], "limb", body, writer)
    helper = writer.helper("_fold_in", FOLDED)
    words = rows_of(node.args[:1], (65536,), False, [KEY], writer, ValueError)
    numbers = rows_of(node.args[1:], (2**63 - 1,), False, [NUMBER], writer, ValueError)
    return Text(f"{helper}({kernel}, {words}, {numbers}, {writer.type_text})")
