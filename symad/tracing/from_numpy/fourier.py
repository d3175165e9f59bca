"""Fourier transforms of traced values are refused by name, also those inside of functions of SciPy.

scipy.fft offers each call to registered backends first (the uarray protocol). The backend here computes
nothing: it refuses traced values, and leaves all others to SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import NotImplementedType
from typing import TYPE_CHECKING, Any

from symad.errors import TraceError
from symad.tracing.elements.filled import holds_traced
from symad.tracing.from_numpy.registry import NO_FFT
from symad.tracing.proxies.sessions import WHILE_TRACING
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike


class Refusing:
    """A backend of scipy.fft without functions."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(
        method: Callable[..., Any], args: tuple[ArrayLike, ...], options: dict[str, ArrayLike]
    ) -> NotImplementedType:
        """SciPy calls this with each of its transforms."""
        if holds_traced(tuple(args)) or holds_traced(tuple(options.values())):
            raise TraceError(
                f"scipy.fft.{method.__name__} is not supported on traced values{users_line()}; {NO_FFT}"
            )
        return NotImplemented


def transforms_refused() -> AbstractContextManager[None]:
    """A context in which scipy.fft refuses traced values; it does nothing if scipy.fft is not loaded."""
    fft = sys.modules.get("scipy.fft")
    return nullcontext() if fft is None else fft.set_backend(Refusing)


WHILE_TRACING.append(transforms_refused)
