"""Forward mode on nodes: tangents pushed through a graph. The rules are in the files of the ops.

Functions of a norm or an absolute value have rules of their own at 0. At r = 0 a radius has no derivative,
but F(r) has two if F'(0) = 0. The chain rule by way of r would multiply F'(r) = 0 by the slope of r, which
does not exist. Therefore the tangents of functions of r are kept as multiples of that of r,

    y_dot = Σ (F'(r) u/r) u_dot,    or (F'(r) sign u) u_dot,

and before such a product v = F'(r) · slope is differentiated again, `radius_limits` gives it its limit at
r = 0, which is F''(0) u. The second derivative at 0 is then F''(0) ⟨u_dot, u_dot'⟩. This holds for even
functions (cosh r, exp(−r²/2)), which are functions of r², and for all others with F'(0) = 0, such as the
Matérn kernel (1 + r) exp(−r). Transposed tangents are multiplied in the order that is needed anyway: that of
r gets the cotangent F'(r).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from symad.core.graph import ZERO, Node, Tangent
from symad.core.questions import jvp
from symad.ops.basic.arithmetic import ElementwiseOp, add_tangents, mul
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.radius import RADIAL, Part, parts, slopes_of
from symad.ops.elementwise.selection import Select, select
from symad.stable import smooth
from symad.transforms.guards import Guards, TangentGuard, mask
from symad.transforms.radius_limits import with_limits
from symad.transforms.radius_powers import with_joined_powers


def push(
    outputs: Sequence[Node], tangents: Mapping[Node, Tangent], transposed: bool = False
) -> list[Tangent]:
    """The tangents of the outputs, from the tangents of some nodes (usually inputs).

    t_k = Σ_parents ∂f_k · t_parent in topological order. Rules are called only for nodes that depend on a
    tangent; where a slope is not used, or its tangent is 0, their product is masked.

    Args:
        outputs: nodes.
        tangents: of some nodes.
        transposed: true if the result is transposed. The slopes of a function of a radius are then multiplied
            with each other first anyway.
    """
    outputs, order = prepared(outputs, tangents)
    return push_along(order, tangents, Guards.of(order, outputs), outputs, not transposed)


def prepared(
    outputs: Sequence[Node], roots: Mapping[Node, Tangent]
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs in forms whose derivatives are right, and all their nodes, arguments first."""
    outputs, order = with_joined_powers(*smooth(outputs, roots), roots)
    return with_limits(outputs, order, roots, push_along)


def push_along(
    order: Sequence[Node],
    tangents: Mapping[Node, Tangent],
    guards: Guards,
    outputs: Sequence[Node],
    by_radii: bool = True,
) -> list[Tangent]:
    """The tangents of the outputs, through those nodes of an order (arguments first) that depend on them."""
    dots: dict[Node, Tangent] = {n: t for n, t in tangents.items() if isinstance(t, Node)}
    radial = Radial(dots, guards.uses, guards.slopes)
    known, found = dots.keys(), guards.along(order, dict(dots))
    for node in order:
        if node in tangents or (
            known.isdisjoint(node.args) and radial.multiples.keys().isdisjoint(node.args)
        ):
            continue
        if type(node.op) in RADIAL and parts(node):
            y_dot = radial.by_parts(node, found.get(node), by_radii)
        else:
            y_dot = radial.by_rule(node, found.get(node))
        if isinstance(y_dot, Node):
            dots[node] = y_dot
    return [radial.whole(o) for o in outputs]


def dense(tangent: Tangent, like: Node) -> Node:
    """A tangent as a node: structural zeros become zeros of the shape of ``like``."""
    return tangent if isinstance(tangent, Node) else broadcast_to(constant(0), like.shape)


# ---- functions of a norm or an absolute value ----------------------------------------------------


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

    def by_parts(self, radius: Node, guard: TangentGuard | None, by_radii: bool) -> Tangent:
        """The tangent of a radius from what is inside; ZERO if it is 1 times itself from here on."""
        below = parts(radius)
        used = guard.entering[0] if guard and len(below) == 1 else self.uses.get(radius)
        inner = [mask(None if used is None else p.spread(used), self.whole(p.node)) for p in below]
        if by_radii:
            self.multiples[radius] = radius, broadcast_to(constant(1), radius.shape)
            self._inner[radius] = inner
            return ZERO
        products = zip(below, slopes_of(radius), inner, strict=True)
        return add_tangents([weighted(*product) for product in products])

    def by_rule(self, node: Node, guard: TangentGuard | None) -> Tangent:
        """The tangent of another node by the rule of its op; of a function of a radius that by other ways."""
        rule = partial(jvp, node.op, node) if guard is None else partial(guard.push, node)
        apart = self.push(node, rule, guard is not None)
        return rule(tuple([self.dots.get(a, ZERO) if apart else self.whole(a) for a in node.args]))

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
            used = self.uses.get(node, self.uses.get(radius))
            if used is not None and len(used.shape) not in (0, len(radius.shape)):
                used = None
            terms = [own]
            for part, slope, dot in zip(parts(radius), slopes_of(radius), self._inner[radius], strict=True):
                condition = None if used is None else part.spread(used)
                masked = _inside_of_mask(condition, part.spread(multiple), slope)
                terms.append(weighted(part, masked, mask(condition, dot)))
            self._whole[node] = add_tangents(terms)
        return self._whole[node]


def weighted(part: Part, slope: Tangent, dot: Tangent) -> Tangent:
    """The tangent of a radius by one of its parts: Σ slope · u_dot."""
    return part.total(mul(slope, dot)) if isinstance(slope, Node) and isinstance(dot, Node) else ZERO


def _inside_of_mask(condition: Node | None, multiple: Node, slope: Node) -> Tangent:
    """The product of a multiple and a slope, 0 where it is not used or the multiple is masked.

    There the slope may be NaN.
    """
    if isinstance(multiple.op, Select) and slope.shape == multiple.shape:
        own, *branches = multiple.args
        if any(constant_value(b) == 0 for b in branches):
            return select(own, *[b if constant_value(b) == 0 else mul(b, slope) for b in branches])
    return mask(condition, mul(multiple, slope))
