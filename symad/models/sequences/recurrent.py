"""Recurrent layers in the layout of PyTorch: stacked, in one direction or both, for sequences of any lengths.

With a = W_ih x_t + b_ih and r = W_hh h_{t−1} + b_hh, whose gates are concatenated along the first axis,

    rnn    h_t = σ(a + r),   σ = tanh or another activation;
    lstm   i, f, o = σ(a· + r·),  g = tanh(a_g + r_g);   c_t = f c_{t−1} + i g,   h_t = W_hr (o tanh c_t);
    gru    r, z = σ(a· + r·),  n = tanh(a_n + r r_n);   h_t = (1 − z) n + z h_{t−1}.

W_hr exists with a ``projection``. A reverse layer reads x_T, ..., x_1; both directions are concatenated in
the output, which is the input of the next layer. A batch may contain sequences of different lengths: after
its end a sequence keeps its state and its output is 0, and its reverse layer begins at its own end.

Shapes, with D = 1 or 2 directions: x (T, d_in), (T, N, d_in), or with ``batch_first`` (N, T, d_in); output
likewise with D d_out features; states (layers D, N, d_out) and, of an LSTM, cells (layers D, N, d_h), without
N if x has no batch; d_out = d_h or the projection. Sources: Elman (1990); Hochreiter & Schmidhuber (1997);
Cho et al. (2014), in the form of ``torch.nn.RNN``, ``LSTM`` and ``GRU``, with r inside of tanh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim, format_shape
from symad.errors import ShapeError, SymadError
from symad.functions import arange, concatenate, scan, sigmoid, stack
from symad.models.layers.activations import activation
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, normal, numbers
from symad.models.sequences.rnn import check_sequence, zero_state

State = tuple[Array, ...]
"""(h,), or of an LSTM (h, c)."""

GATES = {"rnn": "h", "lstm": "ifgo", "gru": "rzn"}
"""The gates in PyTorch's order."""


def rnn_step(
    a: Mapping[str, Array], r: Mapping[str, Array], state: State, sigma: Callable[[Array], Array]
) -> State:
    """h = σ(a + r)."""
    return (sigma(a["h"] + r["h"]),)


def lstm_step(
    a: Mapping[str, Array], r: Mapping[str, Array], state: State, sigma: Callable[[Array], Array] | None
) -> State:
    """(h, c), before the projection."""
    i, f, o = (sigmoid(a[k] + r[k]) for k in "ifo")
    c = f * state[1] + i * np.tanh(a["g"] + r["g"])
    return o * np.tanh(c), c


def gru_step(
    a: Mapping[str, Array], r: Mapping[str, Array], state: State, sigma: Callable[[Array], Array] | None
) -> State:
    """h = (1 − z) n + z h."""
    reset, z = (sigmoid(a[k] + r[k]) for k in "rz")
    return ((1 - z) * np.tanh(a["n"] + reset * r["n"]) + z * state[0],)


STEPS: dict[str, Callable[..., State]] = {"rnn": rnn_step, "lstm": lstm_step, "gru": gru_step}


