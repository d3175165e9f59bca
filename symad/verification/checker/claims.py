"""What a proof is about: outputs of graphs that are the derivatives of a function, element by element.

The derivative is not taken from anywhere: it is what the table of `functions` and the chain rule make of the
function, written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.graph import Node
from symad.verification.checker.derivatives import gradient
from symad.verification.checker.terms import Refused, Term, Terms
from symad.verification.checker.writing_out import Array, write_out

KINDS = ("value", "gradient", "jacobian", "hessian", "pushforward", "pullback", "slope", "curvature")


@dataclass(frozen=True)
class Derivative:
    """Which derivative of which function some outputs are claimed to be.

    Args:
        kind: with x all elements of ``wrt`` in order, y those of ``function``,
            "value": y; "gradient": ∂y/∂x in the shape of each wrt; "jacobian": ∂y_i/∂x_j; "hessian":
            ∂²y/∂x_i∂x_j; "pushforward": Σ_j ∂y_i/∂x_j v_j for each output; "pullback": Σ_i w_i ∂y_i/∂x_j
            for each wrt; "slope": Σ_ij w_i ∂y_i/∂x_j v_j, without w for one y; "curvature":
            Σ_ij u_i ∂²y/∂x_i∂x_j v_j with w for u.
        function: outputs of a graph.
        wrt: inputs.
        v: directions, nodes of the shapes of ``wrt``.
        w: nodes of the shapes of ``function``, or for "curvature" of ``wrt``.
    """

    kind: str
    function: tuple[Node, ...]
    wrt: tuple[Node, ...] = ()
    v: tuple[Node, ...] = ()
    w: tuple[Node, ...] = ()


def derivative_terms(claim: Derivative, known: dict[Node, Array], terms: Terms) -> list[list[Term]]:
    """The elements of each output that the claim is about, in order."""
    function = [flat(a) for a in write_out(claim.function, known, terms)]
    if claim.kind == "value":
        return function
    wrt = [flat(a) for a in write_out(claim.wrt, known, terms)]
    v = [e for a in write_out(claim.v, known, terms) for e in flat(a)]
    w = [e for a in write_out(claim.w, known, terms) for e in flat(a)]
    x, y = [e for part in wrt for e in part], [e for part in function for e in part]
    if claim.kind in ("gradient", "pullback"):
        total = y[0] if claim.kind == "gradient" else inner(w, y)
        if claim.kind == "gradient" and len(y) != 1:
            raise Refused("a gradient is of one number")
        made = iter(gradient(total, x))
        return [[next(made) for _ in part] for part in wrt]
    if claim.kind == "hessian":
        return [[e for slope in gradient(y[0], x) for e in gradient(slope, x)]]
    if claim.kind == "jacobian":
        return [[e for element in y for e in gradient(element, x)]]
    if claim.kind == "pushforward":
        return [[inner(gradient(e, x), v) for e in part] for part in function]
    if claim.kind == "slope":
        return [[inner(gradient(inner(w, y) if w else y[0], x), v)]]
    if claim.kind == "curvature":
        return [[inner(gradient(inner(gradient(y[0], x), v), x), w)]]
    raise Refused(f"there is no derivative {claim.kind!r}")


def flat(array: Array) -> list[Term]:
    """The elements of an array in row-major order."""
    return list(array.ravel())


def inner(a: Sequence[Term], b: Sequence[Term]) -> Term:
    """Σ a_k b_k."""
    if len(a) != len(b) or not a:
        raise Refused(f"{len(a)} and {len(b)} elements cannot be paired")
    return a[0].table.sum([p * q for p, q in zip(a, b, strict=True)])
