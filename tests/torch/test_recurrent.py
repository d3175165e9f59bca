"""All recurrent modules of PyTorch, with all their options, without a scan written by hand."""

from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from tests.torch.agreement import agrees  # noqa: E402

T, N, D, H = 4, 3, 2, 3
KINDS = {
    "tanh": (nn.RNN, {"nonlinearity": "tanh"}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "lstm": (nn.LSTM, {}),
    "projected lstm": (nn.LSTM, {"proj_size": 2}),
    "gru": (nn.GRU, {}),
}
GRID = [
    pytest.param(*case, marks=[] if case[1:] in ((1, False, False, True), (2, True, True, True)) else
                 pytest.mark.slow) for case in product(KINDS, (1, 2), *([False, True],) * 3)
]  # fmt: skip


def made(kind, layers=1, both=False, batch_first=False, bias=True):
    torch.manual_seed(0)
    build, options = KINDS[kind]
    return build(
        D, H, num_layers=layers, bidirectional=both, batch_first=batch_first, bias=bias, **options
    ).double()


def sequence(batch_first=False, seed=0):
    g = np.random.default_rng(seed)
    return g.normal(size=(N, T, D) if batch_first else (T, N, D))


@pytest.mark.parametrize(("kind", "layers", "both", "batch_first", "bias"), GRID)
def test_layers(kind, layers, both, batch_first, bias):
    agrees(made(kind, layers, both, batch_first, bias), [sequence(batch_first)])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_given_states(kind):
    """Initial states, whose gradients come too."""
    module, g = made(kind, 2, True), np.random.default_rng(1)
    states = [g.normal(size=(4, N, getattr(module, "proj_size", 0) or H))]
    if module.mode == "LSTM":
        states.append(g.normal(size=(4, N, H)))

    def expected(x, *start):
        return module(x, start if len(start) > 1 else start[0])

    class Stated(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x, h, c=None):
            return self.inner(x, h if c is None else (h, c))

    import symad

    @symad.torch.layer.dispatch
    def stated(outer: Stated, at: symad.torch.Weights, *data: object) -> object:
        start = data[1:] if len(data) > 2 else data[1]
        return symad.torch.layer(outer.inner, at, data[0], start)

    agrees(Stated(), [sequence(), *states], expected, backends=("numpy", "c"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_packed_sequences(kind, both):
    module, lengths = made(kind, 2, both), np.array([4, 1, 3])

    def expected(x):
        packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        y, last = module(packed)
        return pad_packed_sequence(y)[0], last

    agrees(module, [sequence()], expected, lengths=lengths)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_one_sequence_without_a_batch(kind):
    agrees(made(kind), [sequence()[:, 0]])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("build", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_cells(build, bias):
    torch.manual_seed(0)
    g, cell = np.random.default_rng(2), build(D, H, bias=bias)
    agrees(cell, [g.normal(size=(N, D))])
    agrees(cell, [g.normal(size=D)])
    if build is not nn.LSTMCell:
        agrees(cell, [g.normal(size=(N, D)), g.normal(size=(N, H))])


def test_a_relu_cell():
    agrees(nn.RNNCell(D, H, nonlinearity="relu"), [sequence()[0]])


def test_no_recurrent_module_is_missing():
    found = {n for n in vars(nn) if n.startswith(("RNN", "LSTM", "GRU"))} - {"RNNBase", "RNNCellBase"}
    assert found == {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"}


def test_names_that_forward_does_not_have_are_refused():
    import symad

    model = symad.torch.from_torch(made("gru"))
    with pytest.raises(symad.errors.TraceError, match=r"GRU takes input, hx, lengths, .* given length$"):
        model.apply(model.parameters, sequence(), length=np.array([1, 2, 3]))
