"""Recurrent layers: torch's own with all options, both ways, lengths, lowered forms, certificates."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.recurrent import Recurrent
from symad.numeric import lower

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

T, N, D = 5, 3, 2
rng = np.random.default_rng(0)

OPTIONS = {
    "rnn": {},
    "rnn relu": {"kind": "rnn", "activation": "relu", "layers": 2},
    "rnn both ways, batch first": {"kind": "rnn", "bidirectional": True, "batch_first": True, "layers": 2},
    "lstm": {},
    "lstm both ways": {"kind": "lstm", "bidirectional": True, "layers": 2},
    "lstm projected": {"kind": "lstm", "projection": 3, "layers": 2, "bidirectional": True},
    "lstm without bias": {"kind": "lstm", "bias": False, "batch_first": True},
    "gru": {},
    "gru both ways": {"kind": "gru", "bidirectional": True, "layers": 2, "batch_first": True},
}


def module_of(model):
    options = {"num_layers": model.layers, "bidirectional": model.bidirectional, "bias": model.bias}
    options["batch_first"] = model.batch_first
    if model.kind == "rnn":
        options["nonlinearity"] = model.activation
    if model.projection:
        options["proj_size"] = model.projection
    kind = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[model.kind]
    return kind(model.inputs, model.hidden, **options).double()


def made(name):
    options = {"kind": name} | OPTIONS[name]
    model = Recurrent(inputs=D, hidden=4, **options)
    module = module_of(model)
    assert {k: tuple(v.shape) for k, v in module.state_dict().items()} == model.shapes
    p = model.init(1)
    module.load_state_dict({k: torch.tensor(v) for k, v in p.items()})
    return model, module, p


def flat(value):
    return [part for v in value for part in flat(v)] if isinstance(value, (tuple, list)) else [value]


def states(model):
    count = len(model.places)
    h, c = rng.normal(size=(count, N, model.outputs)), rng.normal(size=(count, N, model.hidden))
    return [h, c] if model.kind == "lstm" else [h]


@pytest.mark.parametrize("name", OPTIONS)
def test_values_states_and_gradients_are_those_of_torch(name):
    model, module, p = made(name)
    x = rng.normal(size=(N, T, D) if model.batch_first else (T, N, D))
    start = states(model)

    def f(p, x, *start):
        return tuple(flat(model.apply(p, x, start)))

    def run(p, x, h, c=None):
        return f(p, x, h) if c is None else f(p, x, h, c)

    graph = trace_model(run, model.shapes, x.shape, *(s.shape for s in start))
    tensors = [torch.tensor(v, requires_grad=True) for v in (x, *start)]
    given = tuple(tensors[1:]) if len(start) > 1 else tensors[1]
    expected = flat(module(tensors[0], given))
    found = graph(*p.values(), x, *start)
    seeds = [rng.normal(size=v.shape) for v in found]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-12, atol=1e-13)
    sum((e * torch.tensor(s)).sum() for e, s in zip(expected, seeds, strict=True)).backward()
    bars = symad.pullback(graph)(*p.values(), x, *start, *seeds)[len(found) :]
    references = [*module.parameters(), *tensors]
    for one, other in zip(bars, references, strict=True):
        np.testing.assert_allclose(one, other.grad.numpy(), rtol=1e-10, atol=1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["rnn", "lstm both ways", "gru both ways", "lstm projected"])
def test_lengths_are_packed_sequences(name):
    model, module, p = made(name)
    lengths = np.array([5, 2, 4])
    x = rng.normal(size=(N, T, D) if model.batch_first else (T, N, D))
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.tensor(x), torch.tensor(lengths), model.batch_first, enforce_sorted=False
    )
    y, last = module(packed)
    y, _ = nn.utils.rnn.pad_packed_sequence(y, model.batch_first)

    def run(p, x, lengths):
        return tuple(flat(model.apply(p, x, lengths=lengths)))

    count = sympy.IndexedBase(sympy.Symbol("lengths", integer=True), shape=(N,))
    graph = trace_model(run, model.shapes, x.shape, count)
    for found in (
        run(p, x, lengths), graph(*p.values(), x, lengths),
        lower(graph)(*p.values(), x, lengths), lower(graph, backend="c")(*p.values(), x, lengths),
    ):  # fmt: skip
        for one, other in zip(found, flat((y, last)), strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_one_sequence_without_batch_and_symbolic_length():
    model, module, p = made("lstm both ways")
    steps = sympy.Symbol("steps", integer=True, positive=True)
    graph = trace_model(lambda p, x: model.apply(p, x)[0], model.shapes, (steps, D))
    x = rng.normal(size=(7, D))
    expected = module(torch.tensor(x))[0].detach().numpy()
    np.testing.assert_allclose(lower(graph)(*p.values(), x), expected, rtol=1e-12)
    np.testing.assert_allclose(lower(graph, style="plain")(*p.values(), x), expected, rtol=1e-12)


def test_another_order_of_gates_is_the_same_function():
    model, _, p = made("lstm projected")
    other = Recurrent("lstm", D, 4, 2, bidirectional=True, projection=3, gates="ogif")
    moved = model.reordered(p, "ogif")
    x = rng.normal(size=(T, N, D))
    assert not np.array_equal(moved["weight_ih_l0"], p["weight_ih_l0"])
    for one, two in zip(flat(model.apply(p, x)), flat(other.apply(moved, x)), strict=True):
        np.testing.assert_array_equal(one, two)
    back = other.reordered(moved, "ifgo")
    assert all(np.array_equal(back[k], p[k]) for k in p)


def test_weights_of_our_own_lstm_go_both_ways():
    ours, x = LSTM(D, 4, 1, layers=2), rng.normal(size=(T, N, D))
    p = ours.init(3)
    module = nn.LSTM(D, 4, num_layers=2).double()
    module.load_state_dict({k: torch.tensor(v) for k, v in ours.to_torch(p).items()})
    np.testing.assert_allclose(ours.states(p, x)[0], module(torch.tensor(x))[0].detach().numpy(), rtol=1e-12)
    other = nn.LSTM(D, 4, num_layers=2).double()
    q = p | ours.from_torch({k: v.numpy() for k, v in other.state_dict().items()})
    np.testing.assert_allclose(ours.states(q, x)[0], other(torch.tensor(x))[0].detach().numpy(), rtol=1e-12)
    with pytest.raises(ShapeError, match="missing: weight_ih_l1"):
        ours.from_torch({k: v.numpy() for k, v in nn.LSTM(D, 4).state_dict().items()})


def test_worked_gru():
    """One step by hand: r = z = σ(0) = 1/2, n = tanh(1 + h/2)."""
    model = Recurrent("gru", 1, 1, bias=False)
    p = {"weight_ih_l0": np.array([[0.0], [0.0], [1.0]]), "weight_hh_l0": np.array([[0.0], [0.0], [1.0]])}
    y, last = model.apply(p, np.array([[1.0]]), initial=np.array([[0.5]]))
    assert abs(y[0, 0] - (np.tanh(1.25) / 2 + 0.25)) < 1e-15
    assert last.shape == (1, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_certificate(kind):
    model = Recurrent(kind, 1, 1, bidirectional=True)
    graph = trace_model(lambda p, x: model.apply(p, x)[0].sum(), model.shapes, (2, 1))
    assert symad.check(graph).status in ("proved", "tested")


def test_what_does_not_fit_is_refused():
    with pytest.raises(SymadError, match="'lstmm'"):
        Recurrent("lstmm", 1, 1)
    with pytest.raises(SymadError, match="ifgo"):
        Recurrent("lstm", 1, 1, gates="ifg")
    with pytest.raises(SymadError, match="projection"):
        Recurrent("gru", 1, 1, projection=2)
    model = Recurrent("gru", D, 4)
    p = model.init()
    with pytest.raises(ShapeError, match=r"\(1, 3, 4\)"):
        model.apply(p, np.zeros((T, N, D)), initial=np.zeros((2, N, 4)))
    with pytest.raises(ShapeError, match="lengths"):
        model.apply(p, np.zeros((T, N, D)), lengths=np.array([1, 9, 2]))
