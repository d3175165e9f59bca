"""Wrong derivatives of functions of one number: left out, taken at another place, or of another form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np
import sympy

from symad.core.graph import Node
from symad.core.nodes import Moved
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.verification.certificate.domain_repair import DEPTH, signature
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.changes import MAX_RUNS, SLOPE
from symad.verification.mistakes.local import Edge
from symad.verification.mistakes.network import ChainNetwork, Change
from symad.verification.mistakes.words import Words, argument_of_sigmoid

Slope = Callable[[Array, Array], Array]
"""A wrong slope from the argument x and the value y."""


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


FORMS: Mapping[str, Sequence[tuple[str, Slope]]] = {
    "tanh": (
        ("1 + y² in place of 1 − y²", lambda x, y: 1 + y * y),
        ("1 − y in place of 1 − y²", lambda x, y: 1 - y),
        ("y² in place of 1 − y²", lambda x, y: y * y),
        ("y (1 − y), which is that of a sigmoid", lambda x, y: y * (1 - y)),
        ("y² − 1 in place of 1 − y²", lambda x, y: y * y - 1),
    ),
    "sigmoid": (
        ("y in place of y (1 − y)", lambda x, y: y),
        ("1 − y in place of y (1 − y)", lambda x, y: 1 - y),
        ("y (1 + y) in place of y (1 − y)", lambda x, y: y * (1 + y)),
        ("y (1 − y²) in place of y (1 − y)", lambda x, y: y * (1 - y * y)),
        ("1 − y², which is that of tanh", lambda x, y: 1 - y * y),
        ("y² in place of y (1 − y)", lambda x, y: y * y),
    ),
}
"""Wrong forms of derivatives that are told by the value y."""


def wrong_slopes(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """Wrong derivatives of one function, or of all that are built alike."""
    groups: dict[Hashable, list[Edge]] = {}
    sigmoids = _sigmoids(net)
    for source in net.order:
        for edge in net.edges.get(source, ()) if source in net.flow else ():
            if edge.is_diagonal and isinstance(edge.owner.op, (Apply, Pow, Select)):
                kind = "sigmoid" if edge.owner in sigmoids else edge.owner.op
                one: Hashable = signature(edge.owner, DEPTH), edge.position
                for key in (edge, one, (kind, edge.position)):
                    groups.setdefault((edge.owner in sigmoids, key), []).append(edge)
    right, cost, done = net.result, sum(map(len, net.edges.values())) or 1, 0
    for edges in {tuple(group): group for group in groups.values()}.values():
        is_sigmoid = edges[0].owner in sigmoids
        made = _of_sigmoids(net, edges, sigmoids) if is_sigmoid else _slopes_of(net, edges, words)
        for text, matrices in made:
            done += cost
            if done > MAX_RUNS:
                return
            effect = net.collected(net.run(None, matrices)) - right
            yield Change((SLOPE, -float(len(edges)), float(len(text))), text, effect)


def _slopes_of(
    net: ChainNetwork, edges: Sequence[Edge], words: Words
) -> Iterator[tuple[str, dict[Edge, Array]]]:
    """Other slopes for edges that are built alike, with the mistake."""
    first = edges[0]
    ones = {edge: np.ones_like(net.matrix[edge]) for edge in edges}
    others = {edge: 1 - net.matrix[edge] for edge in edges}
    told = words.of(first.owner)
    if isinstance(first.owner.op, Select):
        yield f"the condition of {told} is not applied", ones
        yield f"the condition of {told} is inverted", others
        return
    if isinstance(first.owner.op, Apply):
        head = first.owner.op.head
        if head in (sympy.Max, sympy.Min):
            yield f"the derivative of {told} is 1 everywhere", ones
            yield f"the condition of {told} is inverted", others
            return
        told = head.__name__
        for form, slope in FORMS.get(told, ()):
            made = {e: slope(net.value(e.argument), net.value(e.owner)) for e in edges}
            yield f"the derivative of {told} is {form}", made
    yield f"the derivative of {told} is missing", ones
    for text, replaced in (
        (f"the derivative of {told} is taken at its value instead of its argument", _at_value),
        (f"the derivative of {told} has the argument in place of the value", _of_argument),
    ):
        try:
            yield text, {edge: np.stack([replaced(edge, v) for v in net.values]) for edge in edges}
        except (ArithmeticError, ValueError, TypeError):
            continue


def _at_value(edge: Edge, values: Mapping[Node, Array]) -> Array:
    """f'(f(x)): the slope where the value stands in place of the argument."""
    here = {leaf: values[n] for leaf, n in edge.leaves.items()}
    value = edge.value
    here[value.args[edge.position]] = here.pop(value)
    (again,) = unchecked((value,), here)
    return edge.matrix({**here, value: again})


def _of_argument(edge: Edge, values: Mapping[Node, Array]) -> Array:
    """g(x) where f'(x) = g(f(x)): 1 − x² for tanh, whose slope is 1 − tanh²."""
    here = {leaf: values[n] for leaf, n in edge.leaves.items()}
    if isinstance(edge.owner.op, Pow):
        exponent = edge.owner.args[1]
        if not isinstance(exponent.op, Constant):
            raise ValueError("an exponent that varies")
        p, x = float(exponent.op.value), np.asarray(values[edge.argument], dtype=float)
        return np.asarray(p * np.sign(x) * np.abs(x) ** ((p - 1) / p)).ravel()
    here[edge.value] = values[edge.argument]
    return edge.matrix(here)