@model
class Recurrent:
    """Layers of one kind; sizes are ints or symbols, the number of layers is an int.

    Args:
        kind: "rnn", "lstm" or "gru".
        inputs: d_in.
        hidden: d_h.
        layers: the number of layers.
        bidirectional: true if each layer also reads from the end.
        batch_first: true if batches are (N, T, d_in).
        bias: true if b_ih and b_hh exist.
        activation: σ of the kind "rnn".
        projection: d_out of an LSTM with W_hr; 0 for none.
        gates: the order of the gates; by default PyTorch's, "ifgo" or "rzn".

    Raises:
        SymadError: an option has another value.
    """

    kind: str
    inputs: Dim
    hidden: Dim
    layers: int = 1
    bidirectional: bool = False
    batch_first: bool = False
    bias: bool = True
    activation: str = "tanh"
    projection: Dim = 0
    gates: str = ""

    def __post_init__(self) -> None:
        if self.kind not in GATES:
            raise SymadError(f"kind={self.kind!r} is not one of {', '.join(GATES)}")
        if self.gates and sorted(self.gates) != sorted(GATES[self.kind]):
            raise SymadError(
                f"gates={self.gates!r}: a {self.kind} has the gates {GATES[self.kind]!r}, in any order"
            )
        if self.projection and self.kind != "lstm":
            raise SymadError(f"projection={self.projection}: only an lstm has one, not a {self.kind}")

    @property
    def order(self) -> str:
        """The gates in their order."""
        return self.gates or GATES[self.kind]

    @property
    def outputs(self) -> Dim:
        """d_out of one direction."""
        return self.projection or self.hidden

    @property
    def places(self) -> list[str]:
        """The suffixes of the parameters' names, in the order of the states: l0, l0_reverse, l1, ..."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"l{k}{way}" for k in range(self.layers) for way in ways]

    @property
    def shapes(self) -> Shapes:
        """PyTorch's: weight_ih_l0 (G d_h, d_in), weight_hh_l0 (G d_h, d_out), bias_ih_l0 (G d_h,), ..."""
        found: Shapes = {}
        rows = len(self.order) * self.hidden
        for place in self.places:
            below = self.outputs * (1 + self.bidirectional)
            found[f"weight_ih_{place}"] = (rows, self.inputs if place[:2] == "l0" else below)
            found[f"weight_hh_{place}"] = (rows, self.outputs)
            if self.bias:
                found[f"bias_ih_{place}"] = found[f"bias_hh_{place}"] = (rows,)
            if self.projection:
                found[f"weight_hr_{place}"] = (self.projection, self.hidden)
        return found

    def init(self, seed: int = 0) -> Parameters:
        """Normal numbers of variance 1/(3 d_h), the variance of PyTorch's uniform numbers."""
        rng = np.random.default_rng(seed)
        scale = float((3 * numbers((self.hidden,))[0]) ** -0.5)
        return {name: normal(rng, shape, scale) for name, shape in self.shapes.items()}

    def reordered(self, p: Mapping[str, Array], gates: str) -> dict[str, Array]:
        """The same weights for layers with another order of gates, such as "ifog"."""
        places = [self.order.index(k) for k in replace(self, gates=gates).order]
        made = dict(p)
        for name, value in p.items():
            if "_hr_" not in name:
                parts = self._split(value, 0)
                made[name] = concatenate([parts[self.order[k]] for k in places], axis=0)
        return made

    def apply(
        self,
        p: Mapping[str, Array],
        x: Array,
        initial: Array | State | None = None,
        lengths: Array | None = None,
    ) -> tuple[Array, Any]:
        """(output, last states): the states are h, or (h, c) of an LSTM, each (layers D, N, ·).

        Args:
            p: parameters.
            x: the sequences.
            initial: states before the first step, with the shapes of the last ones; by default 0.
            lengths: (N,) integers 1..T; by default all are T.

        Raises:
            ShapeError: the shapes do not fit.
        """
        batched = len(x.shape) == 3
        x = np.swapaxes(x, 0, 1) if batched and self.batch_first else x
        check_sequence(x)
        starts = self._starts(p, x, initial)
        seen = self._seen(x, lengths)
        last: list[State] = []
        for k in range(self.layers):
            made = []
            for place in [name for name in self.places if name.split("_")[0] == f"l{k}"]:
                history = self._layer(p, place, x, starts[len(last)], seen)
                last.append(history[1])
                made.append(history[0])
            x = concatenate(made, axis=-1) if len(made) > 1 else made[0]
        ends = tuple(stack(list(parts)) for parts in zip(*last, strict=True))
        y = np.swapaxes(x, 0, 1) if batched and self.batch_first else x
        return y, ends if self.kind == "lstm" else ends[0]

    # ---- parts

    def _layer(
        self, p: Mapping[str, Array], place: str, x: Array, start: State, seen: Array | None
    ) -> tuple[Array, State]:
        """Outputs (T, ..., d_out) of one layer in one direction, and its last state."""
        backward = place.endswith("_reverse")
        step, sigma = STEPS[self.kind], activation(self.activation)
        W, b, W_r = p[f"weight_hh_{place}"], p.get(f"bias_hh_{place}"), p.get(f"weight_hr_{place}")
        driven = affine(x, p[f"weight_ih_{place}"], p.get(f"bias_ih_{place}"))

        def advance(state: State, driven: Array, seen: Array | None = None) -> State:
            a, r = (self._split(v, -1) for v in (driven, affine(state[0], W, b)))
            made = step(a, r, state, sigma)
            if W_r is not None:
                made = (made[0] @ W_r.T, *made[1:])
            return (
                made
                if seen is None
                else tuple(np.where(seen, n, o) for n, o in zip(made, state, strict=True))
            )

        def one(state: Any, moving: Any) -> Any:
            inputs = moving if isinstance(moving, tuple) else (moving,)
            made = advance(state if len(start) > 1 else (state,), *inputs)
            return made if len(start) > 1 else made[0]

        # A reverse layer is the same scan over the reversed sequence.
        turned = [v[::-1] if backward else v for v in ((driven,) if seen is None else (driven, seen))]
        found = scan(
            one, start if len(start) > 1 else start[0], turned[0] if len(turned) == 1 else tuple(turned)
        )
        history = found if len(start) > 1 else (found,)
        y = history[0][::-1] if backward else history[0]
        return y if seen is None else np.where(seen, y, 0.0), tuple(h[-1] for h in history)

    def _split(self, values: Array, axis: int) -> dict[str, Array]:
        """The gates by name."""
        size = self.hidden
        parts = [slice(k * size, (k + 1) * size) for k in range(len(self.order))]
        return {
            g: values[part] if axis == 0 else values[..., part]
            for g, part in zip(self.order, parts, strict=True)
        }

    def _starts(self, p: Mapping[str, Array], x: Array, initial: Array | State | None) -> list[State]:
        """The first state of every layer and direction."""
        count = len(self.places)
        if initial is None:
            W_r, rows = p.get("weight_hr_l0"), p["weight_hh_l0"][:, 0]
            cell = rows[: self.hidden]
            likes = [cell if W_r is None else W_r[:, 0], *([cell] if self.kind == "lstm" else [])]
            return [tuple(zero_state(x, like) for like in likes)] * count
        given = tuple(initial) if isinstance(initial, (tuple, list)) else (initial,)
        sizes = (self.outputs, self.hidden)[: 1 + (self.kind == "lstm")]
        wanted = [(count, *x.shape[1:-1], size) for size in sizes]
        if [tuple(v.shape) for v in given] != wanted:
            shown = ", ".join(format_shape(v.shape) for v in given)
            raise ShapeError(
                f"initial states of this {self.kind} have the shapes {', '.join(map(format_shape, wanted))}; "
                f"given: {shown}"
            )
        return [tuple(v[k] for v in given) for k in range(count)]

    def _seen(self, x: Array, lengths: Array | None) -> Array | None:
        """Conditions (T, N, 1), true if a step belongs to its sequence; None if all do."""
        if lengths is None:
            return None
        if len(x.shape) != 3 or tuple(lengths.shape) != tuple(x.shape[1:2]):
            raise ShapeError(
                f"lengths {format_shape(lengths.shape)}: one for each sequence of a batch; with time first x "
                f"has the shape {format_shape(x.shape)}"
            )
        if isinstance(lengths, np.ndarray) and not np.isin(lengths, np.arange(1, x.shape[0] + 1)).all():
            raise ShapeError(f"lengths {lengths.tolist()} are not integers in 1..{x.shape[0]}")
        return (arange(x.shape[0])[:, None] < lengths[None, :])[:, :, None]


def affine(x: Array, weight: Array, bias: Array | None) -> Array:
    """x Wᵀ + b; without b if it is None."""
    return x @ weight.T if bias is None else x @ weight.T + bias
