"""Classic layers with backward passes as papers and courses print them, and with the mistakes of beginners.

Each backward pass takes the name of a mistake; "" is the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symad import functions


class Layer(NamedTuple):
    """A forward pass, its backward pass with a mistake, shapes of the inputs, and which of them are wrt."""

    forward: Callable
    backward: Callable
    shapes: list[tuple[int, ...]]
    wrt: tuple[int, ...] = ()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


# ---- products -----------------------------------------------------------------------------------


def dense(x, W, b):
    return x @ W + b


def dense_backward(x, W, b, dy, mistake):
    W_bar = x.T @ dy
    if mistake == "mean":
        W_bar = W_bar / len(x)
    b_bar = {"mean of bias": dy.mean(0), "first row": dy[0]}.get(mistake, dy.sum(0))
    return dy @ W.T, W_bar, b_bar


def square_dense(x, W):
    return x @ W


def square_dense_backward(x, W, dy, mistake):
    W_bar = {"transposed": (x.T @ dy).T, "other operand": W.T @ dy}.get(mistake, x.T @ dy)
    return dy @ (W if mistake == "transpose" else W.T), W_bar


def hidden(x, W, V):
    h = np.tanh(x @ W)
    return h @ V


def hidden_backward(x, W, V, dy, mistake):
    z = x @ W
    h = np.tanh(z)
    h_bar = dy @ V.T
    slope = {
        "no slope": 1 + 0 * z,
        "slope at the value": 1 - np.tanh(h) ** 2,
        "slope of the argument": 1 - z**2,
        "not squared": 1 - h,
    }.get(mistake, 1 - h**2)
    z_bar = h_bar * slope
    return z_bar @ W.T, x.T @ z_bar, (z if mistake == "before tanh" else h).T @ dy


def bilinear(x, A, y):
    return x @ A @ y


def bilinear_backward(x, A, y, dy, mistake):
    outer = np.outer(y, x) if mistake == "transposed" else np.outer(x, y)
    y_bar = A @ x if mistake == "transpose" else A.T @ x
    return A @ y * dy, outer * (1 if mistake == "dy" else dy), y_bar * dy


# ---- activations --------------------------------------------------------------------------------


def gelu(x):
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    t = np.tanh(inner)
    return 0.5 * x * (1 + t)


def gelu_backward(x, dy, mistake):
    c = np.sqrt(2 / np.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    inner_slope = c * (1 + (0.044715 if mistake == "cube" else 3 * 0.044715) * x**2)
    first, second = 0.5 * (1 + t), 0.5 * x * (1 - t**2) * inner_slope
    if mistake == "product rule":
        second = 0
    if mistake == "first term":
        first = 0
    return dy * (first + second)


def silu(x):
    s = 1 / (1 + np.exp(-x))
    return x * s


def silu_backward(x, dy, mistake):
    s = sigmoid(x)
    if mistake == "product rule":
        return dy * s
    if mistake == "first term":
        return dy * x * s * (1 - s)
    return dy * (s + x * s * (1 - s))


def logistic(x, w):
    z = x @ w
    p = 1 / (1 + np.exp(-z))
    return p


def logistic_backward(x, w, dy, mistake):
    p = sigmoid(x @ w)
    wrong = {"no slope": 1 + 0 * p, "half": p, "at the value": sigmoid(p) * (1 - sigmoid(p))}
    slope = wrong.get(mistake, p * (1 - p))
    return np.outer(dy * slope, w), x.T @ (dy * slope)


def relu(x, W):
    z = x @ W
    return np.maximum(z, 0)


def relu_backward(x, W, dy, mistake):
    z = x @ W
    wrong = {"no mask": dy, "inverted": dy * (z < 0), "value": dy * np.maximum(z, 0)}
    z_bar = wrong.get(mistake, dy * (z > 0))
    return z_bar @ W.T, x.T @ z_bar


def leaky(x):
    return np.where(x > 0, x, 0.1 * x)


def leaky_backward(x, dy, mistake):
    return dy * np.where(x > 0, 1, {"relu": 0, "linear": 1}.get(mistake, 0.1))


def dropout(x, mask):
    kept = x * mask / 0.8
    return kept**2


def dropout_backward(x, mask, dy, mistake):
    y_bar = 2 * dy * x * mask / 0.8
    return {"no mask": y_bar / 0.8, "no scale": y_bar * mask}.get(mistake, y_bar * mask / 0.8)


# ---- normalisation ------------------------------------------------------------------------------


def layer_norm(x, gamma, beta):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdims=True)
    normed = centred / np.sqrt(var + 1e-5)
    return normed * gamma + beta


def layer_norm_backward(x, gamma, beta, dy, mistake):
    c = x - x.mean(-1, keepdims=True)
    s = np.sqrt((c * c).mean(-1, keepdims=True) + (0 if mistake == "epsilon" else 1e-5))
    h, h_bar = c / s, dy * (1 if mistake == "gamma" else gamma)
    mean, along = h_bar.mean(-1, keepdims=True), h * (h_bar * h).mean(-1, keepdims=True)
    if mistake in ("mean", "statistics"):
        mean = 0
    if mistake in ("variance", "statistics"):
        along = 0
    if mistake == "sign":
        along = -along
    x_bar = (h_bar - mean - along) / (1 if mistake == "scale" else s)
    return x_bar, (dy * (x if mistake == "input" else h)).sum(0), dy.sum(0)


def batch_norm(x, gamma, beta):
    mean = x.mean(0)
    centred = x - mean
    var = (centred**2).mean(0)
    return gamma * centred / np.sqrt(var + 1e-5) + beta


def batch_norm_backward(x, gamma, beta, dy, mistake):
    n, c = len(x), x - x.mean(0)
    s = np.sqrt((c**2).mean(0) + 1e-5)
    h, h_bar = c / s, dy * gamma
    if mistake == "statistics":
        return h_bar / s, (dy * h).sum(0), dy.sum(0)
    m = n - 1 if mistake == "n - 1" else n
    along = 0 if mistake == "variance" else h * (h_bar * h).sum(0) / n
    x_bar = (h_bar - h_bar.sum(0) / m - along) / s
    return x_bar, (dy * h).sum(0) / (n if mistake == "mean" else 1), dy.sum(0)


def rms_norm(x, g):
    rms = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x / rms * g


def rms_norm_backward(x, g, dy, mistake):
    rms = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    h, h_bar = x / rms, dy * g
    along = h * (h_bar * h).mean(-1, keepdims=True)
    if mistake == "statistics":
        along = 0
    if mistake == "sum":
        along = along * x.shape[-1]
    return (h_bar - along) / rms, (dy * h).sum(0)


# ---- softmax, attention, losses -----------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_backward(x, dy, mistake):
    p = softmax(x)
    if mistake == "sum":
        return p * dy
    if mistake == "logistic":
        return p * (1 - p) * dy
    if mistake == "axis":
        return p * (dy - (p * dy).sum(0))
    return p * (dy - (p * dy).sum(-1, keepdims=True))


def named_softmax(x):
    return functions.softmax(x, axis=-1)


def cross_entropy(x, target):
    p = functions.softmax(x, axis=-1)
    return -np.mean(np.sum(target * np.log(p), axis=-1))


def cross_entropy_backward(x, target, dy, mistake):
    p = softmax(x)
    x_bar = (target.sum(-1, keepdims=True) * p - target) / (1 if mistake == "mean" else len(x))
    if mistake == "sign":
        x_bar = -x_bar
    return x_bar if mistake == "dy" else dy * x_bar, -dy * np.log(p) / len(x)


def logsumexp(x):
    m = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=-1)) + m[:, 0]


def logsumexp_backward(x, dy, mistake):
    e = np.exp(x - x.max(-1, keepdims=True))
    p = e if mistake == "not divided" else e / e.sum(-1, keepdims=True)
    return p if mistake == "dy" else dy[:, None] * p


def attention(Q, K, V):
    S = Q @ K.T / np.sqrt(2.0)
    P = functions.softmax(S, axis=-1)
    return P @ V


def attention_backward(Q, K, V, dy, mistake):
    P = softmax(Q @ K.T / np.sqrt(2.0))
    P_bar = dy @ V.T
    inner = 0 if mistake == "sum" else (P * P_bar).sum(-1, keepdims=True)
    S_bar = P * (P_bar - inner) / (1 if mistake == "scale" else np.sqrt(2.0))
    return S_bar @ K, (S_bar if mistake == "transpose" else S_bar.T) @ Q, (P if mistake == "P" else P.T) @ dy


MASK = np.triu(np.full((3, 3), -np.inf), 1)


def causal(Q, K, V):
    S = Q @ K.T + MASK
    return functions.softmax(S, axis=-1) @ V


def causal_backward(Q, K, V, dy, mistake):
    S = Q @ K.T + (0 if mistake == "mask" else MASK)
    P = softmax(S)
    P_bar = dy @ V.T
    S_bar = P * (P_bar - (P * P_bar).sum(-1, keepdims=True))
    return S_bar @ K, S_bar.T @ Q, P.T @ dy


def squared_error(x, w, y):
    r = x @ w - y
    return np.mean(r**2)


def squared_error_backward(x, w, y, dy, mistake):
    r = x @ w - y
    r_bar = {"two": r, "sum": 2 * r}.get(mistake, 2 * r / (len(r)))
    if mistake == "two":
        r_bar = r / len(r)
    r_bar = r_bar * dy
    return np.outer(r_bar, w), x.T @ r_bar, r_bar if mistake == "sign" else -r_bar


# ---- recurrences --------------------------------------------------------------------------------


def lstm(W, x, h, c):
    z = (W @ np.concatenate([x, h])).reshape(4, 2)
    i, f, g, o = sigmoid(z[0]), sigmoid(z[1]), np.tanh(z[2]), sigmoid(z[3])
    c_new = f * c + i * g
    return o * np.tanh(c_new), c_new


def lstm_backward(W, x, h, c, h_bar, c_bar, mistake):
    z = (W @ np.concatenate([x, h])).reshape(4, 2)
    i, f, g, o = sigmoid(z[0]), sigmoid(z[1]), np.tanh(z[2]), sigmoid(z[3])
    new = f * c + i * g
    t = np.tanh(new)
    slope = 1 if mistake == "tanh" else 1 - t * t
    d = (0 if mistake == "cell" else c_bar) + (0 if mistake == "hidden" else h_bar * o * slope)
    before = new if mistake == "new cell" else c
    z_bar = np.concatenate(
        [
            d * g * i * (1 - i),
            (0 if mistake == "forget" else d * before * f * (1 - f)),
            d * i * (1 - g * g),
            h_bar * (new if mistake == "o" else t) * o * (1 - o),
        ]
        if mistake != "forget"
        else [d * g * i * (1 - i), 0 * d, d * i * (1 - g * g), h_bar * t * o * (1 - o)]
    )
    u_bar = W.T @ z_bar
    return np.outer(z_bar, np.concatenate([x, h])), u_bar[:2], u_bar[2:], d if mistake == "f" else d * f


def gru(W, U, x, h):
    a, b = (W @ x).reshape(3, 2), (U @ h).reshape(3, 2)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    m = np.tanh(a[2] + r * b[2])
    return (1 - z) * m + z * h


def gru_backward(W, U, x, h, dy, mistake):
    a, b = (W @ x).reshape(3, 2), (U @ h).reshape(3, 2)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    m = np.tanh(a[2] + r * b[2])
    m_bar = dy * (z if mistake == "gate" else 1 - z) * (1 - m * m)
    z_bar = dy * (h if mistake == "candidate" else h - m) * z * (1 - z)
    r_bar = m_bar * b[2] * r * (1 - r)
    if mistake == "reset":
        r_bar = 0 * r_bar
    a_bar, b_bar = np.concatenate([r_bar, z_bar, m_bar]), np.concatenate([r_bar, z_bar, m_bar * r])
    direct = 0 if mistake == "direct" else dy * z
    return np.outer(a_bar, x), np.outer(b_bar, h), W.T @ a_bar, U.T @ b_bar + direct


def rnn(W, U, x, h):
    for t in range(3):
        h = np.tanh(W @ h + U @ x[t])
    return h


def rnn_backward(W, U, x, h, dy, mistake):
    states = [h]
    for t in range(3):
        states.append(np.tanh(W @ states[-1] + U @ x[t]))
    W_bar, U_bar, x_bar, h_bar = 0 * W, 0 * U, 0 * x, dy
    for t in reversed(range(3)):
        z_bar = h_bar * (1 if mistake == "slope" else 1 - states[t + 1] ** 2)
        step = np.outer(z_bar, states[t + 1 if mistake == "new state" else t])
        W_bar = step if mistake == "overwritten" else W_bar + step
        U_bar = U_bar + np.outer(z_bar, x[t])
        x_bar[t] = U.T @ z_bar
        h_bar = {"truncated": 0 * h_bar, "transpose": W @ z_bar}.get(mistake, W.T @ z_bar)
    return W_bar, U_bar, x_bar, h_bar


# ---- convolutions, pools, tables ----------------------------------------------------------------


def conv(x, w):
    return sum(w[i] * x[i : i + 4] for i in range(3))


def conv_backward(x, w, dy, mistake):
    x_bar = np.zeros(6)
    for i in range(3):
        x_bar[i : i + 4] += dy * w[2 - i if mistake == "kernel" else i]
    w_bar = np.array([dy @ x[i : i + 4] for i in range(3)])
    return x_bar, w_bar[::-1] if mistake == "reversed" else w_bar


def average_pool(x):
    return x.reshape(3, 2).mean(axis=1)


def average_pool_backward(x, dy, mistake):
    return np.repeat(dy, 2) / (1 if mistake == "count" else 2)


def max_pool(x):
    return np.max(x.reshape(2, 3), axis=1)


def max_pool_backward(x, dy, mistake):
    blocks = x.reshape(2, 3)
    if mistake == "all":
        return np.repeat(dy, 3)
    if mistake == "mean":
        return np.repeat(dy, 3) / 3
    return (dy[:, None] * (blocks == blocks.max(axis=1, keepdims=True))).ravel()


INDICES = np.array([0, 2, 2, 1, 2])


def embedding(table):
    rows = table[INDICES]
    return rows * rows


def embedding_backward(table, dy, mistake):
    made = np.zeros_like(table)
    if mistake == "overwritten":
        made[INDICES] = 2 * dy * table[INDICES]
    else:
        np.add.at(made, INDICES, 2 * dy * table[INDICES])
    return made


def residual(x, W):
    inner = np.tanh(x @ W)
    return x + inner


def residual_backward(x, W, dy, mistake):
    z_bar = dy * (1 - np.tanh(x @ W) ** 2)
    branch = z_bar @ W.T
    return {"identity": branch, "branch": dy, "twice": 2 * dy + branch}.get(mistake, dy + branch), x.T @ z_bar


# ---- matrices -----------------------------------------------------------------------------------


def solve(A, b):
    return np.linalg.solve(A, b)


def solve_backward(A, b, dy, mistake):
    x = np.linalg.solve(A, b)
    b_bar = np.linalg.solve(A if mistake == "transpose" else A.T, dy)
    A_bar = np.outer(x, b_bar) if mistake == "outer" else np.outer(b_bar, x)
    return A_bar if mistake == "sign" else -A_bar, b_bar


def inverse(A):
    return np.linalg.inv(A)


def inverse_backward(A, dy, mistake):
    B = np.linalg.inv(A)
    return -B @ dy @ B if mistake == "transpose" else -B.T @ dy @ B.T


def log_det(A):
    return np.linalg.slogdet(A)[1]


def log_det_backward(A, dy, mistake):
    B = np.linalg.inv(A)
    return (B if mistake == "transpose" else B.T) * (1 if mistake == "dy" else dy)


def cholesky(A):
    return np.linalg.cholesky(A)


def cholesky_backward(A, dy, mistake):
    """The factor reads the lower triangle of A, so that its derivative is lower triangular."""
    L = np.linalg.cholesky(A)
    inner = np.tril(L.T @ dy)
    if mistake != "diagonal":
        inner = inner - np.diag(np.diag(inner)) / 2
    B = np.linalg.inv(L)
    S = B.T @ inner @ B
    lower = np.tril(S + S.T) - np.diag(np.diag(S))
    return {"one half": S, "both": S + S.T, "symmetrized": (S + S.T) / 2}.get(mistake, lower)


def quadratic(x, A):
    return np.einsum("i,ij,j->", x, A, x)


def quadratic_backward(x, A, dy, mistake):
    x_bar = {"symmetric": 2 * A @ x, "one path": A @ x}.get(mistake, A @ x + A.T @ x)
    return x_bar * dy, np.outer(x, x) * dy


LAYERS = {
    "dense": Layer(dense, dense_backward, [(3, 2), (2, 4), (4,)]),
    "square dense": Layer(square_dense, square_dense_backward, [(3, 3), (3, 3)]),
    "hidden": Layer(hidden, hidden_backward, [(3, 2), (2, 4), (4, 2)]),
    "bilinear": Layer(bilinear, bilinear_backward, [(3,), (3, 3), (3,)]),
    "gelu": Layer(gelu, gelu_backward, [(4,)]),
    "silu": Layer(silu, silu_backward, [(4,)]),
    "logistic": Layer(logistic, logistic_backward, [(4, 2), (2,)]),
    "relu": Layer(relu, relu_backward, [(3, 2), (2, 3)]),
    "leaky": Layer(leaky, leaky_backward, [(5,)]),
    "dropout": Layer(dropout, dropout_backward, [(4,), (4,)], (0,)),
    "layer norm": Layer(layer_norm, layer_norm_backward, [(2, 3), (3,), (3,)]),
    "batch norm": Layer(batch_norm, batch_norm_backward, [(4, 2), (2,), (2,)]),
    "RMS norm": Layer(rms_norm, rms_norm_backward, [(2, 3), (3,)]),
    "softmax": Layer(softmax, softmax_backward, [(3, 3)]),
    "named softmax": Layer(named_softmax, softmax_backward, [(3, 3)]),
    "cross-entropy": Layer(cross_entropy, cross_entropy_backward, [(3, 4), (3, 4)]),
    "log-sum-exp": Layer(logsumexp, logsumexp_backward, [(2, 3)]),
    "attention": Layer(attention, attention_backward, [(3, 2), (3, 2), (3, 2)]),
    "causal attention": Layer(causal, causal_backward, [(3, 2), (3, 2), (3, 2)]),
    "squared error": Layer(squared_error, squared_error_backward, [(3, 2), (2,), (3,)]),
    "LSTM": Layer(lstm, lstm_backward, [(8, 4), (2,), (2,), (2,)]),
    "GRU": Layer(gru, gru_backward, [(6, 2), (6, 2), (2,), (2,)]),
    "RNN": Layer(rnn, rnn_backward, [(2, 2), (2, 3), (3, 3), (2,)]),
    "convolution": Layer(conv, conv_backward, [(6,), (3,)]),
    "average pool": Layer(average_pool, average_pool_backward, [(6,)]),
    "max pool": Layer(max_pool, max_pool_backward, [(6,)]),
    "embedding": Layer(embedding, embedding_backward, [(4, 2)]),
    "residual": Layer(residual, residual_backward, [(3, 3), (3, 3)]),
    "solve": Layer(solve, solve_backward, [(3, 3), (3,)]),
    "inverse": Layer(inverse, inverse_backward, [(3, 3)]),
    "log det": Layer(log_det, log_det_backward, [(3, 3)]),
    "Cholesky": Layer(cholesky, cholesky_backward, [(3, 3)]),
    "quadratic form": Layer(quadratic, quadratic_backward, [(3,), (3, 3)]),
}
