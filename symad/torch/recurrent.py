"""Recurrent layers; `symad.models.sequences.recurrent` has PyTorch's layout, names and order of gates."""

from __future__ import annotations

from torch import nn

from symad.models.sequences.recurrent import Recurrent
from symad.torch.elementary import dropout
from symad.torch.modules import Array, Result, Weights, layer


@layer.dispatch
def recurrent(module: nn.RNNBase, at: Weights, *data: Array) -> Result:
    """x, optionally first states and lengths -> (output, last states), in PyTorch's form."""
    if module.num_layers > 1:
        dropout(module, data[0], "dropout")
    model = model_of(module)
    p = {name: at(getattr(module, name)) for name in model.shapes}
    return model.apply(p, *data)


def model_of(module: nn.RNNBase) -> Recurrent:
    """The model with the options of a module."""
    return Recurrent(
        kind=module.mode.split("_")[0].lower(),
        inputs=module.input_size,
        hidden=module.hidden_size,
        layers=module.num_layers,
        bidirectional=module.bidirectional,
        batch_first=module.batch_first,
        bias=module.bias,
        activation="relu" if module.mode == "RNN_RELU" else "tanh",
        projection=module.proj_size,
    )


@layer.dispatch
def cell(module: nn.RNNCellBase, at: Weights, *data: Array) -> Result:
    """One step: x (N, d_in) or (d_in,), optionally the previous state -> the state, or (h, c)."""
    kind = {nn.LSTMCell: "lstm", nn.GRUCell: "gru"}.get(type(module), "rnn")
    sigma = getattr(module, "nonlinearity", "tanh")
    model = Recurrent(kind, module.input_size, module.hidden_size, bias=module.bias, activation=sigma)
    p = {name: at(getattr(module, name.removesuffix("_l0"))) for name in model.shapes}
    before = None
    if len(data) > 1:
        before = tuple(part[None] for part in (data[1] if kind == "lstm" else (data[1],)))
    last = model.apply(p, data[0][None], before)[1]
    return tuple(part[0] for part in last) if kind == "lstm" else last[0]
