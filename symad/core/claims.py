"""Claims about graphs, and proofs of them, as data.

A claim says that outputs of a graph are a derivative of a function. `symad.verification.checker` says whether
a proof shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

from symad.core.dims import same_shape
from symad.core.nodes import Node, topological

Goal: TypeAlias = tuple[int, int, int]
"""Which element of which output of which claim."""

KINDS = {k: [""] for k in ("value", "gradient", "jacobian", "hessian")}  # of derivatives; their directions
KINDS |= {"pushforward": ["v"], "pullback": ["w", ""], "slope": ["vw", "v"], "curvature": ["vw"]}
PLAIN = ("value", "jacobian", "pushforward")  # of any number of numbers; others are of one, or of a sum


def regrouped(nodes: Iterable[Node], groups: Iterable[Sequence[object]]) -> list[tuple[Node, ...]]:
    """Nodes in a row as groups of the lengths of some others."""
    rest = iter(nodes)
    return [tuple(islice(rest, len(group))) for group in groups]


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

    @property
    def groups(self) -> tuple[tuple[Node, ...], ...]:
        """All nodes, in the order in which claims are saved, numbered and rewritten."""
        return self.function, self.wrt, self.v, self.w

    def alone(self, k: int) -> Derivative:
        """What output k alone is claimed to be."""
        if self.kind in ("value", "pushforward"):
            return replace(self, function=self.function[k : k + 1])
        return replace(self, wrt=self.wrt[k : k + 1]) if self.kind in ("gradient", "pullback") else self

    def about(self, k: int) -> tuple[Node, ...]:
        """The functions whose derivative output k is claimed to be."""
        return self.function[k : k + 1] if self.kind in ("value", "pushforward") else self.function


class Derived(NamedTuple):
    """Outputs of a graph, and the derivative that they are claimed to be."""

    derivative: Derivative
    outputs: tuple[Node, ...]

    @property
    def is_whole(self) -> bool:
        """False if directions are missing or have other shapes, or depend on what the derivative is by.

        Derivatives of several numbers that are of one, values of other shapes, and doubled inputs make none.
        """
        d, own = self.derivative, set(self.derivative.wrt)
        one = len(d.function) == 1 and all(n == 1 for n in d.function[0].shape)
        of = d.wrt if d.kind == "curvature" else d.function
        pairs = list(zip(d.wrt, d.v, strict=True)) if d.v else []
        pairs += zip(of, d.w, strict=True) if d.w else ()
        pairs += zip(d.function, self.outputs, strict=True) if d.kind == "value" else ()
        usual = "v" * bool(d.v) + "w" * bool(d.w) in KINDS[d.kind] and len(own) == len(d.wrt)
        usual = usual and (one or d.kind in PLAIN or (bool(d.w) and d.kind != "curvature"))
        apart = own.isdisjoint(topological([*d.v, *d.w]))
        return usual and apart and all(same_shape(a.shape, b.shape) for a, b in pairs)

    @property
    def nodes(self) -> list[Node]:
        """All nodes, arguments first, in the order in which proofs number them."""
        return topological(chain(*self.derivative.groups, self.outputs))


@dataclass(frozen=True)
class Proof:
    """Steps for some goals, as plain data that JSON can hold; ``digest`` is a checksum that others use.

    ``claims`` are the numbers of the claims that are written out, in order. ``steps`` are [number of the
    term, rule, data]; for the way "sums", [number of the question, answer]. For the way "networks", which is
    for all sizes, they are [sweeps, lemma, ...]. A sweep is [letter, [[number of a node, number of its
    derivative], ...]], with "v", "w" for directions forwards, "V", "W" backwards, "X" backwards without
    direction, and "" for nodes that may compute anything. A lemma is [[number of a node that is written out,
    ...], [[number of a question, answer], ...]].
    """

    claims: tuple[int, ...]
    goals: tuple[Goal, ...]
    steps: tuple[Any, ...] = field(repr=False)
    digest: int = 0
    way: str = "elements"
