"""Reverse mode through a long chain in little memory: keep some states, recompute the others.

For s_k = f(s_{k−1}), k = 1 … n, reverse mode needs the states in reverse order. A `ChainPlan` says which
states are kept and which steps are run again. Policies:

- "all": every state is kept; each step runs once.
- "none": only s_0 is kept; n(n−1)/2 steps run.
- "every": every k-th state is kept, and one segment of k states at a time; each step runs at most
  twice. With k = √n the memory is 2√n states.
- "binomial": with c states kept at once, the minimum number of steps, by Revolve's splits
  (Griewank and Walther 2000, Algorithm 799). Memory and repetitions then grow like log n.

`functions.fold` and `functions.scan` follow such a plan inside a graph, in evaluation and in generated
code; `memory_plan` returns the cost of their policies. `chain_gradient` runs a plan over any functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Graph, TupleOf
from symad.core.signatures import Inputs, Memory, Traceable
from symad.derivatives.sweeps import pullback, value_and_gradient
from symad.errors import DerivativeError, EvaluationError
from symad.higher_order.checkpointed_chain_pullback import ChainPullback
from symad.library.scan import as_policy
from symad.tracing import as_graph
from symad.transforms.chain_plans import Action, Advance, ChainPlan, Drop, Keep, make_plan, steps_of
from symad.transforms.revolve import places

# ---- running a plan ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChainGradient:
    """Value and gradient of loss(s_n) with s_k = step(s_{k−1}, x_k..., θ...), run by a plan.

    Called with (s_0, sequences..., parameters...) it returns the value, then the gradients in the
    same order.
    """

    step: Callable[..., Array]
    pulled: Callable[..., tuple[Array, ...]]
    loss: Callable[..., tuple[Array, Array]]
    sequences: int
    plan: ChainPlan

    def __call__(self, state: Array | float, *others: Array) -> tuple[Array | float, ...]:
        """Run the plan."""
        xs, parameters = others[: self.sequences], others[self.sequences :]
        for x in xs:
            if len(x) != self.plan.length:
                raise EvaluationError(
                    f"a sequence has {len(x)} entries, but the chain has {self.plan.length} steps"
                )
        run = _PlannedRun(self, state, xs, parameters)
        for action in self.plan.actions:
            run.do(action)
        return run.results()


class _PlannedRun:
    """The states and sums during one run."""

    def __init__(
        self,
        chain: ChainGradient,
        state: Array | float,
        xs: Sequence[Array],
        parameters: Sequence[Array | float],
    ) -> None:
        self.chain, self.xs, self.parameters = chain, xs, parameters
        self.kept = {0: state}
        self.latest = (0, state)
        self.value: Any = None
        self.bar: Any = None
        self.x_bars: list[list[Any]] = [[None] * chain.plan.length for _ in xs]
        self.parameter_bars = [np.zeros(np.shape(p)) for p in parameters]
        if not chain.plan.length:
            self.value, self.bar = chain.loss(state)

    def do(self, action: Action) -> None:
        """Run one action of the plan."""
        if isinstance(action, Advance):
            state = self._state(action.start)
            for k in range(action.start, action.stop):
                state = self._step(state, k)
            self.latest = (action.stop, state)
        elif isinstance(action, Keep):
            self.kept[action.at] = self._state(action.at)
        elif isinstance(action, Drop):
            del self.kept[action.at]
        else:
            self._reverse(action.at)

    def _state(self, k: int) -> Array | float:
        return self.kept[k] if k in self.kept else dict([self.latest])[k]

    def _arguments(self, state: Array | float, k: int) -> list[Array | float]:
        return [state, *(x[k] for x in self.xs), *self.parameters]

    def _step(self, state: Array | float, k: int) -> Array | float:
        return self.chain.step(*self._arguments(state, k))

    def _reverse(self, k: int) -> None:
        state = self._state(k)
        if k == self.chain.plan.length - 1:
            self.value, self.bar = self.chain.loss(self._step(state, k))
        bars = self.chain.pulled(*self._arguments(state, k), self.bar)[1:]
        self.bar = bars[0]
        for column, bar in zip(self.x_bars, bars[1:], strict=False):
            column[k] = bar
        for total, bar in zip(self.parameter_bars, bars[1 + len(self.xs) :], strict=True):
            total += bar

    def results(self) -> tuple[Array | float, ...]:
        """The value, and the gradients in the order of the arguments."""
        sequences = [np.array(column) for column in self.x_bars]
        return (self.value, self.bar, *sequences, *(total[()] for total in self.parameter_bars))


def chain_gradient(
    step: Traceable,
    loss: Traceable,
    length: int,
    policy: str = "binomial",
    keep: int | None = None,
    sequences: int = 0,
    compiled: Callable[[Graph], Any] | None = None,
) -> ChainGradient:
    """Reverse mode through n steps of a recurrence, with a memory policy.

    Args:
        step: an argument of `symad.trace` with one output, the next state; its inputs are the state, then one
            entry of each sequence, then parameters that all steps share.
        loss: a scalar function of the last state.
        length: the number of steps n.
        policy: see `make_plan`.
        keep: see `make_plan`.
        sequences: the number of inputs of the step, after the state, that differ from step to step.
        compiled: a function that makes fast code of a graph, such as `symad.numeric.lower`; otherwise graphs
            are interpreted.

    Raises:
        DerivativeError: the step has several outputs, or its output has another shape than its state.
    """
    graph = as_graph(step)
    if len(graph.output_nodes) != 1 or graph.output_nodes[0].shape != graph.input_nodes[0].shape:
        shapes = ", ".join(str(o.shape) for o in graph.output_nodes)
        raise DerivativeError(
            f"a step maps the state {graph.inputs[0]} of shape {graph.input_nodes[0].shape} to the "
            f"next one, but {graph.name} has outputs of shape {shapes}"
        )
    make = compiled if compiled is not None else _interpreted
    bare = Graph(graph.input_nodes, graph.output_nodes, None, graph.name)
    scored = value_and_gradient(loss)
    flat = Graph(scored.input_nodes, scored.output_nodes, TupleOf((None, None)), scored.name)
    plan = make_plan(length, policy, keep)
    return ChainGradient(make(bare), make(pullback(bare)), make(flat), sequences, plan)


def _interpreted(graph: Graph) -> Graph:
    return graph


# ---- scans with a memory policy ------------------------------------------------------------------


def memory_plan(length: int, memory: Memory = "sqrt") -> ChainPlan:
    """The cost of the ``memory`` of `functions.fold`: states kept, steps run again, the memory curve.

    The forward sweep runs to the end, as the last state must be known before the backward sweep starts.
    Every policy but "all" runs each step once more when it is reversed; a plan counts only the additional
    runs. Of a binomial plan's states, those kept by the forward sweep stay alive until the end.

    Returns:
        A `ChainPlan`.

    Raises:
        DerivativeError: there is no such policy, or ``length`` is not a number of steps.

    Example:
        >>> import symad
        >>> plan = symad.memory_plan(100, memory="sqrt")
        >>> plan.peak < 100, plan.recomputations > 0
        (True, True)
    """
    if not isinstance(length, int) or length < 0:
        raise DerivativeError(f"memory_plan takes a number of steps, not {length!r}")
    policy, number = as_policy(memory)
    if policy in ("all", "recompute"):
        plan, distance = make_plan(length, "all"), 1
    else:
        plan = make_plan(length, "every" if policy == "sqrt" else policy, number or None)
        distance = 0 if policy == "binomial" else number or max(isqrt(length), 1)
    starts = [0, *places(length, distance, number or 2 * length.bit_length())][:-1]
    swept = next((k for k, a in enumerate(plan.actions) if a == Keep(starts[-1])), -1) + 1
    to_the_end = (Advance(starts[-1], length),) if length else ()
    return ChainPlan(policy, length, (*plan.actions[:swept], *to_the_end, *plan.actions[swept:]))


def memory_plans(f: Traceable, inputs: Inputs | None = None, **dims: int) -> list[ChainPlan]:
    """The plans of all backward sweeps in a graph that run by a memory policy.

    Args:
        f: an argument of `trace`, such as a gradient.
        inputs: order and grouping of the arguments, as in `trace`.
        dims: numbers for the dimension symbols by name.

    Returns:
        A `ChainPlan` for each sweep, in the order in which they run.

    Raises:
        DerivativeError: a number of steps is still a symbol.

    Example:
        >>> import numpy as np, symad
        >>> def loop(u):
        ...     return symad.functions.fold(lambda s, t: np.sin(s + t), 0.0, u, "sqrt")
        >>> slope = symad.gradient(symad.trace(loop, [(100,)]))
        >>> len(symad.memory_plans(slope))
        1
    """
    graph = as_graph(f, None, inputs)
    graph = graph.at({s: dims[str(s)] for s in graph.dims if str(s) in dims})
    found = []
    for node in graph.nodes:
        if isinstance(node.op, ChainPullback):
            length = node.args[1].shape[0]
            if not isinstance(length, int):
                raise DerivativeError(f"a plan needs the number of steps; give a number for {length}")
            all_kept = node.op.policy == "recompute" or node.op.history
            slots = node.op.slots(length)
            memory: dict[str, Memory] = {"every": node.op.number, "binomial": ("binomial", slots)}
            kept = "recompute" if all_kept else memory.get(node.op.policy, "sqrt")
            found.append(memory_plan(length, kept))
    return found


def draw_plans(plans: Sequence[ChainPlan], path: Path | str) -> None:
    """A picture of the states kept over the steps run by each plan; the steps run again in the legend."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for plan in plans:
        time = [0, *np.cumsum([steps_of(action) for action in plan.actions])]
        label = f"{plan.policy}: {plan.peak} states, {plan.recomputations} steps again"
        axes.step(time, [1, *plan.live], lw=1.2, where="post", label=label)
    axes.set(yscale="log", xlabel="steps run, forwards or back", ylabel="states kept")
    axes.legend(frameon=False, loc="upper right")
    axes.set_title(f"reverse mode through {plans[0].length} steps")
    figure.savefig(path, dpi=150)
    plt.close(figure)
