"""Numeric functions of any array library: how they are called, and what they return."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from numbers import Real
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import sympy

from symad.core.arguments import Argument, grouped_values
from symad.core.arrays import ArrayLike
from symad.errors import SymadError
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import BRAIN, DOUBLE, PRECISIONS, Precision


class BadReturn(SymadError, TypeError):
    """A numeric function takes other arguments, or returns no array of real numbers of the right shape."""


def function_of(candidate: Any) -> Callable[..., ArrayLike]:
    """The function to measure: a callable, or the last one that a module defines, as generated files do.

    Raises:
        TypeError: a module defines none.
    """
    if isinstance(candidate, ModuleType):
        own = [f for f in vars(candidate).values() if _is_of(candidate, f)]
        if not own:
            raise TypeError(f"verify: the module {candidate.__name__} defines no function")
        candidate = own[-1]
    function: Callable[..., ArrayLike] = candidate
    return function


def _is_of(module: ModuleType, value: object) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == module.__name__


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def refuse_arguments(
    candidate: Callable[..., ArrayLike], names: Sequence[str], what: str = "the function"
) -> None:
    """Refuse a function that cannot take the inputs; ``what`` names it in the error.

    Raises:
        BadReturn: its signature does not fit, or has their names in another order.
    """
    try:
        signature = inspect.signature(candidate)
    except (TypeError, ValueError):  # some compiled functions have none
        return
    try:
        signature.bind(*names)
    except TypeError:
        raise BadReturn(
            f"verify: {what} takes {signature}, but is called with ({', '.join(names)}), the inputs in their "
            "order; change one of these, for instance by inputs=[...]"
        ) from None
    own = [p.name for p in signature.parameters.values() if p.kind in POSITIONAL]
    places = [(own.index(name), names.index(name)) for name in own if name in names]
    if any(a != b for a, b in places) and {a for a, _ in places} == {b for _, b in places}:
        raise BadReturn(
            f"verify: {what} takes ({', '.join(own)}), but is called with ({', '.join(names)}), the inputs "
            "in their order; change one of these, for instance by inputs=[...]"
        )


def kind_of(value: object) -> str:
    """A value by its type, as in "a dict"; an array with the type of its elements."""
    if value is None:
        return "None"
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" or name.startswith("nd") else "a"
    return f"{article} {name}" + (f" of {value.dtype}" if isinstance(value, np.ndarray) else "")


OF_VALUES = (IndexError, ArithmeticError, np.linalg.LinAlgError)
"""Errors that the kind of array does not explain."""


class Caller:
    """Calls a function with NumPy arrays, or, where it refuses them, with those of another library.

    A library is tried only if the user's program has loaded it, and not after errors of values, such as a
    position outside of an array: JAX returns numbers there. The first call decides.
    """

    def __init__(
        self, candidate: Callable[..., ArrayLike], arguments: Sequence[Argument], limits: Precision = DOUBLE
    ) -> None:
        """Nothing is called yet; ``arguments`` say how the values are grouped, ``limits`` their type."""
        self.candidate, self.limits = candidate, limits
        self.arguments = arguments
        self.library = ""
        self.changes = False
        """Whether a call has changed an array that it was given."""

    def __call__(self, values: Sequence[Array] | list[float]) -> Any:
        """What the function returns at values of all inputs; whatever it raises comes through."""
        if self.library:
            return self._called(values, self.library)
        try:
            result = self._called(values, "numpy")
        except OF_VALUES:
            raise
        except Exception:
            for name in [n for n in LIBRARIES if n != "numpy" and n in sys.modules]:
                try:
                    result = self._called(values, name)
                except Exception:
                    continue
                self.library = name
                return result
            raise
        self.library = "numpy"
        return result

    def _called(self, values: Sequence[Array] | list[float], library: str) -> Any:
        """What the function returns for arrays of a library; they are looked at again afterwards."""
        given: list[tuple[Any, Any]] = []

        def converted(value: Any) -> Any:
            made = LIBRARIES[library](value, self.limits)
            if isinstance(value, np.ndarray):
                given.append((value, made))
            return made

        result = self.candidate(*grouped_values(self.arguments, values, converted))
        if library in ("numpy", "torch") and not self.changes:
            self.changes = not all(np.array_equal(v, _numbers(made), equal_nan=True) for v, made in given)
        return result


def _numbers(value: Any) -> Array:
    """The numbers of an array of NumPy or of a tensor."""
    return np.asarray(on_host(value))


def _own_copy(value: Array | float, limits: Precision) -> Any:
    """A number or array of NumPy, in float32 where it has no such type."""
    if limits.is_low and np.asarray(value).dtype.kind == "f":
        return np.asarray(value).astype("float32" if limits is BRAIN else limits.name)[()]
    return value.copy() if isinstance(value, np.ndarray) else value


def _tensor(value: Array | float, limits: Precision) -> ArrayLike:
    torch = sys.modules["torch"]
    kind = torch.int64 if np.asarray(value).dtype.kind in "iu" else getattr(torch, limits.name)
    return torch.as_tensor(_own_copy(value, DOUBLE), dtype=kind)


def _jax_array(value: Array | float, limits: Precision) -> ArrayLike:
    made = sys.modules["jax"].numpy.asarray(_own_copy(value, limits))
    return made.astype(limits.name) if limits is BRAIN else made


def _cupy_array(value: Array | float, limits: Precision) -> ArrayLike:
    return sys.modules["cupy"].asarray(_own_copy(value, limits))


LIBRARIES: dict[str, Callable[[Any, Precision], object]] = {
    "numpy": _own_copy, "torch": _tensor, "jax": _jax_array, "cupy": _cupy_array,
}  # fmt: skip
"""By the name of a module, how a float or float64 array becomes its own, of a type."""


def precision_of(value: Any) -> Precision:
    """The type of the numbers of an array of any library; float64 for what has none, and for more digits."""
    return PRECISIONS.get(str(getattr(value, "dtype", "")).removeprefix("torch."), DOUBLE)


def on_host(value: Any) -> Any:
    """A value of another library as an array of NumPy, which has no bfloat16; others as they are."""
    if hasattr(value, "detach"):  # a tensor of PyTorch
        value = value.detach().cpu()
        return value.float() if precision_of(value) is BRAIN else value
    if precision_of(value) is BRAIN:
        return np.asarray(value).astype(np.float32)
    if hasattr(value, "to_numpy"):  # a series or table of pandas
        return value.to_numpy()
    if hasattr(value, "get") and not isinstance(value, dict):  # an array of CuPy
        return value.get()
    return value.toarray() if hasattr(value, "toarray") else value  # a sparse matrix of SciPy


def _is_nested_list(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether lists of lists of numbers have a shape; tuples may be parts of another meaning."""
    if not shape:
        return np.ndim(value) == 0
    return (
        isinstance(value, list)
        and len(value) == shape[0]
        and all(_is_nested_list(v, shape[1:]) for v in value)
    )


