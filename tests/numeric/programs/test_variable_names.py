"""Generated code names values as the variables of the traced function, and only those values."""

import gc
import re
import weakref

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.following import following, tell
from symad.errors import SavingError
from symad.numeric import lower
from symad.saving.save_load import dumps, loads

T = sp.Symbol("T", integer=True, positive=True)
n = sp.Symbol("n", integer=True, positive=True)

MLP_INPUTS = [(5, 16), (16,), (16, 3), (n, 5)]


def mlp(W1, b1, W2, X):
    pre = X @ W1 + b1
    hidden = np.tanh(pre)
    logits = hidden @ W2
    return np.sum(logits**2)


def lstm(W, U, b, xs):
    def step(state, x):
        h, c = state
        z = W @ h + U @ x + b
        i, f, o = (functions.sigmoid(z[k : k + 4]) for k in (0, 4, 8))
        g = np.tanh(z[12:])
        c = f * c + i * g
        return o * np.tanh(c), c

    h, _ = functions.scan(step, (np.zeros(4), np.zeros(4)), xs)
    return h[-1] @ h[-1]


LSTM_INPUTS = [(16, 4), (16, 3), (16,), (T, 3)]


def entry(kernel):
    """The text of the function that a kernel calls."""
    return kernel.source[kernel.source.rindex("\ndef ") :]


def written(text):
    """The names to which statements of a text assign."""
    targets = re.findall(r"^ +(.+?) [-+*/]?= ", text, re.M)
    return {name for target in targets for name in re.findall(r"\w+", target)}


def test_plain_text_reads_like_the_model():
    text = entry(lower(symad.value_and_gradient(symad.trace(mlp, MLP_INPUTS)), style="plain"))
    for line in (
        "hidden = np.tanh(X @ W1 + b1)",
        "logits = hidden @ W2",
        "pre_bar = (1 - hidden**2)*(logits_bar @ W2.T)",
        "W1_bar = X.T @ pre_bar",
        "W2_bar = hidden.T @ logits_bar",
    ):
        assert f"    {line}\n" in text


def test_plain_loops_have_the_names_of_the_step():
    text = entry(lower(symad.value_and_gradient(symad.trace(lstm, LSTM_INPUTS)), style="plain"))
    for line in (
        "z = W @ h[t, 0] + v[t]",
        "o[t] = scipy.special.expit(z[8:12])",
        "g[t] = np.tanh(z[12:])",
        "c = f[t]*h[t, 1] + i[t]*g[t]",
    ):
        assert f"        {line}\n" in text


def test_fast_loops_have_the_names_of_the_step():
    text = entry(lower(symad.value_and_gradient(symad.trace(lstm, LSTM_INPUTS))))
    assert "    # h_t, c_t = f(h_{t-1}, c_{t-1}, …),   t = 0 … T - 1\n" in text
    for line in ("z = W.dot(h_previous)", "np.tanh(c_t, tanh_t)", "np.multiply(o_t, tanh_t, h_t)"):
        assert f"        {line}\n" in text


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_values_of_backward_loops_are_no_values_of_the_step(style):
    """The step and its cotangent are both a state times a row; the latter is not the value that c is."""

    def f(xs):
        return functions.scan(lambda c, x: c * x, 1.0, xs)[-1]

    text = entry(lower(symad.gradient(symad.trace(f, [(T,)])), style=style))
    forward, backward = text.split("    for ")[1:]
    assert "c_previous" in forward if style == "fast" else "c[t + 1] = c[t]*xs[t]" in forward
    assert "h_bar" in backward and not written(backward.split("xs_bar")[0]) & {"c", "c_t", "c_previous"}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function, inputs", [(mlp, MLP_INPUTS), (lstm, LSTM_INPUTS)])
