"""Claims about graphs, and proofs of them, as data.

A claim says that outputs of a graph are a derivative of a function. `symad.verification.checker` says whether
a proof shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from symad.core.nodes import Node

Goal: TypeAlias = tuple[int, int, int]
"""Which element of which output of which claim."""

KINDS = {k: [""] for k in ("value", "gradient", "jacobian", "hessian")}  # of derivatives; their directions
KINDS |= {"pushforward": ["v"], "pullback": ["w", ""], "slope": ["vw", "v"], "curvature": ["vw"]}


@dataclass(frozen=True)
class Derivative:
    """Which derivative of which function some outputs are claimed to be.

    With x all elements of ``wrt`` in order, y those of ``function``, and directions v, w of their shapes
    ("curvature": both of those of ``wrt``), ``kind`` is "value": y; "gradient": ∂y/∂x; "jacobian": ∂y_i/∂x_j;
    "hessian": ∂²y/∂x_i∂x_j; "pushforward": Σ_j ∂y_i/∂x_j v_j; "pullback": Σ_i w_i ∂y_i/∂x_j; "slope":
    Σ_ij w_i ∂y_i/∂x_j v_j; "curvature": Σ_ij w_i ∂²y/∂x_i∂x_j v_j, mostly of one number y if there is no w.
    """

    kind: str
    function: tuple[Node, ...]
    wrt: tuple[Node, ...] = ()
    v: tuple[Node, ...] = ()
    w: tuple[Node, ...] = ()


class Claim(NamedTuple):
    """Outputs of a graph, and the derivative that they are claimed to be."""

    derivative: Derivative
    outputs: tuple[Node, ...]


@dataclass(frozen=True)
class Proof:
    """Steps for some goals, as plain data that JSON can hold; ``digest`` is a checksum that others use.

    ``claims`` are the numbers of the claims that are written out, in order. ``steps`` are [number of the
    term, rule, data], or [number of the question, answer] for the way "networks", which is for all sizes;
    "same" is for one node. Letters after "elements" are directions: "v", "w" forwards, "V", "W" backwards.
    """

    claims: tuple[int, ...]
    goals: tuple[Goal, ...]
    steps: tuple[Any, ...] = field(repr=False)
    digest: int = 0
    way: str = "elements"