def _is_real_number(value: object) -> bool:
    if isinstance(value, sympy.Expr):
        return value.is_number and value.is_real is True
    return isinstance(value, Real)


def as_real_array(value: Any, shape: tuple[int, ...], name: str = "the result") -> Array:
    """What a numeric function returned as an array of the shape expected; 1×1 and () are the same.

    What is masked has no value; sparse matrices of SciPy become dense; extended precision becomes float64, as
    do numbers of SymPy and mpmath, which sp.cos and mpmath.cos return.

    Raises:
        BadReturn: it is complex, no array of numbers, or of another shape.
    """
    value = on_host(value)
    if isinstance(value, (list, tuple)) and len(shape) > 1 and not _is_nested_list(value, shape):
        raise BadReturn(
            f"verify: {name} is one array of shape {shape}; the function returned a {type(value).__name__} "
            f"of {len(value)} parts; join them, by np.hstack if each has the columns of one input"
        )
    try:
        masked = isinstance(value, np.ma.MaskedArray) and value.dtype.kind in "fiub"
        array = np.ma.filled(value.astype(np.float64), np.nan) if masked else np.asarray(value)
    except (TypeError, ValueError) as problem:
        raise BadReturn(f"verify: {name}: returned {kind_of(value)}, which is no array: {problem}") from None
    if array.dtype.kind == "O" and array.size and all(map(_is_real_number, array.flat)):
        array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise BadReturn(f"verify: {name}: returned complex numbers ({array.dtype})")
    if array.dtype.kind not in "fiub":
        raise BadReturn(f"verify: {name}: returned {kind_of(value)}, not real numbers")
    if array.shape != shape and [d for d in array.shape if d != 1] != [d for d in shape if d != 1]:
        raise BadReturn(f"verify: {name}: returned shape {array.shape} instead of {shape}")
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 8  # more digits than the inputs have
    return (array.astype(np.float64) if wide else array).reshape(shape)
