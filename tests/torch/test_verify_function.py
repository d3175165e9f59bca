"""Certificates of autograd functions: right ones are confirmed, wrong ones are refuted at a point."""

import numpy as np
import pytest
import sympy as sp

import symad

torch = pytest.importorskip("torch")

x, y = sp.symbols("x y", real=True)
swish = x / (1 + sp.exp(-x))


class Swish(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * torch.sigmoid(z)

    @staticmethod
    def backward(ctx, bar):
        (z,) = ctx.saved_tensors
        s = torch.sigmoid(z)
        return bar * s * (1 + z * (1 - s))


class WrongBackward(Swish):
    @staticmethod
    def backward(ctx, bar):
        (z,) = ctx.saved_tensors
        s = torch.sigmoid(z)
        return bar * s * (1 + z * (1 - s * s))


class WrongForward(Swish):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * torch.sigmoid(1.0001 * z)


class DetachedBackward(Swish):
    """Its first derivative is right, its second one is not."""

    @staticmethod
    def backward(ctx, bar):
        (z,) = ctx.saved_tensors
        s = torch.sigmoid(z.detach())
        return bar * s * (1 + z.detach() * (1 - s))


@pytest.mark.thorough
def test_a_right_function_is_measured():
    made = symad.torch.verify_function(Swish, swish, hostile=False)
    assert made.status == "measured"
    assert {e.name.split(" ")[0] for e in made.entries} == {"value", "x_bar", "manners"}


def test_a_wrong_backward_is_refuted_and_its_forward_is_not():
    made = symad.torch.verify_function(WrongBackward, swish, hostile=False)
    assert [e.status for e in made.entries] == ["measured", "refuted"]
    assert made.witness is not None


def test_a_wrong_forward_is_refuted():
    made = symad.torch.verify_function(WrongForward, swish, hostile=False)
    assert made.entries[0].status == "refuted"


@pytest.mark.thorough
def test_double_backward():
    assert symad.torch.verify_function(Swish, swish, order=2, hostile=False).status == "measured"
    found = symad.torch.verify_function(DetachedBackward, swish, order=2, hostile=False)
    assert [e.status for e in found.entries][:2] == ["measured", "measured"]
    assert found.status == "refuted"
    assert "save inputs and outputs alone" in " ".join(str(found).split())


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, W, v):
        ctx.save_for_backward(W, v)
        return W @ v

    @staticmethod
    def backward(ctx, bar):
        W, v = ctx.saved_tensors
        return torch.outer(bar, v), W.T @ bar


@pytest.mark.thorough
def test_arrays_and_chosen_inputs():
    def f(W, v):
        return W @ v

    graph = symad.trace(f, [(2, 3), (3,)])
    assert symad.torch.verify_function(Affine, graph, hostile=False).status == "measured"
    only = symad.torch.verify_function(Affine, graph, wrt="v", order=2, hostile=False)
    assert only.status == "measured"


@pytest.mark.thorough
def test_a_function_of_tensors_with_a_dict():
    def f(params, z):
        return np.tanh(params["W"] @ z + params["b"])

    def layer(params, z):
        return torch.tanh(params["W"] @ z + params["b"])

    def broken(params, z):
        return torch.tanh(params["W"] @ z + params["b"].detach())

    graph = symad.trace(f, [{"W": (2, 2), "b": (2,)}, (2,)])
    assert symad.torch.verify_function(layer, graph, hostile=False).status == "measured"
    found = symad.torch.verify_function(broken, graph, hostile=False)
    assert found.status == "refuted"


def test_a_domain_and_a_bad_order():
    cert = symad.torch.verify_function(torch.sqrt, sp.sqrt(x), where=x > 1, hostile=False)
    assert cert.status == "measured"
    with pytest.raises(ValueError, match="order"):
        symad.torch.verify_function(Swish, swish, order=3)


def test_inputs_in_another_order_are_refused():
    """The formula has alpha before x, by name; forward takes x first."""
    x, alpha = sp.symbols("x alpha", real=True)

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.save_for_backward(x, alpha)
            return alpha * x**2

        @staticmethod
        def backward(ctx, g):
            x, alpha = ctx.saved_tensors
            return 2 * g * alpha * x, g * x**2

    with pytest.raises(TypeError, match=r"forward takes \(x, alpha\), but is called with \(alpha, x\)"):
        symad.torch.verify_function(Scaled, alpha * x**2)
    made = symad.torch.verify_function(Scaled, alpha * x**2, inputs=[x, alpha], hostile=False)
    assert made.status == "measured"


def returning(results):
    """x y, with a backward that returns some results of the cotangent and the inputs."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return results(g, *ctx.saved_tensors)

    return Product


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (lambda g, x, y: g * y, "incorrect number of gradients (expected 2, got 1)"),
        (lambda g, x, y: (g * y, g * x, g), "incorrect number of gradients (expected 2, got 3)"),
        (lambda g, x, y: None, "incorrect number of gradients (expected 2, got 1)"),
        (lambda g, x, y: (1.0, 2.0), "(got float)"),
        (lambda g, x, y: ((g * y).sum(), g * x), "got [] but expected shape compatible with [3]"),
        (lambda g, x, y: (g * y, torch.cat([g, g])), "got [6] but expected shape compatible with [3]"),
    ],
)
def test_results_that_pytorch_refuses_are_refuted(results, told):
    """Their number, type or shape is wrong, so that no gradient can be computed at all."""
    formula = symad.trace(lambda x, y: x * y, [(3,), (3,)])
    cert = symad.torch.verify_function(returning(results), formula, hostile=False)
    assert cert.status == "refuted"
    wrong = [e for e in cert.entries if e.status == "refuted"]
    assert [e.name for e in wrong] == ["x_bar", "y_bar"] and not cert.losses
    assert all(e.blame.mistake.startswith("PyTorch refuses what backward returns") for e in wrong)
    assert all(told in e.blame.mistake for e in wrong)
    assert told in " ".join(str(cert).split())


def test_a_backward_that_raises_stays_undecided():
    cert = symad.torch.verify_function(returning(lambda g, x, y: 1 / 0), sp.Symbol("x") * sp.Symbol("y"))
    assert cert.status == "undecided"


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_an_instance_in_place_of_the_class():
    with pytest.raises(TypeError, match=r"give the class Product, not an instance of it: without \(\)"):
        symad.torch.verify_function(returning(lambda g, x, y: g)(), x * sp.Symbol("y"))
