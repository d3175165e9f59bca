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
    function = [list(a.flat) for a in write_out(claim.function, known, terms)]
    if claim.kind == "value":
        return function
    wrt = [list(a.flat) for a in write_out(claim.wrt, known, terms)]
    v = [e for a in write_out(claim.v, known, terms) for e in a.flat]
    w = [e for a in write_out(claim.w, known, terms) for e in a.flat]
    x, y = [e for part in wrt for e in part], [e for part in function for e in part]
    if claim.kind == "jacobian":
        return [[e for element in y for e in gradient(element, x)]]
    if claim.kind == "pushforward":
        return [[inner(gradient(e, x), v) for e in part] for part in function]
    total = inner(w, y) if w and claim.kind in ("pullback", "slope") else y[0]
    if len(y) != 1 and (not w or claim.kind == "curvature"):
        raise Refused(f"the derivative {claim.kind!r} is of one number")
    slopes = gradient(total, x)
    if claim.kind in ("gradient", "pullback"):
        made = iter(slopes)
        return [[next(made) for _ in part] for part in wrt]
    if claim.kind == "hessian":
        return [[e for slope in slopes for e in gradient(slope, x)]]
    if claim.kind in ("slope", "curvature"):
        along = inner(slopes, v)
        return [[along if claim.kind == "slope" else inner(gradient(along, x), w)]]
    raise Refused(f"there is no derivative {claim.kind!r}")


def inner(a: Sequence[Term], b: Sequence[Term]) -> Term:
    """Σ a_k b_k."""
    if len(a) != len(b) or not a:
        raise Refused(f"{len(a)} and {len(b)} elements cannot be paired")
    return a[0].table.sum([p * q for p, q in zip(a, b, strict=True)])