def test_names_change_no_values(backend, function, inputs):
    graph = symad.value_and_gradient(symad.trace(function, inputs))
    rng = np.random.default_rng(3)
    values = [rng.normal(size=tuple(5 if d in (n, T) else d for d in shape)) for shape in inputs]
    for got, want in zip(lower(graph, backend=backend)(*values), graph(*values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_names_that_code_cannot_have():
    """Names of inputs, of modules and of builtins, other alphabets, and names that are too long."""

    def f(x, W):
        np_ = W @ x
        sum = np_ * np_
        σ = np.tanh(sum)
        _hidden = σ + np_
        a_name_of_more_than_24_letters = np.exp(-_hidden)
        W_bar = a_name_of_more_than_24_letters * σ
        T = W_bar + np_
        return T @ T

    kernel = lower(symad.value_and_gradient(symad.trace(f, [(4,), (4, 4)])), style="plain")
    assert "a_name_of" not in kernel.source and "_hidden" not in kernel.source
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=4), rng.normal(size=(4, 4))
    value, x_bar, _ = kernel(x, W)
    np.testing.assert_allclose(value, f(x, W))
    step = 1e-6 * rng.normal(size=4)
    np.testing.assert_allclose((f(x + step, W) - f(x - step, W)) / 2, x_bar @ step, rtol=1e-6)


def test_a_variable_that_changes_names_all_its_values():
    def f(x, A, B, C, D):
        for W in (A, B, C, D):
            x = np.tanh(W @ x)
        return np.sum(x)

    text = entry(lower(symad.trace(f, [(3,), *[(3, 3)] * 4]), style="plain"))
    assert {"x_2", "x_3"} <= written(text)


def test_a_caller_names_a_value_before_a_parameter():
    def layer(inner):
        return np.tanh(inner) * inner

    def f(x):
        outer = np.exp(x) + 1.0
        result = layer(outer)
        return result @ result

    text = entry(lower(symad.trace(f, [(3,)]), style="plain"))
    assert "outer = " in text and "result = " in text and "inner" not in text


def test_names_are_no_part_of_the_mathematics():
    def first(x):
        a = np.exp(x)
        return a * a + a

    def second(x):
        b = np.exp(x)
        return b * b + b

    f, g = symad.trace(first, [()]), symad.trace(second, [()])
    assert f.output_nodes == g.output_nodes
    assert [v.name for v in f.variables] == ["a"] and [v.name for v in g.variables] == ["b"]
    assert symad.trace(first, [()]) is f


@pytest.mark.thorough
def test_frames_are_freed():
    class Held:
        pass

    kept = []

    def f(x):
        held = Held()
        kept.append(weakref.ref(held))
        y = np.exp(x)
        return y * y

    graph = symad.trace(f, [()])
    gc.collect()
    assert graph.variables and kept[0]() is None


@pytest.mark.parametrize("function, inputs", [(mlp, MLP_INPUTS), (lstm, LSTM_INPUTS)])
def test_names_are_saved(function, inputs):
    graph = symad.trace(function, inputs)
    assert loads(dumps(graph)) is graph
    assert loads(dumps(symad.gradient(graph))) is symad.gradient(graph)


@pytest.mark.parametrize(
    "names",
    ["[[0, 0, 1]]", '[[0, 99999, "a"]]', '[[9, 0, "a"]]', '[[0, -1, "a"]]', '[[0, 0, "a = 1"]]', '[[0, 0]]',
     '[[0, 0, "a\\nimport os"]]', '"a"', '{"a": 1}', '[[true, 0, "a"]]'],
)  # fmt: skip
def test_damaged_names_are_refused(names):
    text = dumps(symad.trace(mlp, MLP_INPUTS))
    start = text.index('"variables": ') + len('"variables": ')
    end = text.index("]]", start) + 2
    with pytest.raises(SavingError):
        loads(text[:start] + names + text[end:])


def test_a_node_of_another_shape_stands_for_nothing():
    f = symad.trace(lambda x: (np.exp(x), np.sum(x), np.tanh(x)), [(3,)])
    a, b, c = f.output_nodes
    with following([a]) as originals:
        tell({a: b})
        assert dict(originals) == {a: a}
        tell({a: c})
        assert dict(originals) == {a: a, c: a}
    tell({c: a})
    assert dict(originals) == {a: a, c: a}
