"""Backward passes and scores derived by hand: certified, or refuted after a change of one part."""

import numpy as np
import pytest
import sympy as sp
from sympy import Rational, besseli, beta, cos, digamma, exp, gamma, log, loggamma, symbols

import symad
from symad import functions

N, D = 3, 2
MASK = np.triu(np.full((N, N), -np.inf), 1)


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def attention(q, k, v):
    return softmax(q @ k.T / sp.sqrt(D) + MASK) @ v


def fused_attention(q, k, v):
    return functions.attention(q, k, v, causal=True)


def attention_backward(q, k, v, o_bar):
    p = softmax(q @ k.T / sp.sqrt(D) + MASK)
    p_bar = o_bar @ v.T
    s_bar = p * (p_bar - (p_bar * p).sum(-1, keepdims=True)) / sp.sqrt(D)
    return s_bar @ k, s_bar.T @ q, p.T @ o_bar


def centred(x):
    c = x - x.mean(-1, keepdims=True)
    return c, np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)


def layer_norm(x, scale, shift):
    c, s = centred(x)
    return c / s * scale + shift


def layer_norm_backward(x, scale, shift, y_bar):
    c, s = centred(x)
    h, h_bar = c / s, y_bar * scale
    mean = h_bar.mean(-1, keepdims=True) + h * (h_bar * h).mean(-1, keepdims=True)
    return (h_bar - mean) / s, (y_bar * h).sum(0), y_bar.sum(0)


def lstm_gates(W, x, h):
    z = (W @ np.concatenate([x, h])).reshape(4, len(h))
    return sigmoid(z[0]), sigmoid(z[1]), np.tanh(z[2]), sigmoid(z[3])


def lstm(W, x, h, c):
    i, f, g, o = lstm_gates(W, x, h)
    new = f * c + i * g
    return o * np.tanh(new), new


def lstm_backward(W, x, h, c, h_bar, c_bar):
    i, f, g, o = lstm_gates(W, x, h)
    t = np.tanh(f * c + i * g)
    d = c_bar + h_bar * o * (1 - t * t)
    z_bar = np.concatenate(
        [d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), h_bar * t * o * (1 - o)]
    )
    u_bar = W.T @ z_bar
    return np.outer(z_bar, np.concatenate([x, h])), u_bar[: len(x)], u_bar[len(x) :], d * f


def gru_gates(W, U, x, h):
    a, b = (W @ x).reshape(3, len(h)), (U @ h).reshape(3, len(h))
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    return r, z, np.tanh(a[2] + r * b[2]), b[2]


def gru(W, U, x, h):
    _, z, m, _ = gru_gates(W, U, x, h)
    return (1 - z) * m + z * h


def gru_backward(W, U, x, h, y_bar):
    r, z, m, b = gru_gates(W, U, x, h)
    m_bar = y_bar * (1 - z) * (1 - m * m)
    z_bar, r_bar = y_bar * (h - m) * z * (1 - z), m_bar * b * r * (1 - r)
    a_bar, b_bar = np.concatenate([r_bar, z_bar, m_bar]), np.concatenate([r_bar, z_bar, m_bar * r])
    return np.outer(a_bar, x), np.outer(b_bar, h), W.T @ a_bar, U.T @ b_bar + y_bar * z


