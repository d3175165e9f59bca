"""The forward and backward pass of a function of tensors, as functions of arrays.

And what autograd asks of a backward pass beside the right values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from symad.core.arguments import grouped_values
from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph
from symad.core.signatures import Tree, Wrt
from symad.core.structures import leaves
from symad.ops.basic.sources import symbol_of
from symad.tracing.wrt import select
from symad.verification import Certificate
from symad.verification.certificate.certificate import Entry, Loss
from symad.verification.certificate.witness import Witness
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.measuring.call_users_code import on_host
from symad.verification.measuring.precisions import Precision
from symad.verification.measuring.rounding_errors import plain
from symad.verification.values.instance_sizes import sizes_of
from symad.verification.values.point_set import PointSet

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested


class Passes:
    """The passes of a function of tensors, as functions of arrays."""

    def __init__(
        self,
        function: Callable[..., Any],
        graph: Graph,
        wrt: Wrt | None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        """``graph`` gives the numbers of inputs and outputs, ``wrt`` the inputs to differentiate by."""
        self.function, self.dtype = function, dtype
        self.count = len(graph.arguments)
        self.outputs = len(graph.output_nodes)
        owners = [k for k, a in enumerate(graph.arguments) for _ in range(leaves(a.structure))]
        entries = select(graph, wrt).entries
        self.wrt = [owners[graph.input_nodes.index(entry.nodes[0])] for entry in entries]
        places = {graph.input_nodes.index(n) for n in integer_inputs(graph.output_nodes)}
        places |= {k for k, symbol in enumerate(graph.inputs) if getattr(symbol, "is_integer", False)}
        self.whole = [owners[k] for k in places if len(graph.inputs) == self.count]

    def forward(self, *values: Tree) -> Any:
        """The results."""
        return mapped(self.function(*self.tensors(values)), torch.Tensor.detach)

    def backward(self, *values: Any) -> Any:
        """(inputs..., ȳ...) -> x̄ of every argument, computed by PyTorch."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [self.tensor(v) for v in values[self.count :]]
        found = iter(gradients(leaves_of(self.function(*given)), x, bars))
        return [mapped(value, lambda t: next(found).detach()) for value in given]

    def double_backward(self, *values: Array | float) -> list[Any]:
        """(inputs..., ȳ..., cotangents of the x̄ of wrt...) -> the cotangents of the inputs and of ȳ."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [self.tensor(v).requires_grad_() for v in values[self.count : self.count + self.outputs]]
        seeds = [self.tensor(v) for v in leaves_of(list(values[self.count + self.outputs :]))]
        first = gradients(leaves_of(self.function(*given)), x, bars, create_graph=True)
        places = {id(t): k for k, t in enumerate(x)}
        chosen = [first[places[id(t)]] for k in self.wrt for t in leaves_of(given[k])]
        found = iter(gradients(chosen, [*x, *bars], seeds))
        return [mapped(value, lambda t: next(found).detach()) for value in (*given, *bars)]

    def tensors(self, values: Sequence[Any]) -> list[Any]:
        """The arguments as tensors; integer tensors need no gradient."""
        return [
            mapped(value, integers if k in self.whole else lambda v: self.tensor(v).requires_grad_())
            for k, value in enumerate(values)
        ]

    def tensor(self, value: Array | float) -> torch.Tensor:
        """A new tensor of the type in which the function computes."""
        return torch.tensor(np.asarray(value, dtype=np.float64)).to(self.dtype)


def integers(value: ArrayLike) -> torch.Tensor:
    """A tensor of integers."""
    return torch.as_tensor(np.asarray(value)).to(torch.int64)


def gradients(
    outputs: Sequence[torch.Tensor], x: Sequence[torch.Tensor], bars: Sequence[torch.Tensor], **options: bool
) -> list[torch.Tensor]:
    """x̄ of each tensor; zeros where the outputs do not depend on it."""
    pairs = [(y, bar.reshape(y.shape)) for y, bar in zip(outputs, bars, strict=True) if y.requires_grad]
    wanted = [t for t in x if t.requires_grad]
    if not pairs or not wanted:
        return [torch.zeros_like(t) for t in x]
    ys, seeds = zip(*pairs, strict=True)
    options |= {"allow_unused": True, "materialize_grads": True}
    found = iter(torch.autograd.grad(ys, wanted, seeds, **options))
    return [next(found) if t.requires_grad else torch.zeros_like(t) for t in x]


def mapped(value: Any, rule: Callable[[Any], object]) -> Any:
    """The structure with a rule applied to every array."""
    if isinstance(value, Mapping):
        return {k: mapped(v, rule) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, rule) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: mapped(getattr(value, f.name), rule) for f in fields(value)})
    return rule(value)


def leaves_of(value: Any) -> list[Any]:
    """The arrays of a structure, in order."""
    found: list[Any] = []
    mapped(value, found.append)
    return found


# ---- what autograd asks of a backward pass beside the right values -------------------------------

# Cotangents may have any strides: those of a transposed result, or of a sum, whose one number is expanded.
# A graph that is kept is differentiated again. Inputs and cotangents belong to others: a cotangent that is
# changed in place is a wrong one for all other branches of the graph.


POINTS = 2
"""The number of points: a pass with bad manners mostly has them at each."""

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Called:
    """A function at one point, with new tensors."""

    function: Callable[..., object]
    given: Sequence[Any]
    bars: Tensors

    def x_bar(self, bars: Tensors, times: int = 1) -> Tensors:
        """The cotangents of the inputs from those of the outputs, by the last of several backward passes."""
        x, y = leaves_of(self.given), leaves_of(self.function(*self.given))
        for _ in range(times - 1):
            gradients(y, x, bars, retain_graph=True)
        return gradients(y, x, bars)


def strided(called: Called) -> tuple[Tensors, Tensors]:
    """y_bar with gaps between its elements."""
    gaps = [torch.stack([b, b + 1], dim=-1)[..., 0] for b in called.bars]
    return called.x_bar(called.bars), called.x_bar(gaps)


def transposed(called: Called) -> tuple[Tensors, Tensors]:
    """y_bar with its axes in another order in memory."""
    orders = [tuple(reversed(range(b.ndim))) for b in called.bars]
    turned = [b.permute(o).contiguous().permute(o) for b, o in zip(called.bars, orders, strict=True)]
    return called.x_bar(called.bars), called.x_bar(turned)


def expanded(called: Called) -> tuple[Tensors, Tensors]:
    """y_bar that is one expanded number."""
    numbers = [b.new_ones(()).expand(b.shape) for b in called.bars]
    return called.x_bar([torch.ones_like(b) for b in called.bars]), called.x_bar(numbers)


def second_backward(called: Called) -> tuple[Tensors, Tensors]:
    """a second backward of one graph."""
    return called.x_bar(called.bars), called.x_bar(called.bars, 2)


def left_alone(called: Called) -> tuple[Tensors, Tensors]:
    """inputs and y_bar left as they were."""
    held = [*leaves_of(called.given), *called.bars]
    before = [t.detach().clone() for t in held]
    called.x_bar(called.bars)
    return before, [t.detach() for t in held]


MANNERS = (left_alone, strided, transposed, expanded, second_backward)


def with_manners(certificate: Certificate, passes: Passes, graph: Graph, limits: Precision) -> Certificate:
    """A certificate of the manners of a backward pass; ``certificate`` is that of its values."""
    concrete = graph.at({s: v[0] for s, v in sizes_of(graph, graph)})
    inputs = concrete.input_nodes
    points = list(
        islice(PointSet(concrete.output_nodes, certificate.seed, inputs).points(8 * POINTS), POINTS)
    )
    rng = np.random.default_rng(certificate.seed % 2**63)
    wrong, losses = dict[str, Entry](), dict[str, Loss]()
    for point in points:
        values = [limits.rounded(point[n]) for n in inputs]
        where = {str(symbol_of(n)): plain(v) for n, v in zip(inputs, values, strict=True)}
        bars = [rng.normal(size=tuple(int(d) for d in o.shape)) for o in concrete.output_nodes]
        for manner in MANNERS:
            told = _words(manner)
            given = passes.tensors(grouped_values(graph.arguments, values, lambda v: v))
            try:
                pair = manner(Called(passes.function, given, [passes.tensor(b) for b in bars]))
            except Exception as problem:  # whatever the user's function raises is what is to be reported
                losses[told] = Loss(f"raised {type(problem).__name__}: {problem}", "backward", told, where)
                continue
            for witness in _differences(*pair, where, limits, manner is left_alone):
                entry = Entry(f"backward: {told}", "refuted", f"called at {len(points)} points", 0.0)
                wrong.setdefault(told, replace(entry, witness=witness))
    told = ", ".join(words for words in map(_words, MANNERS) if words not in losses)
    held = Entry("manners", "measured", f"agrees at {len(points)} points: {told}", 1.0, certificate.assumes)
    return replace(
        certificate, entries=tuple(wrong.values()) or (held,), losses=tuple(losses.values()), notes=(),
        seconds=0.0, steps=0,
    )  # fmt: skip


def _words(manner: Callable[[Called], object]) -> str:
    return str(manner.__doc__).removesuffix(".")


def _differences(
    right: Tensors, found: Tensors, where: Mapping[str, Nested], limits: Precision, exact: bool
) -> Iterator[Witness]:
    """The first element of each tensor that differs by more than roundings."""
    for a, b in zip(right, found, strict=True):
        u, v = (np.asarray(on_host(t), dtype=float) for t in (a, b))
        size = float(np.max(np.abs(u), initial=0.0, where=np.isfinite(u)))
        allowed = 0.0 if exact else limits.factor * limits.eps * size
        apart = ~((np.abs(u - v) <= allowed) | (u == v) | (np.isnan(u) & np.isnan(v)))
        if apart.any():
            at = tuple(int(k) for k in np.argwhere(apart)[0])
            yield Witness(where, repr(float(u[at])), repr(float(v[at])), at)
