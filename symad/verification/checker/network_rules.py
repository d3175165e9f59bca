"""The ops with indices: what each of them computes for all sizes, and what a claim says."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import sympy

from symad.core.dims import same_dim, same_shape
from symad.core.graph import Node
from symad.ops.arrays import contraction, shaping, sources
from symad.ops.elementwise import apply, arithmetic, powers, selection
from symad.ops.fused import softmax as softmaxes
from symad.verification.checker.claims import Derivative
from symad.verification.checker.functions import ALWAYS, HEADS
from symad.verification.checker.networks import BOUND, ROW, SLOPE, UNIT, Atom, Form, Networks, moved
from symad.verification.checker.terms import Refused, Terms


def network_sides(net: Networks, claim: Derivative, outputs: Sequence[Node], k: int) -> tuple[Form, Form]:
    """Both sides of output k of a claim, for all sizes."""
    made, kind = outputs[k], claim.kind
    if kind == "value":
        if not same_shape(made.shape, claim.function[k].shape):
            raise Refused("both sides have other shapes")
        return net.form(claim.function[k]), net.form(made)
    (y,), x = claim.function, claim.wrt[k]
    scalar, axes = not axes_of(y), axes_of(x)
    if kind not in ("gradient", "jacobian", "hessian") or not (scalar or kind == "jacobian"):
        raise Refused(f"the derivative {kind!r} is not covered for all sizes")
    slope, rows = net.slope(net.form(y), x.op), axes_of(y)
    sizes = [y.shape[i] for i in rows]
    if kind == "hessian":
        rows, sizes = [ROW + i for i in axes], [x.shape[i] for i in axes]
        slope = net.slope(moved(slope, {SLOPE + i: ROW + i for i in axes}), x.op)
    free, sizes = [*rows, *(SLOPE + i for i in axes)], [*sizes, *(x.shape[i] for i in axes)]
    shape = [made.shape[i] for i in axes_of(made)]
    if not same_shape(sizes, shape) or (kind != "gradient" and len(claim.wrt) != 1):
        raise Refused("axes of a Jacobian are joined")
    return moved(slope, dict(zip(free, axes_of(made), strict=True))), net.form(made)


def axes_of(node: Node) -> list[int]:
    """The axes that are not of length 1."""
    return [k for k, d in enumerate(node.shape) if d != 1]


def reshaped(net: Networks, node: Any, x: list[Form]) -> Form:
    """A reshape that only adds or drops axes of length 1."""
    (old,) = node.args
    if not same_shape([old.shape[k] for k in axes_of(old)], [node.shape[k] for k in axes_of(node)]):
        raise Refused("a reshape joins or splits axes")
    return moved(x[0], dict(zip(axes_of(old), axes_of(node), strict=True)))


def contracted(net: Networks, node: Any, x: list[Form]) -> Form:
    """Σ over the labels that are not in the output."""
    op, dims, place = node.op, dict[Any, Any](), dict[Any, int]()
    for labels, arg in zip(op.inputs, node.args, strict=True):
        for label, dim in zip(labels, arg.shape, strict=True):
            if not same_dim(dims.setdefault(label, dim), dim) or len(set(op.output)) != len(op.output):
                raise Refused("a contraction writes a diagonal, or joins axes of other sizes")
    for label, dim in dims.items():
        free = op.output.index(label) if label in op.output else next(net.fresh)
        place[label] = UNIT if dim == 1 else free
    parts = [
        moved(form, {k: place[j] for k, j in enumerate(ls)}) for form, ls in zip(x, op.inputs, strict=True)
    ]
    return net.times(parts, {i: dims[label] for label, i in place.items() if i >= BOUND})


def applied(net: Networks, node: Any, x: list[Form]) -> Form:
    """A function of the table, or another one that is only itself."""
    op = node.op
    name: Any = HEADS.get(op.head, op.head)
    if name in ALWAYS:
        terms = Terms()
        return net.of_term(ALWAYS[name](*[terms.variable(k) for k in range(len(x))]), x)
    return net.call(name, x)


def number(net: Networks, node: Any, x: list[Form]) -> Form:
    """A number, or the size of an axis."""
    value = node.op.value if isinstance(node.op, sources.Constant) else node.op.expression
    if isinstance(value, (bool, int, float, Fraction, sympy.Rational)):
        return net.number(Fraction(str(value)) if isinstance(value, sympy.Rational) else Fraction(value))
    if not isinstance(value, sympy.Expr) or value.is_Float or value.is_finite is False or value is sympy.nan:
        raise Refused(f"the constant {value} has no rule")
    return net.single(Atom("size", value), ())


def softmax(net: Networks, node: Any, x: list[Form]) -> Form:
    """exp(x)/Σ exp(x), its logarithm, and log Σ exp(x)."""
    op = node.op
    powers, shape = net.call("exp", x), node.args[0].shape
    total = net.times([powers], {k: shape[k] for k in op.axes if shape[k] != 1})
    if isinstance(op, softmaxes.Softmax):
        return net.times([powers, net.power(total, Fraction(-1))])
    logarithm = net.call("log", [total])
    if isinstance(op, softmaxes.LogSoftmax):
        return net.add([x[0], net.scaled(logarithm, -1)])
    return moved(logarithm, {k: j for j, k in enumerate(k for k in range(len(shape)) if k not in op.axes)})


def softmax_tangent(net: Networks, node: Any, x: list[Form]) -> Form:
    """p (t − Σ p t)."""
    shape, op = node.shape, node.op
    total = net.times([net.times(x)], {k: shape[k] for k in op.axes if shape[k] != 1})
    return net.times([x[0], net.add([x[1], net.scaled(total, -1)])])


def exponent(net: Networks, node: Any, x: list[Form]) -> Form:
    """A power with a known exponent, or a function of both."""
    if len(x[1]) > 1 or any(n.factors for n in x[1]):
        return net.call("pow", x)
    return net.power(x[0], x[1][0].number if x[1] else Fraction(0))


def compared(net: Networks, node: Any, x: list[Form]) -> Form:
    """[a relation b]."""
    if node.op.relation == "!=":
        return net.add([net.number(1), net.scaled(net.call("equal", x), -1)])
    return net.call({"<": "less", "<=": "at most", "==": "equal"}[node.op.relation], x)


RULES: dict[type, Any] = {
    sources.Input: lambda net, node, x: net.single(Atom("input", node.op), node.shape),
    sources.Constant: number,
    sources.Dimension: number,
    sources.Eye: lambda net, node, x: net.single(Atom("delta", None), node.shape),
    arithmetic.Add: lambda net, node, x: net.add(
        [net.scaled(a, s) for s, a in zip(node.op.signs, x, strict=True)]
    ),
    arithmetic.Mul: lambda net, node, x: net.times(
        [net.power(a, Fraction(p)) for p, a in zip(node.op.powers, x, strict=True)]
    ),
    powers.Pow: exponent,
    apply.Apply: applied,
    selection.Compare: compared,
    selection.Select: lambda net, node, x: net.call("select", x),
    contraction.Einsum: contracted,
    shaping.Broadcast: lambda net, node, x: moved(x[0], dict(enumerate(node.op.axes))),
    shaping.Reshape: reshaped,
    **dict.fromkeys((softmaxes.Softmax, softmaxes.LogSoftmax, softmaxes.LogSumExp), softmax),
    softmaxes.SoftmaxTangent: softmax_tangent,
}
Networks.rules |= RULES
