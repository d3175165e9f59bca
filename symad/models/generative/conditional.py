"""Conditions: a one-hot class beside the input of a network, p(x | class)."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim, Shape, format_shape, same_dim
from symad.errors import ShapeError


def class_shapes(samples: Dim, classes: Dim) -> list[Shape]:
    """The shape (N, C) of the classes among the inputs of a loss; none if ``classes`` is 0."""
    return [(samples, classes)] if classes else []


def with_class(x: Array, c: Array | None, classes: int) -> Array:
    """x (N, d) and the class c (N, C) concatenated, (N, d + C); x itself if ``classes`` is 0.

    Raises:
        ShapeError: a class is missing, is given to a model without classes, or has another shape.
    """
    if not classes:
        if c is not None:
            raise ShapeError(
                f"the model has no classes, but one of shape {format_shape(c.shape)} was given; make it with "
                f"classes={c.shape[-1]}"
            )
        return x
    if c is None:
        raise ShapeError(
            f"the model is conditional on {classes} classes; give c, one-hot of shape (N, {classes})"
        )
    if len(c.shape) != 2 or not same_dim(c.shape[0], x.shape[0]) or not same_dim(c.shape[1], classes):
        raise ShapeError(
            f"the classes c need the shape {format_shape((x.shape[0], classes))}, one row for each of x "
            f"{format_shape(x.shape)}, not {format_shape(c.shape)}"
        )
    return np.concatenate([x, c], axis=1)
