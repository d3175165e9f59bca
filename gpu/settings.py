"""Options of CuPy code that trade digits, or equal bits from run to run, for speed or other properties.

    with symad.gpu.options(tf32=True):
        kernel = lower(f, backend="cupy", dtype="float32")

Options are read when code is printed and become part of its text; code printed before does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from symad.core.process import within


@dataclass(frozen=True)
class Options:
    """See `options`."""

    tf32: bool = False
    atomics: bool = False
    wait: bool = False
    capture: bool = False
    fast: bool = False
    tensor_cores: bool = True
    wide: bool = False
    autotune: bool = True
    pair_products: str = "off"


_DEFAULT = Options()
_current: ContextVar[Options] = ContextVar("symad_gpu_options", default=_DEFAULT)


def current() -> Options:
    """The options that are in force."""
    return _current.get()


@contextmanager
def options(
    *,
    tf32: bool | None = None,
    atomics: bool | None = None,
    wait: bool | None = None,
    capture: bool | None = None,
    fast: bool | None = None,
    tensor_cores: bool | None = None,
    wide: bool | None = None,
    autotune: bool | None = None,
    pair_products: str | None = None,
) -> Iterator[None]:
    """Options of the CuPy code that is printed in this context; options not given keep their values.

    Args:
        tf32: multiply float32 matrices on tensor cores with factors rounded to 10 bits after the point
            (relative error 2⁻¹¹ each) and sums in float32. Off by default.
        atomics: use atomic additions where several threads write to one place (gradients of embeddings;
            those of attention queries in half precisions, for head dims up to 128 and scores without
            parameters per query or pair): the bits of the result vary from run to run. Off by default.
        wait: wait for the device at the end of a call with indices, so that a wrong index raises an error in
            that call. By default (off) the error comes in a later call, in `check_indices` or at exit.
        capture: print code that a CUDA graph can record, for compute capability 8.0 and above. CuPy does not
            allow this for cuBLAS and its sorts, so that products and sums of rows use symad's own kernels.
            Off by default.
        pair_products: "tf32x3" or "bf16": kernel sums of inner products and norms (including Gaussians), and
            their gradients, use tensor cores, for float32 points of 32 to 128 components and compute
            capability 8.0 and above; `symad.gpu.pairs.kernel_text` states the error bounds. "off" by default.
        autotune: choose the tile shapes of attention by trial runs at the first call with much work, once
            for each device and order of sizes. The choice is kept in a file beside CuPy's compiled kernels,
            so that later processes add in the same order. If off, estimates decide. On by default.
        fast: allow approximate instructions in kernel sums and attention scores (tanh, absolute error
            about 5e-4). Off by default.
        tensor_cores: if False, compute the products of float32 attention by ordinary arithmetic, instead of
            three tf32 products each (22 bits of every factor). On by default.
        wide: code for half precisions reads parameters and log-sum-exps of attention in the type in which
            they are given, and returns in float32 what it computes in float32. By default (off) all are
            converted.

    Raises:
        ValueError: ``pair_products`` has no such value.

    Example:
        >>> import symad, symad.gpu
        >>> product = symad.trace(lambda A, B: A @ B, [(4, 4), (4, 4)])
        >>> with symad.gpu.options(tf32=True):  # printing code needs no device
        ...     kernel = symad.numeric.lower(product, "cupy", "float32")
        >>> "TF32" in kernel.source
        True
    """
    if pair_products not in (None, "off", "tf32x3", "bf16"):
        raise ValueError(f'pair_products={pair_products!r} is none of "off", "tf32x3" and "bf16"')
    given = {"tf32": tf32, "atomics": atomics, "wait": wait, "capture": capture, "fast": fast}
    given |= {"autotune": autotune, "tensor_cores": tensor_cores, "wide": wide}
    wanted = replace(
        _current.get(),
        **{name: bool(v) for name, v in given.items() if v is not None},
        pair_products=_current.get().pair_products if pair_products is None else pair_products,
    )
    with within(_current, wanted):
        yield