# ---- sigmoids -----------------------------------------------------------------------------------


def _sigmoids(net: ChainNetwork) -> dict[Node, tuple[Node, Node]]:
    """exp(−z) of each 1 + exp(−z), with this sum and z."""
    found: dict[Node, tuple[Node, Node]] = {}
    for node in net.order:
        z = argument_of_sigmoid(node)
        if z is not None:
            power = next(a for a in node.args if not isinstance(a.op, Constant))
            if power.shape == node.shape == z.shape:
                found[power] = node, z
    return found


def _of_sigmoids(
    net: ChainNetwork, edges: Sequence[Edge], sigmoids: Mapping[Node, tuple[Node, Node]]
) -> Iterator[tuple[str, dict[Edge, Array]]]:
    """Wrong slopes k of s = 1/a, a = 1 + exp(−z): the edge by −z has the matrix a² k, since ds = −da/a²."""
    more: Sequence[tuple[str, Slope]] = (
        *((f"is {text}", slope) for text, slope in FORMS["sigmoid"]),
        ("is missing", lambda x, y: np.ones_like(y)),
        ("is taken at its value instead of its argument", lambda x, y: _sigmoid(y) * (1 - _sigmoid(y))),
        ("has the argument in place of the value", lambda x, y: x * (1 - x)),
    )
    for text, slope in more:
        made = {}
        for edge in edges:
            a, z = (net.value(n) for n in sigmoids[edge.owner])
            made[edge] = a * a * slope(z, 1 / a)
        if all(m.shape == net.matrix[e].shape for e, m in made.items()):
            yield f"the derivative of sigmoid {text}", made


# ---- softmax ------------------------------------------------------------------------------------


def wrong_softmax(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """Wrong derivatives of p = e/Σ e, e = exp(s), which are p ∘ (p_bar − Σ p p_bar)."""
    for node in net.order:
        found = _softmax(node) if node in net.flow and not net.forward else None
        if found is None or found[0] not in net.effect:
            continue
        s, axes = found
        shape = (len(net.values), *(int(d) for d in node.shape))
        p, bar = net.value(node).reshape(shape), net.flow[node].reshape(shape)
        right = p * (bar - (p * bar).sum(axes, keepdims=True))
        forms = [
            ("the sum Σ p p_bar is missing", p * bar),
            ("only its diagonal p (1 − p) is there", p * (1 - p) * bar),
            ("Σ p_bar stands in place of Σ p p_bar", p * (bar - bar.sum(axes, keepdims=True))),
            ("the factor p is missing", bar - (p * bar).sum(axes, keepdims=True)),
            ("wrong sign of Σ p p_bar", p * (bar + (p * bar).sum(axes, keepdims=True))),
        ]
        for axis in range(1, len(shape)):
            if (axis,) != axes:
                other = p * (bar - (p * bar).sum(axis, keepdims=True))
                forms.append((f"wrong axis: Σ p p_bar along axis {axis - 1}, not {axes[0] - 1}", other))
        for text, other in forms:
            effect = net.changed(s, (other - right).reshape(shape[0], -1))
            yield Change((SLOPE, 0.0), f"in the derivative of the softmax {words.of(node)}: {text}", effect)


def _softmax(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """s of exp(s)/Σ exp(s), and the axes of the sum, counted from 1: the first axis is that of points."""
    if not isinstance(node.op, Mul) or sorted(node.op.powers) != [-1, 1]:
        return None
    e, total = node.args if node.op.powers == (1, -1) else node.args[::-1]
    axes: tuple[int, ...] | None = None
    while total.op.moves is Moved.IN_ORDER:
        if isinstance(total.op, Broadcast):
            axes = tuple(k + 1 for k in range(len(node.shape)) if k not in total.op.axes)
        (total,) = total.args
    is_sum = isinstance(total.op, Einsum) and total.args == (e,)
    if not is_sum or not isinstance(e.op, Apply) or e.op.head is not sympy.exp:
        return None
    return e.args[0], axes if axes is not None else tuple(range(1, len(node.shape) + 1))


# ---- products -----------------------------------------------------------------------------------


def products_of_derivatives(net: ChainNetwork, words: Words) -> Iterator[Change]:
    """u' v' in place of the product rule, u'/v' in place of that of quotients; constant factors are kept.

    In reverse mode the effect of the cotangent of u on that of x is ∂u/∂x: points, elements of x, of u.
    """
    known = net.flow if net.forward else net.effect
    for node in net.order:
        if not isinstance(node.op, Mul) or node not in net.flow or node not in net.effect:
            continue
        wrong, varying = np.ones(()), np.zeros((), int)
        for factor, power in zip(node.args, node.op.powers, strict=True):
            value = net.value(factor) if net.forward else net.value(factor)[:, None]
            derivative = known.get(factor, 0 * value)
            varies = np.any(derivative, axis=0)
            wrong, varying = wrong * np.where(varies, derivative, value) ** power, varying + varies
        change = np.where(varying > 1, wrong - known[node], 0)
        flows = net.flow[node]
        effect = net.changed(node, change) if net.forward else np.einsum("pwa,pa->pw", change, flows)
        what, parts = ("quotient", "parts") if -1 in node.op.powers else ("product", "factors")
        text = f"the derivative of {words.of(node)} is the {what} of the derivatives of its {parts}"
        yield Change((SLOPE, 0.0), text, effect)
