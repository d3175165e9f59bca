"""The memory of large arrays is recycled between statements and between calls.

The operating system maps a large block of memory page by page, each at its first use, and unmaps it when it
is freed. A gradient that allocates a few megabytes of arrays may spend a third of its time on that. Instead,
each thread keeps its blocks. A block is free when its reference count shows that no array is a view of it;
so results that the caller keeps are never overwritten, and no plan is needed. The blocks of a thread take at
most twice the memory in use, and at most a tenth more than was ever in use at one time. Arrays begin on
cache lines: arithmetic on arrays in the cache is up to twice as fast there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from string import Template
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from symad.core.dims import Shape
from symad.core.process import hold_while_forking
from symad.numeric.kernel import compile_source
from symad.numeric.program.statements import Allocate
from symad.numeric.program_passes.memory.reuse import most_elements
from symad.numeric.targets.target import MatrixProduct

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.writer import ArrayWriter

FUNCTIONS = '''def _count(pair):
    """The number of references to a block of memory; with it comes where a cache line begins."""
    return sys.getrefcount(pair[0])


_FREE = _count((np.empty(0, np.uint8), 0))


def _new(shape, dtype, least=0):
    """A new array; its memory is that of an array that is gone, if there is one of the size.

    There is room for ``least`` elements: arrays of different sizes then use the same memory.
    """
    try:
        kept = _memory.blocks
    except AttributeError:
        kept, _memory.most = {}, 0
        _memory.blocks = kept
    size = max(math.prod(shape), least)*np.dtype(dtype).itemsize
    for pair in kept.get(size, ()):
        if sys.getrefcount(pair[0]) == _FREE:
            return np.ndarray(shape, dtype, *pair)
    used = {n: [_count(pair) != _FREE for pair in pairs] for n, pairs in kept.items()}
    every = size + sum(n*len(u) for n, u in used.items())
    needed = size + sum(n*sum(u) for n, u in used.items())
    _memory.most = max(_memory.most, needed)
    if every > min(2*needed, 1.1*_memory.most):
        larger = min((n for n, u in used.items() if size < n <= 4*size and not all(u)), default=None)
        if larger is not None:
            return np.ndarray(shape, dtype, *kept[larger][used[larger].index(False)])
        for n, u in used.items():
            kept[n] = list(itertools.compress(kept[n], u))
    block = np.empty(size + 64, np.uint8)
    kept.setdefault(size, []).append((block, -block.ctypes.data % 64))
    return np.ndarray(shape, dtype, *kept[size][-1])
'''


def kept_by(holder: str) -> str:
    """The source of `_new`; the expression ``holder`` makes the object whose attributes are the blocks."""
    return f"_memory = {holder}\n\n\n{FUNCTIONS}"


NEW = kept_by("threading.local()")

PRODUCT = '''def _product(a, b, least=0):
    """a @ b, in memory that is used again."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) if a.ndim + b.ndim > 4 else ()
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return $multiply(a, b, _new((*lead, *a.shape[-2:-1], *columns), a.dtype, least))
'''


@cache
def new_array(holder: str = "threading.local()") -> Callable[..., np.ndarray]:
    """The function `_new` of generated code, for compiled code that the library calls itself."""
    imports = "import itertools, math, sys, threading, types\nimport numpy as np\n\n"
    made: Callable[..., np.ndarray] = compile_source("_new", imports + kept_by(holder)).function
    return made


_one_at_a_time = Lock()
hold_while_forking(_one_at_a_time)


def shared_memory(size: int) -> np.ndarray:
    """A byte array from memory that all threads of the process share.

    It is for arrays that one thread allocates and another one frees. The C library returns the freed memory
    of threads to the system, so that new pages would cost more than the writes to the array.
    """
    new = new_array("types.SimpleNamespace()")
    with _one_at_a_time:
        return new((size,), np.uint8)


def _least(shape: Shape, writer: ArrayWriter) -> str:
    """The argument ``least``, if the shape changes from block to block: the elements of the largest block."""
    most = 0 if all(isinstance(d, int) for d in shape) else most_elements(shape, writer.bounds)
    return f", {most}" if most else ""


def with_new(writer: ArrayWriter) -> str:
    """The name of the helper that allocates arrays in recycled memory."""
    writer.imports |= {"import itertools", "import math", "import sys", "import threading"}
    return writer.helper("_new", NEW)


def new_text(shape: Shape, writer: ArrayWriter) -> str:
    """The call that allocates an array in recycled memory."""
    return f"{with_new(writer)}({writer.dims(shape)}, {writer.type_text}{_least(shape, writer)})"


def allocation(made: Allocate, writer: ArrayWriter) -> str:
    """The call that allocates an array that other statements fill."""
    shape, turn = made.value.shape, ""
    if made.swapped:
        shape, turn = (shape[1], shape[0], *shape[2:]), ".swapaxes(0, 1)"
    if made.kept:
        return f"{new_text(shape, writer)}{turn}"
    function = "zeros" if made.zeros else "empty"
    return f"{writer.np}.{function}({writer.dims(shape)}, dtype={writer.type_text}){turn}"


def recycled_product(shape: Shape, product: MatrixProduct, writer: ArrayWriter) -> str:
    """The call that computes a matrix product in recycled memory."""
    with_new(writer)
    source = Template(PRODUCT).substitute(multiply=writer.multiplication())
    helper, least = writer.helper("_product", source), _least(shape, writer)
    return f"{helper}({product.left}, {product.right}{least}){product.after}"
