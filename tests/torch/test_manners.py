"""Backward passes with right values and bad manners are refuted; types of few digits."""

import numpy as np
import pytest
import sympy as sp

import symad

torch = pytest.importorskip("torch")

z = sp.Symbol("z", real=True)
SWISH = symad.trace(lambda z: z / (1 + np.exp(-z)), [(5,)])


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * torch.sigmoid(z)

    @classmethod
    def slope(cls, ctx):
        (z,) = ctx.saved_tensors
        s = torch.sigmoid(z)
        return s * (1 + z * (1 - s))

    @classmethod
    def backward(cls, ctx, bar):
        return bar * cls.slope(ctx)


class WritesCotangent(Swish):
    @classmethod
    def backward(cls, ctx, bar):
        return bar.mul_(cls.slope(ctx))


class WritesSaved(Swish):
    @classmethod
    def backward(cls, ctx, bar):
        made = bar * cls.slope(ctx)
        ctx.saved_tensors[0].data.mul_(2)
        return made


class ReadsMemory(Swish):
    @classmethod
    def backward(cls, ctx, bar):
        """As a kernel reads that takes its cotangent for contiguous; an expanded one has one number."""
        memory = torch.empty(0, dtype=bar.dtype).set_(bar.untyped_storage())
        return memory[torch.arange(5) % len(memory)] * cls.slope(ctx)


class OnlyOnce(Swish):
    @classmethod
    def backward(cls, ctx, bar):
        ctx.times = getattr(ctx, "times", 0) + 1
        return bar * cls.slope(ctx) * ctx.times


class Refuses(Swish):
    @classmethod
    def backward(cls, ctx, bar):
        if not bar.is_contiguous():
            raise ValueError("y_bar has to be contiguous")
        return bar * cls.slope(ctx)


BAD = {
    WritesCotangent: "inputs and y_bar left as they were",
    WritesSaved: "inputs and y_bar left as they were",
    ReadsMemory: "y_bar with gaps between its elements",
    OnlyOnce: "a second backward of one graph",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", BAD)
def test_bad_manners_are_refuted(function):
    found = symad.torch.verify_function(function, SWISH, hostile=False, seed=1)
    assert found.status == "refuted"
    assert f"backward: {BAD[function]}" in [e.name for e in found.entries_of("refuted")]
    assert all(e.witness.left != e.witness.right for e in found.entries_of("refuted"))


@pytest.mark.thorough
def test_good_manners_are_told_and_refusals_are_losses():
    found = symad.torch.verify_function(Swish, SWISH, hostile=False, seed=1)
    assert found.status == "measured" and "a second backward" in found.entries[-1].claim
    refuses = symad.torch.verify_function(Refuses, SWISH, hostile=False, seed=1)
    assert refuses.status == "measured"
    assert any("has to be contiguous" in loss.word for loss in refuses.losses)
    assert "expanded" not in refuses.entries[-1].claim


class Typed(Swish):
    dtype, factor = torch.float32, 1.0

    @classmethod
    def forward(cls, ctx, z):
        """Takes no other type."""
        assert z.dtype == cls.dtype
        ctx.save_for_backward(z)
        return z * torch.sigmoid(z)

    @classmethod
    def backward(cls, ctx, bar):
        return bar * cls.slope(ctx) * cls.factor


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_tensors_of_a_type(name):
    Right = type("Right", (Typed,), {"dtype": getattr(torch, name)})
    Wrong = type("Wrong", (Right,), {"factor": 1.01})
    found = symad.torch.verify_function(Right, SWISH, hostile=False, computed_in=name, seed=2)
    assert found.status == "measured", found
    found = symad.torch.verify_function(Wrong, SWISH, hostile=False, computed_in=name, seed=2)
    assert [e.status for e in found.entries] == ["measured", "refuted"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_functions_of_torch_in_each_type(name):
    """PyTorch's own kernels are right, whatever they compute in; one that is off by 1 % is not."""

    def norm(a, w, b):
        centered = a - a.mean(axis=1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * w + b

    F = torch.nn.functional
    gelu = symad.trace(lambda a: a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))), [(6,)])
    claims = (
        (lambda a: F.gelu(a, approximate="tanh"), gelu),
        (lambda a: torch.softmax(a, 1), symad.trace(lambda a: symad.functions.softmax(a, axis=1), [(3, 5)])),
        (lambda a, w, b: F.layer_norm(a, (8,), w, b), symad.trace(norm, [(2, 8), (8,), (8,)])),
    )
    for function, formula in claims:
        right = symad.torch.verify_function(function, formula, computed_in=name, hostile=False, seed=3)
        assert right.status == "measured", right

    def off(a):
        return 1.01 * torch.softmax(a, 1)

    assert symad.torch.verify_function(off, claims[1][1], computed_in=name, hostile=False).status == "refuted"


def test_double_backward_has_names_of_its_own():
    found = symad.torch.verify_function(torch.sin, sp.sin(z), order=2, hostile=False)
    names = [e.name for e in found.entries]
    assert found.status == "measured" and len(set(names)) == len(names)


@pytest.mark.thorough
def test_digits_lost_by_a_double_backward_are_no_wrong_formula():
    """1 − tanh² of softplus(17) has no digits left; its errors are the same at many floats."""
    mish = symad.trace(lambda a: a * np.tanh(np.log1p(np.exp(a))), [(6,)])
    found = symad.torch.verify_function(torch.nn.functional.mish, mish, order=2, seed=5)
    assert found.status == "measured", found


@pytest.mark.thorough
def test_class_numbers_arrive_as_integers():
    """What a formula reads by is an index: the function gets a tensor of int64, as PyTorch's losses do."""

    def loss(scores, labels):
        return -torch.log_softmax(scores, 1).gather(1, labels[:, None]).mean()

    def formula(scores, labels):
        return -np.mean(np.take_along_axis(symad.functions.log_softmax(scores), labels[:, None], 1))

    graph = symad.trace(formula, [(3, 2), (3,)])
    assert symad.torch.verify_function(loss, graph, hostile=False).status == "measured"
