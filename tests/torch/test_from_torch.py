"""Modules of PyTorch as graphs: the same values and gradients, to 1e-10 in float64."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

N = 3


def built(make, *args, **options):
    torch.manual_seed(0)
    return lambda: make(*args, **options).double().eval()


MODULES = {
    "Linear": (built(nn.Linear, 4, 2), [(N, 4)]),
    "Linear without bias": (built(nn.Linear, 4, 2, bias=False), [(N, 4)]),
    "Bilinear": (built(nn.Bilinear, 4, 3, 2), [(N, 4), (N, 3)]),
    "LayerNorm": (built(nn.LayerNorm, 4), [(N, 5, 4)]),
    "LayerNorm over two axes": (built(nn.LayerNorm, (5, 4)), [(N, 5, 4)]),
    "RMSNorm": (built(nn.RMSNorm, 4), [(N, 4)]),
    "GroupNorm": (built(nn.GroupNorm, 2, 4), [(N, 4, 5)]),
    "BatchNorm1d": (built(nn.BatchNorm1d, 4), [(N, 4)]),
    "BatchNorm2d": (built(nn.BatchNorm2d, 2), [(N, 2, 3, 3)]),
    "Conv1d": (built(nn.Conv1d, 2, 3, 3, padding=1), [(N, 2, 7)]),
    "Conv1d same": (built(nn.Conv1d, 2, 3, 4, padding="same", dilation=2), [(N, 2, 9)]),
    "Conv1d in groups": (built(nn.Conv1d, 4, 6, 3, stride=2, groups=2), [(N, 4, 8)]),
    "Conv2d": (built(nn.Conv2d, 2, 3, (3, 2), padding=(1, 0), stride=2), [(N, 2, 6, 7)]),
    "ConvTranspose1d": (
        built(nn.ConvTranspose1d, 3, 2, 3, stride=2, padding=1, output_padding=1), [(N, 3, 4)],
    ),
    "ConvTranspose2d": (built(nn.ConvTranspose2d, 2, 3, 3, stride=2), [(1, 2, 3, 3)]),
    "MaxPool1d": (built(nn.MaxPool1d, 3, stride=2), [(N, 2, 8)]),
    "MaxPool2d": (built(nn.MaxPool2d, 2), [(N, 2, 4, 4)]),
    "AvgPool2d": (built(nn.AvgPool2d, 3, stride=1), [(N, 2, 4, 4)]),
    "global mean": (built(nn.AdaptiveAvgPool2d, 1), [(N, 2, 4, 4)]),
    "RNN": (built(nn.RNN, 3, 4, nonlinearity="relu"), [(5, N, 3)]),
    "LSTM": (built(nn.LSTM, 3, 4, num_layers=2), [(5, N, 3)]),
    "LSTM both ways": (
        built(nn.LSTM, 3, 2, num_layers=2, bidirectional=True, batch_first=True), [(N, 5, 3)],
    ),
    "LSTM projected": (built(nn.LSTM, 3, 4, proj_size=2, num_layers=2, bidirectional=True), [(5, N, 3)]),
    "LSTM without batch": (built(nn.LSTM, 3, 4), [(5, 3)]),
    "GRU": (built(nn.GRU, 3, 4, bias=False), [(5, N, 3)]),
    "RNN cell": (built(nn.RNNCell, 3, 4, nonlinearity="relu"), [(N, 3)]),
    "LSTM cell": (built(nn.LSTMCell, 3, 4), [(N, 3)]),
    "GRU cell from a state": (built(nn.GRUCell, 3, 4), [(N, 3), (N, 4)]),
    "GRU from a state": (built(nn.GRU, 3, 4, bidirectional=True), [(5, N, 3), (2, N, 4)]),
    "attention": (built(nn.MultiheadAttention, 4, 2), [(5, N, 4), (6, N, 4), (6, N, 4)]),
    "attention of other sizes": (
        built(nn.MultiheadAttention, 4, 2, kdim=3, vdim=5, batch_first=True),
        [(N, 5, 4), (N, 6, 3), (N, 6, 5)],
    ),
    "encoder layer": (
        built(nn.TransformerEncoderLayer, 4, 2, 8, batch_first=True, activation="gelu"), [(N, 5, 4)],
    ),
    "encoder layer, norm first": (
        built(nn.TransformerEncoderLayer, 4, 2, 8, norm_first=True), [(5, N, 4), (5, 5)],
    ),
    "decoder layer": (built(nn.TransformerDecoderLayer, 4, 2, 8), [(5, N, 4), (6, N, 4)]),
    "mean squares": (built(nn.MSELoss), [(N, 4), (N, 4)]),
    "logistic loss": (built(nn.BCEWithLogitsLoss, reduction="sum"), [(N, 4), (N, 4)]),
    **{
        f"activation {m.__class__.__name__} {m.extra_repr()}": (lambda m=m: m.eval(), [(N, 4)])
        for m in (
            nn.ReLU(), nn.LeakyReLU(0.1), nn.PReLU(4).double(), nn.ELU(0.7), nn.GELU(), nn.GELU("tanh"),
            nn.SiLU(), nn.Mish(), nn.Softplus(2.0), nn.Sigmoid(), nn.LogSigmoid(), nn.Tanh(), nn.ReLU6(),
            nn.Softmax(-1),
            nn.LogSoftmax(0), nn.Dropout(0.5), nn.Identity(), nn.Flatten(0),
        )
    },
}  # fmt: skip


def leaves(value):
    return [part for v in value for part in leaves(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("case", MODULES)
def test_values_and_gradients_are_those_of_the_module(case):
    make, shapes = MODULES[case]
    module = make()
    rng = np.random.default_rng(1)
    data = [rng.normal(size=shape) for shape in shapes]
    tensors = [torch.tensor(d, requires_grad=True) for d in data]
    expected = leaves(module(*tensors))
    seeds = [rng.normal(size=tuple(t.shape)) for t in expected]
    model = symad.torch.from_torch(module)
    assert list(model.parameters) == [name for name, _ in module.named_parameters()]
    graph = model.trace(*shapes)
    given = ([model.parameters] if model.parameters else []) + data
    found = leaves(graph(*given))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-10, atol=1e-10)
    sum((t * torch.tensor(s)).sum() for t, s in zip(expected, seeds, strict=True)).backward()
    bars = symad.pullback(graph)(*given, *seeds)[-len(given) :]
    parameters, *rest = bars if model.parameters else ({}, *bars)
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(parameters[name], parameter.grad.numpy(), rtol=1e-10, atol=1e-11)
    for one, t in zip(rest, tensors, strict=True):
        np.testing.assert_allclose(one, t.grad.numpy(), rtol=1e-10, atol=1e-11)


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64, 10), nn.Dropout(0.3),
    ).double().eval()  # fmt: skip


def test_a_stack_is_lowered_and_its_gradient_goes_back_into_the_module():
    module = classifier()
    model = symad.torch.from_torch(module)
    n = sp.Symbol("n", integer=True, positive=True)
    graph = model.trace((n, 1, 8, 8))
    images = np.random.default_rng(0).normal(size=(5, 1, 8, 8))
    kernel = lower(graph)
    np.testing.assert_allclose(
        kernel(model.parameters, images),
        module(torch.tensor(images)).detach().numpy(),
        rtol=1e-10,
        atol=1e-10,
    )
    changed = {name: value + 0.1 for name, value in model.parameters.items()}
    module.load_state_dict(model.state(changed), strict=False)
    np.testing.assert_allclose(
        kernel(changed, images), module(torch.tensor(images)).detach().numpy(), rtol=1e-10, atol=1e-10
    )


def test_tables_and_classes():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 7)).double()
    model = symad.torch.from_torch(module)
    loss = symad.torch.from_torch(nn.CrossEntropyLoss())
    words, targets = np.array([1, 0, 3, 6]), np.array([0, 2, 2, 5])

    def total(parameters, words, targets):
        return loss.apply({}, model.apply(parameters, words), targets)

    graph = symad.trace(total, [{k: v.shape for k, v in model.parameters.items()}, (4,), (4,)])
    value, bars = symad.value_and_gradient(graph, wrt=[0])(model.parameters, words, targets)
    expected = nn.CrossEntropyLoss()(module(torch.tensor(words)), torch.tensor(targets))
    expected.backward()
    assert abs(value - expected.item()) < 1e-12
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(bars[name], parameter.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_batch_statistics_in_training():
    module = nn.BatchNorm1d(4).double().train()
    data = np.random.default_rng(0).normal(size=(6, 4))
    model = symad.torch.from_torch(module)
    expected = module(torch.tensor(data)).detach().numpy()
    np.testing.assert_allclose(model.trace((6, 4))(model.parameters, data), expected, rtol=1e-10, atol=1e-10)


def test_tied_weights_are_one_parameter():
    first, second = nn.Linear(3, 3).double(), nn.Linear(3, 3).double()
    second.weight = first.weight
    module = nn.Sequential(first, nn.Tanh(), second)
    model = symad.torch.from_torch(module)
    assert list(model.parameters) == ["0.weight", "0.bias", "2.bias"]
    data = np.random.default_rng(0).normal(size=(2, 3))
    np.testing.assert_allclose(
        model.trace((2, 3))(model.parameters, data), module(torch.tensor(data)).detach().numpy(), atol=1e-12
    )


def test_a_rule_for_ones_own_module():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, z):
            return self.weight * z

    with pytest.raises(symad.errors.TraceError, match="Scale"):
        symad.torch.from_torch(Scale()).trace((4, 2))

    @symad.torch.layer.dispatch
    def scale(module: Scale, at: symad.torch.Weights, *data: object) -> object:
        return at(module.weight) * data[0]

    model = symad.torch.from_torch(nn.Sequential(Scale(), nn.Tanh()))
    made = model.trace((1, 2))(model.parameters, np.array([[0.5, -0.5]]))
    np.testing.assert_allclose(made, np.tanh([[1.0, -1.5]]))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Dropout(0.5), "eval"),
        (nn.Conv1d(2, 2, 3, padding=1, padding_mode="circular"), "padding_mode='circular'"),
        (nn.LSTM(3, 4, num_layers=2, dropout=0.5), "dropout|eval"),
        (nn.MaxPool1d(3, padding=1), "padding=True"),
        (nn.Softmax(), "dim"),
    ],
)
def test_what_no_rule_reads_is_refused(module, message):
    with pytest.raises(symad.errors.TraceError, match=message):
        symad.torch.from_torch(module).trace((5, 2, 3))


def test_complex_parameters_are_refused():
    with pytest.raises(symad.errors.SymadError, match=r"weight of torch.complex64, bias .* real numbers"):
        symad.torch.from_torch(nn.Linear(2, 2, dtype=torch.complex64))


def test_a_module_needs_its_inputs():
    layer = torch.nn.Linear(3, 2)
    with pytest.raises(symad.errors.TraceError, match=r"each input of Linear, such as its shape"):
        symad.torch.from_torch(layer).trace()
    with pytest.raises(symad.errors.TraceError, match=r"a Linear of PyTorch .*from_torch\(module\)\.trace"):
        symad.gradient(layer)


def test_what_is_no_module_is_refused():
    with pytest.raises(symad.errors.SymadError, match="Module"):
        symad.torch.from_torch(torch.tanh)
    with pytest.raises(symad.errors.SymadError, match="weight"):
        symad.torch.from_torch(nn.LazyLinear(3))


@pytest.mark.parametrize("function", [torch.sin, lambda a: torch.stack([a, a]), nn.Linear(3, 2)])
def test_a_function_of_pytorch_called_with_traced_values_is_named(function):
    with pytest.raises(symad.errors.TraceError, match=r"of PyTorch was called with a traced value"):
        symad.trace(function, [(3,)])


def test_a_model_is_shown_in_a_line():
    model = symad.torch.from_torch(nn.Sequential(*[nn.Linear(30, 30) for _ in range(40)]).double())
    assert repr(model).startswith("<Model of Sequential: 37200 parameters in 0.weight, 0.bias, ")
    assert len(repr(model)) < 160
