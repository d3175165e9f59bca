"""`symad.torch.as_function` under torch.compile, pickle and torch.save."""

import copy
import io
import pickle

import numpy as np
import pytest
import sympy as sp

import symad

torch = pytest.importorskip("torch")

n = sp.Symbol("n", integer=True, positive=True)


def loss(params, X):
    return np.sum(np.tanh(X @ params["W"] + params["b"]) ** 2), X.sum(axis=0)


def made():
    return symad.torch.as_function(symad.trace(loss, [{"W": (3, 2), "b": (2,)}, (n, 3)]))


def values(rows, seed=0):
    g = torch.Generator().manual_seed(seed)
    params = {
        "W": torch.randn(3, 2, generator=g, dtype=torch.float64, requires_grad=True),
        "b": torch.randn(2, generator=g, dtype=torch.float64, requires_grad=True),
    }
    return params, torch.randn(rows, 3, generator=g, dtype=torch.float64)


def eager(params, X):
    return torch.tanh(X @ params["W"] + params["b"]).pow(2).sum(), X.sum(0)


def test_pickle_copies_and_torch_save():
    f = made()
    params, X = values(4)
    buffer = io.BytesIO()
    torch.save({"f": f}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)["f"]
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), loaded):
        assert g.bridge.backend == f.bridge.backend and repr(g) == repr(f)
        for got, wanted in zip(g(params, X), eager(params, X), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-12, atol=0)


def test_a_module_that_holds_one_is_saved_with_it():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
            self.f = symad.torch.as_function(symad.trace(lambda w: np.sum(np.sin(w)), [(3,)]))

        def forward(self):
            return self.f(self.w)

    model = copy.deepcopy(Model())
    model().backward()
    torch.testing.assert_close(model.w.grad, torch.cos(model.w.detach()))


@pytest.mark.thorough
@pytest.mark.parametrize("whole", [True, False])
def test_compiled_values_and_gradients(whole):
    """The function stands between operations of PyTorch; the sizes change from call to call."""
    f = made()

    def around(function):
        def step(params, X):
            value, columns = function({k: 2 * v for k, v in params.items()}, X + 1)
            return torch.sqrt(value) * columns.mean()

        return step

    compiled = torch.compile(around(f), backend="aot_eager", fullgraph=whole)
    for rows in (4, 7, 4):
        params, X = values(rows, rows)
        found = compiled(params, X)
        wanted = around(eager)(params, X)
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)
        got = torch.autograd.grad(found, list(params.values()))
        for a, b in zip(got, torch.autograd.grad(wanted, list(params.values())), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-14)


@pytest.mark.thorough
def test_compiled_scalars_are_pointwise_and_names_work():
    x, y = sp.symbols("x y", real=True)
    f = symad.torch.as_function(sp.exp(-(x**2)) * sp.sin(y))
    compiled = torch.compile(lambda u, v: f(y=v, x=u) + 1, backend="aot_eager", fullgraph=True)
    u = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    v = torch.tensor(0.3, dtype=torch.float64)
    found = compiled(u, v)
    torch.testing.assert_close(found, torch.exp(-(u**2)) * torch.sin(v) + 1)
    (slope,) = torch.autograd.grad(found.sum(), u)
    torch.testing.assert_close(slope, (-2 * u * torch.exp(-(u**2)) * torch.sin(v)).detach())


@pytest.mark.thorough
def test_functions_with_one_graph_have_one_key():
    """Compiled code that is read from disk finds its function in any process."""
    x = sp.Symbol("x", real=True)
    keys = [symad.torch.as_function(f).bridge.key for f in (sp.sin(x), sp.sin(x), sp.cos(x))]
    assert keys[0] == keys[1] != keys[2]
