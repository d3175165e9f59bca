"""What is measured of a numeric function: against what, where, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Graph, Node, topological
from symad.ops.basic.sources import symbol_of
from symad.verification.budget import Meter
from symad.verification.fields.integer_inputs import reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.call_users_code import BadReturn, Caller, as_real_array, kind_of
from symad.verification.measuring.floating_errors import plain
from symad.verification.measuring.precisions import DOUBLE, Precision
from symad.verification.measuring.sampling import SAMPLED as MANY
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.exact_steps import with_exact_steps
from symad.verification.values.point_set import FloatPoint, PointSet

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested

ORDINARY, FEW = 24, 4
"""The number of ordinary points, and the least one at which something must be claimed."""

Flat = Callable[[Any], "list[Any]"]
"""From what a numeric function returned its outputs, in order."""

Inside = Callable[[FloatPoint], bool]
"""Whether a point lies in the domain that a claim is about."""


@dataclass(frozen=True)
class Task:
    """What is measured, and against what.

    Args:
        candidate: calls the function with the values of the reference's inputs, floats and float64 arrays.
        reference: what it should compute; all sizes are numbers.
        names: of its outputs.
        flat: takes apart what the candidate returns.
        assumes: what is trusted.
        meter: stops the measurement.
        domain: positive where the claim is made.
        of: the function whose derivative is claimed.
        valued: where this function has a value whose derivative is claimed; a formula of the derivative may
            have values elsewhere. Where this is seldom so, all points count.
        directions: inputs in which the reference is linear: y_bar of a vector-Jacobian product.
        seed: of the points that are drawn.
        limits: the type in which the function computes, or that of its results if that has fewer digits.
    """

    candidate: Caller
    reference: Graph
    names: tuple[str, ...]
    flat: Flat
    assumes: tuple[str, ...]
    meter: Meter
    domain: Node | None = None
    of: tuple[Node, ...] = ()
    valued: Inside = lambda point: True
    directions: Sequence[Node] = ()
    seed: int = 0
    limits: Precision = DOUBLE

    @cached_property
    def outputs(self) -> tuple[Node, ...]:
        """What it should compute, in ops of which roundings are known."""
        return with_exact_steps(expand_definitions(self.reference.output_nodes))

    @cached_property
    def nodes(self) -> list[Node]:
        """Everything that the outputs need, arguments first."""
        return topological(self.outputs)

    @cached_property
    def drawn(self) -> PointSet:
        """The points of the seed."""
        return PointSet(
            self.outputs, self.seed, self.reference.input_nodes, self.domain, tuple(self.directions)
        )

    @cached_property
    def usable(self) -> Inside:
        """Whether a point lies in the domain, and all places are inside of arrays."""
        reads, holds = reads_inside(self.reference.output_nodes), self.drawn.holds
        return lambda point: reads(point) and holds(point)

    @cached_property
    def ordinary(self) -> list[FloatPoint]:
        """Points of ordinary size, more of them where single ones show little."""
        count = ORDINARY * (1 + self.limits.is_low)
        found = self.of_type(self.drawn.plain(count))
        if self.domain is not None and sum(map(self.usable, found)) < count // 2:
            found += self.of_type(islice(self.drawn.points(MANY), count))
        return found

    @cached_property
    def inside(self) -> Inside:
        """Whether something is claimed at a point."""
        usable, valued = self.usable, self.valued
        if sum(usable(p) and valued(p) for p in self.ordinary) < FEW:
            return usable
        return lambda point: usable(point) and valued(point)

    @property
    def integers(self) -> Mapping[Node, tuple[int, int]]:
        """Inputs that must be integers."""
        return self.drawn.integers

    def of_type(self, points: Iterable[FloatPoint], bounded: bool = True) -> list[FloatPoint]:
        """The points with all inputs, in numbers of the type, if these are so large that products remain."""
        low, high = self.limits.span if bounded else (0.0, np.inf)
        made = map(self.limits.rounded_point, points)
        return [p for p in made if all(_is_between(v, low, high) for v in p.values())]

    def size_of(self, point: FloatPoint) -> float:
        """The largest input, or 1, times the largest direction, or 1."""
        sizes = [1.0, 1.0]
        for node, value in point.items():
            k = node in self.directions
            sizes[k] = max(sizes[k], float(np.max(np.abs(value), initial=0.0)))
        return sizes[0] * sizes[1]

    def where(self, point: FloatPoint) -> dict[str, Nested]:
        """A point as text."""
        return {str(symbol_of(n)): plain(point[n]) for n in self.reference.input_nodes if n in point}

    def returned(self, point: FloatPoint) -> list[Any]:
        """What the candidate returns at a point, one part for each output."""
        with np.errstate(all="ignore"):
            result = self.candidate([point[n] for n in self.reference.input_nodes])
            returned = self.flat(result)
        if len(returned) != len(self.outputs):
            alone = kind_of(result) + ", which is one output," * (result is not None)
            made = f"{len(returned)} outputs" if len(returned) != 1 else alone
            many = f"{len(self.outputs)} outputs" if len(self.outputs) != 1 else "one output"
            told = f"the function returned {made} in place of {many}: {', '.join(self.names)}"
            raise BadReturn(f"verify: {told}")
        return returned

    def called(self, point: FloatPoint) -> list[Array]:
        """The same as arrays of the right shapes."""
        shapes = [tuple(int(d) for d in o.shape) for o in self.outputs]
        parts = zip(self.returned(point), shapes, self.names, strict=True)
        return [as_real_array(v, s, n) for v, s, n in parts]


def _is_between(value: Any, low: float, high: float) -> bool:
    sizes = np.abs(np.asarray(value, dtype=float))
    return bool(np.all(np.isfinite(sizes) & ((sizes == 0) | ((sizes >= low) & (sizes <= high)))))
