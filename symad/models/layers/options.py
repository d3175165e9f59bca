"""Options of models: sizes, counts and names are checked when a model is made, parameters when it is used.

The annotation of a field defines its values: a ``Dim`` is a positive integer or a symbol that
may be one, an ``int`` a positive integer, each also 0 if that is the default; ``activation`` is a name.
Methods of parameters ``p`` refuse arrays with other shapes than the model's: a bias (1,) would be broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import isfunction, signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, Shape, format_shape
from symad.errors import ShapeError, SymadError
from symad.models.layers.activations import activation

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**options):
        """`typing`'s function from Python 3.11 on, which does nothing at run time."""
        return lambda function: function


Model = TypeVar("Model")

SIZES = ("Dim", "Dim | None", "tuple[Dim, ...]", "int", "int | None")


@dataclass_transform(frozen_default=True)
def model(cls: type[Model]) -> type[Model]:
    """The class as a frozen dataclass, whose instances check themselves and their parameters.

    Raises:
        ShapeError: an instance is made with an invalid size, or used with arrays of other shapes.
        SymadError: an instance is made with an unknown activation.
    """
    for name, method in list(vars(cls).items()):
        if isfunction(method) and list(signature(method).parameters)[1:2] == ["p"]:
            setattr(cls, name, _with_parameters(method))
    own: Callable[[Model], None] | None = cls.__dict__.get("__post_init__")

    def check(self: Any) -> None:
        for name, annotation in cls.__annotations__.items():
            if annotation in SIZES:
                _check(self, name, annotation)
        if "activation" in cls.__annotations__:
            activation(self.activation)
        if own is not None:
            own(self)

    setattr(cls, "__post_init__", check)  # noqa: B010  (a class has no such attribute before)
    return dataclass(frozen=True)(cls)


def refuse_complex(asked: str, *values: object) -> None:
    """Refuse arrays of complex numbers, for which NumPy would compute other functions than intended.

    Raises:
        ShapeError: the message names the operation and the dtype.
    """
    for value in values:
        dtype = getattr(value, "dtype", None)
        if getattr(dtype, "kind", "") == "c" or isinstance(value, complex):
            raise ShapeError(f"{asked} of {dtype or 'complex'} numbers: symad works over the real numbers")


def _with_parameters(method: Callable[..., Array]) -> Callable[..., Array]:
    """The method, which refuses parameters of other shapes."""
    others = list(signature(method).parameters)[2:]

    @wraps(method)
    def run(self: Any, p: Mapping[str, Array], *data: Any, **named: Any) -> Any:
        shapes = self.shapes if isinstance(p, Mapping) else {}
        values = [*(p.values() if isinstance(p, Mapping) else ()), *data, *named.values()]
        refuse_complex(f"{type(self).__name__}.{method.__name__}", *values)
        for name, shape in shapes.items():
            if name in p and not _fits(tuple(getattr(p[name], "shape", ())), shape):
                given = format_shape(tuple(getattr(p[name], "shape", ())))
                kind = type(self).__name__
                raise ShapeError(f"{kind}: {name} has the shape {given}, not {format_shape(shape)}")
        try:
            return method(self, p, *data, **named)
        except KeyError as error:
            if error.args and error.args[0] in shapes:
                raise ShapeError(f"{type(self).__name__}: the parameters lack {error.args[0]}") from None
            raise
        except SymadError:
            raise
        except ValueError as error:  # NumPy's, for arrays whose shapes do not match
            all_data = dict(zip(others, data, strict=False)) | named
            shown = [
                f"{n} {format_shape(tuple(v.shape))}" for n, v in all_data.items() if hasattr(v, "shape")
            ]
            where = f"{type(self).__name__}.{method.__name__}"
            raise ShapeError(f"{where} of {', '.join(shown)}, whose shapes do not fit: {error}") from error

    return run


def _fits(given: Shape, wanted: Shape) -> bool:
    """True if a shape may equal another one: symbols may be any number."""
    pairs = zip(given, wanted, strict=False)
    known = [(a, b) for a, b in pairs if isinstance(a, Integral) and isinstance(b, Integral)]
    return len(given) == len(wanted) and all(a == b for a, b in known)


def _check(model: object, name: str, annotation: str) -> None:
    value, kind = getattr(model, name), type(model).__name__
    if value is None and annotation.endswith("None"):
        return
    sizes = value if annotation.startswith("tuple") else (value,)
    if not isinstance(sizes, (tuple, list)):
        raise ShapeError(f"{kind}({name}={value!r}): give a tuple of sizes")
    least = 0 if getattr(type(model), name, None) == 0 else 1
    for size in sizes:
        if not _is_size(size, least, "int" not in annotation):
            also = " or a symbol" if "int" not in annotation else ""
            raise ShapeError(f"{kind}({name}={value!r}): sizes are integers of at least {least}{also}")


def _is_size(size: Dim, least: int, symbols: bool) -> bool:
    if isinstance(size, sympy.Expr) and not size.is_number:
        return symbols and size.is_integer is not False and size.is_negative is not True
    return isinstance(size, (Integral, sympy.Integer)) and not isinstance(size, bool) and int(size) >= least
