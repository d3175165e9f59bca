"""Functions of a norm or an absolute value: their derivatives at 0.

Let r be a norm of u, or r = |u|. At r = 0 a radius has no derivative, but F(r) has two if
F'(0) = 0. The chain rule by way of r would multiply F'(r) = 0 by the slope of r, which does not exist.
Therefore the tangents of functions of r are kept as multiples of that of r,

    y_dot = Σ (F'(r) u/r) u_dot,    or (F'(r) sign u) u_dot,

and before such a product v = F'(r) · slope is differentiated again, `radius_limits` gives it its limit at
r = 0, which is F''(0) u. The second derivative at 0 is then F''(0) ⟨u_dot, u_dot'⟩. This holds for even
functions (cosh r, exp(−r²/2)), which are functions of r², and for all others with F'(0) = 0, such as the
Matérn kernel (1 + r) exp(−r).

Transposed tangents are multiplied in the order that is needed anyway: that of r gets the cotangent F'(r).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from symad.core.graph import ZERO, Node, Tangent
from symad.ops.basic.arithmetic import ElementwiseOp, add_tangents, mul
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.radius import Part, parts, slopes_of
from symad.ops.elementwise.selection import Select
from symad.transforms.guards import mask

Rule = Callable[["tuple[Tangent, ...]"], Tangent]


@dataclass
class Radial:
    """The tangents of a sweep, with those of functions of one radius as multiples of that of the radius."""

    dots: Mapping[Node, Tangent]
    """Tangents by other ways than a radius."""
    uses: Mapping[Node, Node]
    """The conditions under which nodes are used."""
    slopes: dict[tuple[Node, tuple[Tangent, ...]], Tangent] = field(default_factory=dict)
    """Multiples of nodes without masks, by those of their arguments: other sweeps have them, too."""
    multiples: dict[Node, tuple[Node, Node]] = field(default_factory=dict)
    """For y = F(r) the radius r and F'(r)."""
    _inner: dict[Node, Sequence[Tangent]] = field(default_factory=dict)
    """The tangents of the values inside, for each radius."""
    _whole: dict[Node, Tangent] = field(default_factory=dict)

    def start(self, radius: Node, inner: Sequence[Tangent]) -> None:
        """r is 1 times itself."""
        self.multiples[radius] = radius, broadcast_to(constant(1), radius.shape)
        self._inner[radius] = inner

    def push(self, node: Node, rule: Rule, masked: bool = True) -> bool:
        """Whether a node is a function of one radius, whose multiple is then made by its rule."""
        radii = {self.multiples[a][0] for a in node.args if a in self.multiples} if self.multiples else ()
        if len(radii) != 1 or not isinstance(node.op, ElementwiseOp):
            return False
        (radius,) = radii
        if node.shape != radius.shape:
            return False
        slopes = tuple([self.multiples[a][1] if a in self.multiples else ZERO for a in node.args])
        multiple = None if masked else self.slopes.get((node, slopes))
        if multiple is None:
            multiple = rule(slopes)
            if not masked:
                self.slopes[node, slopes] = multiple
        if isinstance(multiple, Node):
            self.multiples[node] = radius, multiple
        return True

    def whole(self, node: Node) -> Tangent:
        """The tangent of a node by all ways."""
        own = self.dots.get(node, ZERO)
        if node not in self.multiples:
            return own
        if node not in self._whole:
            radius, multiple = self.multiples[node]
            used = self.uses.get(node)
            if used is not None and len(used.shape) not in (0, len(radius.shape)):
                used = None
            terms = [own]
            for part, slope, dot in zip(parts(radius), slopes_of(radius), self._inner[radius], strict=True):
                inner = mask(None if used is None else part.spread(used), dot)
                multiple_ = part.spread(_without_mask_of(inner, multiple))
                terms.append(weighted(part, mul(multiple_, slope), inner))
            self._whole[node] = add_tangents(terms)
        return self._whole[node]


def weighted(part: Part, slope: Node, dot: Tangent) -> Tangent:
    """The tangent of a radius by one of its parts: Σ slope · u_dot."""
    return part.total(mul(slope, dot)) if isinstance(dot, Node) else ZERO


def _without_mask_of(inner: Tangent, multiple: Node) -> Node:
    """A number that is masked by a condition, without the mask where the tangent has the same one."""
    if not (isinstance(inner, Node) and isinstance(inner.op, Select) and isinstance(multiple.op, Select)):
        return multiple
    (condition, *ours), (other, *theirs) = multiple.args, inner.args
    if condition is not other:
        return multiple
    for here, there, kept in zip(ours, theirs, reversed(ours), strict=True):
        if constant_value(here) == constant_value(there) == 0 and constant_value(kept) is not None:
            return broadcast_to(kept, multiple.shape)
    return multiple
