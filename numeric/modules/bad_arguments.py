"""Errors about the values that a kernel was called with, in terms of the user's model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from symad.core.arguments import Argument, were_given
from symad.core.identifiers import listed, visible

if TYPE_CHECKING:
    from symad.core.arrays import Array


def reason(title: str, arguments: Sequence[Argument], values: Sequence[Array], scalar: bool) -> str | None:
    """The reason why code rejects some values, if its own error does not name them; None if unknown.

    ``scalar`` says that the code takes scalars, or arrays of points.
    """
    names = [visible(a.name) for a in arguments]
    if len(values) != len(names):
        several, given = "s" * (len(names) != 1), f"but {were_given(len(values))}"
        told = f"{title} takes {len(names)} value{several} ({listed(names)}), {given}"
        more = f"; missing: {listed(names[len(values) :])}" if len(values) < len(names) else ""
        if len(values) == 1 and np.ndim(values[0]) == 1:
            more = "; a function of one vector, as scipy.optimize calls it, is lower(..., packed=True)"
        return told + more
    plain = [(name, v) for name, a, v in zip(names, arguments, values, strict=True) if a.structure is None]
    shapes = []
    for name, value in plain:
        try:
            shapes.append((name, np.shape(value)))
        except ValueError:
            return f"{name} was given nested lists whose rows differ in length; give an array"
    try:
        np.broadcast_shapes(*[shape for _, shape in shapes])
    except ValueError:
        shown = listed(f"{name} {shape}" for name, shape in shapes)
        if scalar:
            return f"the arrays of points given to {title} do not broadcast together: {shown}"
    return None