PASSES = {
    "causal attention, masked by infinities": (attention, attention_backward, [(N, D)] * 3),
    "fused causal attention": (fused_attention, attention_backward, [(N, D)] * 3),
    "layer norm": (layer_norm, layer_norm_backward, [(2, 3), (3,), (3,)]),
    "an LSTM cell": (lstm, lstm_backward, [(8, 4), (2,), (2,), (2,)]),
    "a GRU cell": (gru, gru_backward, [(6, 2), (6, 2), (2,), (2,)]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PASSES)
def test_a_backward_pass_derived_by_hand(name):
    layer, backward, shapes = PASSES[name]
    f = symad.trace(layer, shapes)
    bars = [tuple(y.shape) for y in f.output_nodes]

    def changed(*arguments):
        first, *rest = backward(*arguments)
        return first * (1 + 1e-6), *rest

    right, wrong = (symad.trace(vjp, [*shapes, *bars]) for vjp in (backward, changed))
    held = symad.verify(f, list(f.inputs), vjp=right)
    assert held.status in ("proved", "tested"), str(held)
    refused = symad.verify(f, list(f.inputs), vjp=wrong)
    assert refused.status == "refuted"
    first = refused.entries[0].name
    assert {e.name for e in refused.entries_of("refuted")} == {first}


def test_a_candidate_on_other_inputs_is_an_error():
    x, z = symbols("x z", real=True)
    with pytest.raises(symad.errors.TraceError, match=r"depends on z.*the gradient depends on x"):
        symad.verify(x**2, x, gradient=2 * z)
    with pytest.raises(symad.errors.TraceError, match="with these assumptions"):
        symad.verify(x**2, x, gradient=2 * sp.Symbol("x", positive=True))


p, a, b, k, r, m, s, v = symbols("p a b k r m s v", positive=True)
x, y = symbols("x y", real=True)
gap = (x - y) ** 2

SCORES = {
    "negative binomial": (
        loggamma(k + r) - loggamma(r) - loggamma(k + 1) + r * log(r / (r + m)) + k * log(m / (r + m)),
        [r, m],
        [digamma(k + r) - digamma(r) + log(r / (r + m)) + 1 - (r + k) / (r + m), k / m - (r + k) / (r + m)],
    ),
    "gamma": (
        a * log(b) - log(gamma(a)) + (a - 1) * log(p) - b * p,
        [a, b],
        [log(b) - digamma(a) + log(p), a / b - p],
    ),
    "beta": (
        (a - 1) * log(p) + (b - 1) * log(1 - p) - log(beta(a, b)),
        [a, b],
        [log(p) - digamma(a) + digamma(a + b), log(1 - p) - digamma(b) + digamma(a + b)],
    ),
    "Student's t": (
        loggamma((v + 1) / 2)
        - loggamma(v / 2)
        - log(v * sp.pi) / 2
        - log(s)
        - (v + 1) / 2 * log(1 + gap / (v * s**2)),
        [v, y, s],
        [
            digamma((v + 1) / 2) / 2 - digamma(v / 2) / 2 - 1 / (2 * v)
            - log(1 + gap / (v * s**2)) / 2 + (v + 1) / 2 * gap / (v * (v * s**2 + gap)),
            (v + 1) * (x - y) / (v * s**2 + gap),
            -1 / s + (v + 1) * gap / (s * (v * s**2 + gap)),
        ],
    ),
    "beta-binomial": (
        loggamma(k + a) + loggamma(r + b) - loggamma(k + r + a + b) - log(beta(a, b)),
        [a],
        [digamma(k + a) - digamma(k + r + a + b) - digamma(a) + digamma(a + b)],
    ),
    "rising factorials": (loggamma(r + 3) - loggamma(r), [r], [1 / r + 1 / (r + 1) + 1 / (r + 2)]),
    "von Mises": (
        k * cos(x - y) - log(2 * sp.pi * besseli(0, k)),
        [k, y],
        [cos(x - y) - besseli(1, k) / besseli(0, k), k * sp.sin(x - y)],
    ),
    "Weibull": (
        log(k / m) + (k - 1) * log(p / m) - (p / m) ** k,
        [k, m],
        [1 / k + log(p / m) - (p / m) ** k * log(p / m), -k / m + k / m * (p / m) ** k],
    ),
    "zero-inflated Poisson": (log(p * exp(-m) + 1 - p), [m], [-p * exp(-m) / (p * exp(-m) + 1 - p)]),
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SCORES)
def test_the_score_of_a_likelihood(name):
    f, wrt, score = SCORES[name]
    assert symad.verify(f, wrt, gradient=score).status in ("proved", "tested")
    wrong = [score[0] * Rational(1000001, 1000000), *score[1:]]
    assert symad.verify(f, wrt, gradient=wrong).status == "refuted"


SUMS = {
    "shifted": lambda z: np.log(np.exp(z - z.max()).sum()) + z.max(),
    "named": lambda z: functions.logsumexp(z),
    "by pairs": lambda z: np.logaddexp(np.logaddexp(z[0], z[1]), z[2]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SUMS)
def test_forms_of_a_sum_of_exponentials(name):
    plain = symad.trace(lambda z: np.log(np.exp(z).sum()), [(3,)])
    form, wrong = (symad.trace(f, [(3,)]) for f in (SUMS[name], lambda z: SUMS[name](z) + z[0] * 1e-9))
    assert symad.equal(plain, form).status in ("proved", "tested")
    assert symad.equal(plain, wrong).status == "refuted"
    shares = symad.trace(lambda z: np.exp(z - z.max()) / np.exp(z - z.max()).sum(), [(3,)])
    assert symad.equal(symad.gradient(form), shares).status in ("proved", "tested")
