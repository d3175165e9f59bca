"""Parameters of models: a dict from names to arrays; their shapes, initial values, and tracing.

A model describes its parameters by a dict of shapes, whose sizes may be symbols, and its functions
take the dict of arrays first: the same code runs on NumPy arrays and on traced values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim, Shape, format_shape, is_concrete
from symad.core.graph import Graph
from symad.errors import ShapeError
from symad.tracing import trace

Value = TypeVar("Value")

Shapes: TypeAlias = "dict[str, Shape]"
Parameters: TypeAlias = "dict[str, np.ndarray]"


def trace_model(
    f: Callable[..., Array | float | tuple[Array, ...]], shapes: Mapping[str, Shape], *data: Shape | Array
) -> Graph:
    """The graph of ``f(parameters, *data)``: its inputs are the parameters, by name, then the data.

    Args:
        f: takes a dict of the parameters, then the data.
        shapes: the shape of each parameter.
        data: for each further argument of ``f`` an entry of `symad.trace`'s inputs: a symbol, an example or a
            shape.
    """
    names = [*shapes, *list(inspect.signature(f).parameters)[1 : 1 + len(data)]]

    def flat(*values: Array) -> Array | float | tuple[Array, ...]:
        return f(dict(zip(shapes, values, strict=False)), *values[len(shapes) :])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    flat.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]  # for inspect
    flat.__name__ = getattr(f, "__name__", "model")
    return trace(flat, [*shapes.values(), *data])


def count(shapes: Mapping[str, Shape]) -> Dim:
    """The number of parameters: an int, or an expression in the symbolic sizes."""
    total: Dim = 0
    for shape in shapes.values():
        product: Dim = 1
        for dim in shape:
            product = product * dim
        total = total + product
    return total


def initial(
    shapes: Mapping[str, Shape], seed: int, start: Callable[[np.random.Generator, str, Shape], np.ndarray]
) -> Parameters:
    """Initial values of all parameters by their names, in order, from one stream of random numbers."""
    rng = np.random.default_rng(seed)
    return {name: start(rng, name, shape) for name, shape in shapes.items()}


def glorot_matrices(rng: np.random.Generator, name: str, shape: Shape) -> np.ndarray:
    """Glorot's values for names with W or S, 0 for others."""
    return glorot(rng, shape) if name[0] in "WS" else np.zeros(numbers(shape))


def recurrent_matrices(rng: np.random.Generator, name: str, shape: Shape) -> np.ndarray:
    """Like `glorot_matrices`, but W_h and W_hh are orthogonal, so that states neither grow nor decay."""
    if name.startswith("W_h") and name != "W_hy":
        return orthogonal(rng, shape)
    return glorot_matrices(rng, name, shape)


def normal_matrices(scale: float) -> Callable[[np.random.Generator, str, Shape], np.ndarray]:
    """Normal values for names with W, 0 for others."""

    def start(rng: np.random.Generator, name: str, shape: Shape) -> np.ndarray:
        return normal(rng, shape, scale) if name[0] == "W" else np.zeros(numbers(shape))

    return start


def prefixed(prefix: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The same values under names with a prefix."""
    return {prefix + name: value for name, value in values.items()}


def part(values: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The values whose names begin with a prefix, under names without it."""
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}


def normal(rng: np.random.Generator, shape: Shape, scale: float) -> np.ndarray:
    """Independent normal numbers with standard deviation ``scale``."""
    return scale * rng.standard_normal(numbers(shape))


def glorot(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Variance 2 / (fan_in + fan_out), for tanh and sigmoid (Glorot & Bengio 2010, equation 12)."""
    fan_out, fan_in = numbers(shape)[-2:]
    return normal(rng, shape, float(np.sqrt(2.0 / (fan_in + fan_out))))


def he(rng: np.random.Generator, shape: Shape, fan_in: Dim) -> np.ndarray:
    """Variance 2 / fan_in, for ReLU and its relatives (He et al. 2015, equation 10)."""
    return normal(rng, shape, float(np.sqrt(2.0 / numbers((fan_in,))[0])))


def orthogonal(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Random orthogonal matrices, uniform on the group (Saxe, McClelland & Ganguli 2014)."""
    q, r = np.linalg.qr(rng.standard_normal(numbers(shape)))
    signs = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return np.asarray(q * signs[..., None, :])


def numbers(shape: Shape) -> tuple[int, ...]:
    """The shape, whose sizes must be numbers.

    Raises:
        ShapeError: a size is a symbol.
    """
    if not is_concrete(shape):
        raise ShapeError(f"initial values need numbers as sizes, not the shape {format_shape(shape)}")
    return tuple(int(dim) for dim in shape)


def check_shapes(asked: str, given: Mapping[str, Array], shapes: Mapping[str, Shape]) -> None:
    """Refuse parameters whose names or shapes are not those of a model; ``asked`` begins the message.

    Raises:
        ShapeError: the message names what is missing, unknown or of another shape.
    """
    missing, unknown = [n for n in shapes if n not in given], [n for n in given if n not in shapes]
    wrong = [
        f"{n} has shape {format_shape(tuple(v.shape))}, not {format_shape(shapes[n])}"
        for n, v in given.items()
        if n in shapes and tuple(v.shape) != tuple(shapes[n])
    ]
    parts = [f"missing: {', '.join(missing)}"] if missing else []
    parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
    if parts + wrong:
        raise ShapeError(f"{asked}: " + "; ".join(parts + wrong))
