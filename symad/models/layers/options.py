"""Options of models: sizes, counts and names are checked before a model is made.

What a field of a model may hold stands in its annotation: a ``Dim`` is a positive integer or a symbol that
may be one, an ``int`` a positive integer, each 0 too where that is the default; ``activation`` is a name.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

import sympy

from symad.errors import ShapeError
from symad.models.layers.activations import activation

Model = TypeVar("Model")

SIZES = ("Dim", "Dim | None", "tuple[Dim, ...]", "int", "int | None")


def checked(cls: type[Model]) -> type[Model]:
    """The class, whose instances are checked when they are made; stands below ``@dataclass``.

    Raises:
        ShapeError: when an instance is made with a size that is none; names the field.
        SymadError: with an activation that is none.
    """
    own: Callable[[Any], None] | None = cls.__dict__.get("__post_init__")

    def check(model: Any) -> None:
        for name, annotation in cls.__annotations__.items():
            if annotation in SIZES:
                _check(model, name, annotation)
        if "activation" in cls.__annotations__:
            activation(model.activation)
        if own is not None:
            own(model)

    setattr(cls, "__post_init__", check)  # noqa: B010  (a class has no such attribute before)
    return cls


def _check(model: Any, name: str, annotation: str) -> None:
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


def _is_size(size: Any, least: int, symbols: bool) -> bool:
    if isinstance(size, sympy.Expr) and not size.is_number:
        return symbols and size.is_integer is not False and size.is_negative is not True
    return isinstance(size, (Integral, sympy.Integer)) and not isinstance(size, bool) and size >= least
