"""What CuPy code may do if asked to: faster, at the price of digits or of equal bits from run to run.

    with symad.gpu.options(tf32=True):
        kernel = lower(f, backend="cupy", dtype="float32")

Options are read when code is printed, and stand in its text; they change no code printed before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


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
    """The options that hold here."""
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
    """Options of the CuPy code that is printed inside; those not given stay as they are.

    Args:
        tf32: multiply float32 matrices on tensor cores with factors rounded to 10 bits after the point
            (relative error 2⁻¹¹ each) and sums in float32. Off by default.
        atomics: add by atomic additions what several threads write to one place (gradients of embeddings;
            those of queries of attention in half precisions, for head dims up to 128 and scores without
            parameters per query or pair): the bits of the result vary from run to run. Off by default.
        wait: wait for the device at the end of a call with indices, so that a wrong one is an error of that
            call. Off by default: it is an error of a later call, of `check_indices` or of the program's end.
        capture: print code that a CUDA graph can record, which CuPy does not let cuBLAS and its sorts be:
            products and sums of rows by symad's own kernels, from compute capability 8.0. Off by default.
        pair_products: "tf32x3" or "bf16": kernel sums of inner products and norms (Gaussians among them), and
            their gradients, on tensor cores, for float32 points of 32 to 128 components, from compute
            capability 8.0; the error bounds stand in `symad.gpu.pairs.products`. "off" is the default.
        autotune: choose the tile shapes of attention by trial runs at the first call with much work, once
            for each device and order of sizes; the choice is kept in a file beside CuPy's compiled kernels,
            so that later processes add in the same order. Off, estimates decide. On by default.
        fast: allow approximate instructions in kernel sums and scores of attention (tanh, absolute error
            about 5e-4). Off by default.
        tensor_cores: False computes the products of attention in float32 by ordinary arithmetic, instead of
            three tf32 products each (22 bits of every factor). On by default.
        wide: code for half precisions takes parameters and log-sum-exps of attention in the type they come
            in, and returns in float32 what it has in float32. Off by default: all is converted.
    """
    if pair_products not in (None, "off", "tf32x3", "bf16"):
        raise ValueError(f'pair_products={pair_products!r} is none of "off", "tf32x3" and "bf16"')
    given = {"tf32": tf32, "atomics": atomics, "wait": wait, "capture": capture, "fast": fast}
    given |= {"autotune": autotune, "tensor_cores": tensor_cores, "wide": wide}
    token = _current.set(
        replace(
            _current.get(),
            **{name: bool(v) for name, v in given.items() if v is not None},
            pair_products=_current.get().pair_products if pair_products is None else pair_products,
        )
    )
    try:
        yield
    finally:
        _current.reset(token)
