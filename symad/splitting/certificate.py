"""Decides if a function can be computed part by part: proved by rules, refuted by numbers, or undecided."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from symad.core.dims import format_shape
from symad.core.graph import Graph, Node
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Over, Traceable
from symad.splitting import moving_rules, rules  # noqa: F401  (their rules register here)
from symad.splitting.plan import Cut, Plan, _piece, analyzed, cut_of, plan_of
from symad.splitting.states import Mixed, Rows, Same, State, Total, Whole
from symad.splitting.witnesses import SplitWitness, search
from symad.tracing import as_graph
from symad.verification.accept import by_own_rules
from symad.verification.certificate.certificate import Certificate, Entry


@dataclass(frozen=True, repr=False)
class Splitting(Certificate):
    """A certificate about parts of data; ``rules`` has a name for each output, as the entries have claims.

    Attributes:
        plan: the plan for computing the function part by part, if every output is proved.
        rules: for each output "sum", "mean", "logsumexp", "maximum", "minimum", "product", "concatenation",
            "softmax-weighted mean", "same", "composed" (a function of several of these), or "" if not proved.
        over: the axes that were named.
    """

    plan: Plan | None = None
    rules: tuple[str, ...] = ()
    graph: Graph | None = None
    over: Mapping[str, int] | None = None

    @property
    def rule(self) -> str:
        """The rule of a function with one output.

        Raises:
            ValueError: there are several outputs; read ``rules``.
        """
        (rule,) = self.rules
        return rule

    def recheck(self, seed: int | None = None) -> Splitting:
        """The certificate of the same claim, established anew."""
        return splits(self.graph, dict(self.over or {}))


@without_collecting
def splits(f: Traceable, over: Over, inputs: Inputs | None = None) -> Splitting:
    """Decide if f is a sum, mean, maximum, log Σ exp or concatenation of its values on parts of the data.

    The data are the inputs named in ``over``, cut at the same positions along the axes named there. The proof
    follows the graph, whose sizes are symbols: it holds for parts of all lengths ≥ 1. The rules are exact in
    real arithmetic; floating-point results differ by rounding.

    Args:
        f: an argument of `trace`.
        over: for each input with data the axis that is cut, as in ``{"X": 0, "y": 0}``.
        inputs: order and grouping of the arguments, as in `trace`.

    Returns:
        A certificate with one entry for each output: "proved" with the rule in its claim and in ``rules``;
        "refuted" with the op that mixes the parts and numbers at which every rule is wrong; or "undecided".

    Raises:
        ShapeError: ``over`` names an unknown input or axis, an axis of fixed length, or axes of different
            lengths; or it omits an axis of the same length.

    Example:
        >>> import numpy as np, sympy, symad
        >>> n = sympy.Symbol("n", integer=True, positive=True)
        >>> loss = symad.trace(lambda X, w: np.sum((X @ w) ** 2), [(n, 3), (3,)])
        >>> symad.splits(loss, over={"X": 0}).status
        'proved'
    """
    began = time.perf_counter()
    graph = as_graph(f, inputs=inputs)
    flat = graph.ungrouped()
    cut = cut_of(flat, over)
    whole, states = analyzed(flat, cut)
    mixed = any(isinstance(states[o], Mixed) for o in whole.output_nodes)
    found = search(flat, cut) if mixed else []
    entries, words = [], []
    for k, node in enumerate(whole.output_nodes):
        name = graph.name if len(whole.output_nodes) == 1 else f"{graph.name}, output {k}"
        state = states[node]
        words.append("" if isinstance(state, Mixed) else word_of(state))
        entries.append(_entry(name, state, states, found[k] if found else None, node))
    plan = None if mixed else plan_of(whole, cut, states)
    named = ", ".join(f"axis {axis} of {flat.inputs[k]}" for k, axis in cut.axes)
    return Splitting(
        f"{graph.name} by parts of {named}",
        tuple(entries),
        seconds=time.perf_counter() - began,
        steps=len(states),
        plan=plan,
        rules=tuple(words),
        graph=graph,
        over={str(k): v for k, v in over.items()},
    )


def word_of(state: State) -> str:
    """The rule of an output as one word."""
    if isinstance(state, Whole) or (isinstance(state, Same) and state.weight is not None):
        return "composed"
    piece = _piece(state, [])
    return "concatenation" if isinstance(state, Rows) else piece.name


def _entry(
    name: str, state: State, states: Mapping[Node, State], found: SplitWitness | None, node: Node
) -> Entry:
    if not isinstance(state, Mixed):
        return by_own_rules(name, f"combined by {_claim(node, states)}, by the rules of its ops")
    where = _mixing(state.node, states)
    if found is not None and found.witness is not None:
        claim = f"no rule combines its values on parts: {where}; the nearest is {found.nearest}"
        return Entry(name, "refuted", claim, 0.0, witness=found.witness)
    if found is not None and found.standing:
        reason = f"{where}; but {' and '.join(found.standing)} agreed at {found.points} points"
    else:
        reason = f"{where}; no point was found at which the function and its parts are finite"
    return Entry(name, "undecided", "not decided", 1.0, reason=reason)


def _claim(node: Node, states: Mapping[Node, State]) -> str:
    """The rule of an output, or those of the values that it is a function of."""
    from symad.splitting.plan import _frontier

    state = states[node]
    if word_of(state) != "composed":
        return _piece(state, []).name
    parts = [_piece(states[v], []).name for v in _frontier((node,), states)]
    return f"a function of values combined by {', '.join(dict.fromkeys(parts))}"


_WORDS = {
    Rows: "rows",
    Whole: "a value computed from all data",
    Same: "a value that no data make",
}


def _mixing(node: Node, states: Mapping[Node, State]) -> str:
    """The op that mixes parts, with its arguments."""
    kind = type(node.op).__name__
    given = [_given(states[a]) for a in node.args if a in states]
    shape = format_shape(node.shape) if node.shape else "()"
    what = f" of {', '.join(dict.fromkeys(given))}" if given else ""
    return f"the op {kind}{what} mixes the parts (its value has shape {shape})"


def _given(state: State) -> str:
    weighted = getattr(state, "weight", None) is not None
    if isinstance(state, Total):
        return f"the {'mean' if weighted else state.kind} over all data"
    if isinstance(state, Rows) and weighted:
        return "rows divided by a sum over all data"
    return next((word for kind, word in _WORDS.items() if isinstance(state, kind)), "positions of rows")


__all__ = ["Cut", "Plan", "Splitting", "splits"]
