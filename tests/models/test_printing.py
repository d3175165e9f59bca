"""Models go back to SymPy and print; what is printed is traced again and has the same values."""

import numpy as np
import pytest
import sympy

import symad
from symad.models.layers import convolution, normalization, soft
from symad.models.layers.parameters import trace_model
from symad.models.layers.two_layer import TwoLayer
from symad.models.sequences import alignment, state_space
from symad.models.sequences.dynamics import AttentionDynamics
from symad.models.sequences.rnn import RNN
from symad.models.sequences.tcn import TCN
from symad.models.transformers.attention import MultiHead

T, N, n = sympy.symbols("T N n", integer=True, positive=True)


def normed_attention():
    model = MultiHead(4, 2)

    def f(p, X):
        return model.apply(p, normalization.layer_norm(X, np.ones(4)))

    return trace_model(f, model.shapes, (n, 4))


def applied(model, data):
    return trace_model(model.apply, model.shapes, data)


def scan():
    shapes = [(T, 1), (T, 1), (1, 2), (T, 2), (T, 2)]
    return symad.trace(state_space.selective_scan, shapes)


MODELS = {
    "convolution": (lambda: symad.trace(convolution.convolve, [(T, 2), (3, 2, 4)]), ["x[:T - 2, :]"]),
    "temporal convolution": (lambda: applied(TCN(1, 2, 1, 1), (T, 1)), ["relu"]),
    "recurrent network": (lambda: applied(RNN(2, 3, 1), (T, 2)), ["Scan", "x*W_xh1.T"]),
    "selective scan": (scan, ["exp", "Scan"]),
    "two layers": (lambda: applied(TwoLayer(2, n), (N, 2)), ["relu"]),
    "attention": (normed_attention, ["Softmax", "W_O"]),
    "dynamics": (
        lambda: trace_model(AttentionDynamics(2).velocity, AttentionDynamics(2).shapes, (n, 2)),
        ["softmax", "x*Q.T"],
    ),
    "smooth maximum": (lambda: symad.trace(soft.maximum, [(n,), ()]), ["alpha*"]),
    "DPO": (lambda: symad.trace(alignment.dpo_loss, [(N,)] * 4), ["softplus", "ref_chosen[_i]"]),
    "GRPO": (lambda: symad.trace(alignment.grpo_objective, [(N,)] * 4), ["Min", "exp"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MODELS))
def test_prints_and_comes_back(name):
    make, parts = MODELS[name]
    graph = make()
    expression = symad.to_sympy(graph)
    text = str(expression)
    assert all(part in text for part in parts), text
    again = symad.trace(expression, list(graph.inputs))
    sizes = {s: k + 3 for k, s in enumerate(sorted(graph.dims, key=str))}
    rng = np.random.default_rng(0)
    values = [
        rng.normal(size=[int(sympy.sympify(d).subs(sizes)) for d in node.shape]) for node in graph.input_nodes
    ]
    np.testing.assert_allclose(again(*values), graph(*values), rtol=1e-12, atol=1e-14)
