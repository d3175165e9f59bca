"""Traced values have no numeric value: Python's conversions to one raise errors that say what to do."""

from __future__ import annotations

from typing import NoReturn

from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.ops.basic.sources import constant_value
from symad.tracing.proxies.wrapped import Wrapped
from symad.tracing.users_line import library_call, users_line


class Valueless(Wrapped):
    """An object that stands for a node, and has no value while a function is traced."""

    __slots__ = ()

    def _no_value(self, what: str, advice: str) -> NoReturn:
        if call := library_call():
            advice += (
                f"; {call} is not made for traced values: symad.functions has logsumexp, softmax, "
                "log_softmax, solve_triangular and cho_solve"
            )
        raise TraceError(
            f"{what} of a traced value of shape {format_shape(self._value.shape)}{users_line()}: it has no "
            f"value while the function is traced; {advice}"
        )

    def __bool__(self) -> bool:
        value = constant_value(self._node)
        if value is not None:
            return bool(value)
        self._no_value(
            "the truth value",
            "replace an if, and, or, not, min or max that depends on data by np.where(condition, a, b), "
            "np.logical_and, np.minimum or np.maximum, and give functions of NumPy arrays, not lists",
        )

    @classmethod
    def __torch_function__(cls, function: object, *args: object, **options: object) -> NoReturn:
        name = getattr(function, "__name__", str(function))
        raise TraceError(
            f"{name} of PyTorch was called with a traced value; use NumPy's functions and those of "
            "symad.functions, or read a module of PyTorch by symad.torch.from_torch"
        )

    def __float__(self) -> float:
        self._no_value("float()", "use NumPy's functions instead of those of math")

    def __int__(self) -> int:
        self._no_value("int()", "use np.floor, or pass the number as a constant instead of an input")

    def __complex__(self) -> complex:
        self._no_value("complex()", "symad works over the real numbers")

    def __index__(self) -> int:
        self._no_value("an integer", "index arrays by x[k] with a traced k, not lists or range()")

    def __round__(self, digits: int | None = None) -> NoReturn:
        self._no_value("round()", "rounding has no useful derivative; use np.floor(x + 0.5)")
