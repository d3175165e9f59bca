"""Points at which the directions of a product are special: zeros, ones, one element alone.

A vector-Jacobian product is linear in y_bar, and a Jacobian-vector product in x_dot. A program that divides
by a direction, or has a branch for it, is wrong at such directions only, and they are common: a loss that
reads some of the outputs has a cotangent with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from symad.core.graph import Node
from symad.verification.fields.prime_fields import Array
from symad.verification.values.hostile_points import FloatPoint

KIND = "directions"

MAX_ALONE = 4
"""The maximum number of directions of which each is tried as the only one that is not 0."""

Form = Callable[[Array], Array]


def _kept(which: Callable[[int], Array]) -> Form:
    """A direction with zeros elsewhere."""
    return lambda v: v * which(v.size).reshape(v.shape)


FORMS: tuple[Form, ...] = (
    lambda v: 0 * v,
    lambda v: 0 * v + 1,
    _kept(lambda n: np.arange(n) % 2),
    _kept(lambda n: 1 - np.arange(n) % 2),
    _kept(lambda n: np.arange(n) == n - 1),
    lambda v: -np.abs(v),
)
"""Zero, ones, zeros in every other element, one element that is not 0, and none that is positive."""


def special_directions(
    directions: Sequence[Node], ordinary: Sequence[FloatPoint]
) -> Iterator[tuple[str, FloatPoint]]:
    """Some ordinary points, in turn, with other directions."""
    if not directions or not ordinary:
        return
    changes: list[Mapping[Node, Form]] = [dict.fromkeys(directions, form) for form in FORMS]
    for alone in directions[:MAX_ALONE] if len(directions) > 1 else ():
        changes.append({node: FORMS[0] for node in directions if node is not alone})
    for k, change in enumerate(changes):
        point = ordinary[k % len(ordinary)]
        yield KIND, {n: _with(change[n], v) if n in change else v for n, v in point.items()}


def _with(form: Form, value: Array | float) -> Array | float:
    made = np.asarray(form(np.asarray(value, dtype=np.float64)), dtype=np.float64) + 0.0  # no −0
    return made if np.ndim(value) else float(made)
