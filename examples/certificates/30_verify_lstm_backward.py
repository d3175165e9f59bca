"""Two backward passes derived by hand are certified; mistakes in them are found and named.

The backward pass of an LSTM over a few steps and that of an attention layer are written in NumPy, as a paper
prints them. `symad.verify` compares them with the derivative of the forward pass: not at some points and to
some digits, but as identities, by evaluation at random points of random prime fields, with a bound on the
probability of a false 'equal'. Then a sign is changed, a transpose is left out, and one path of a gradient is
forgotten: each mistake is refuted with a point, both values, and its place.
Run: python examples/certificates/30_verify_lstm_backward.py [--steps 3]
"""

import argparse
import time
from functools import partial

import numpy as np

import symad
from symad.functions import sigmoid, softmax

HIDDEN, INPUTS = 2, 2


def forward(W_x, W_h, b, x):
    """The states of an LSTM from h = c = 0; W_x (4, d, d_in), W_h (4, d, d), b (4, d), x (T, d_in)."""
    h, c, kept = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for t in range(x.shape[0]):
        i, f, o = (sigmoid(W_x[k] @ x[t] + W_h[k] @ h + b[k]) for k in range(3))
        g = np.tanh(W_x[3] @ x[t] + W_h[3] @ h + b[3])
        before, c = (h, c), f * c + i * g
        h = o * np.tanh(c)
        kept.append((*before, i, f, o, g, c, h))
    return kept


def loss(W_x, W_h, b, x):
    """½ Σ_t |h_t|²."""
    return sum(0.5 * np.sum(step[-1] ** 2) for step in forward(W_x, W_h, b, x))


def backward(W_x, W_h, b, x, mistake=""):
    """The gradient of `loss`, by hand: (W_x_bar, W_h_bar, b_bar)."""
    W_x_bar, W_h_bar, b_bar = np.zeros(W_x.shape), np.zeros(W_h.shape), np.zeros(b.shape)
    h_bar, c_bar = np.zeros(HIDDEN), np.zeros(HIDDEN)
    for t, (h_before, c_before, i, f, o, g, c, h) in reversed(list(enumerate(forward(W_x, W_h, b, x)))):
        h_bar = h_bar + h
        squashed = np.tanh(c)
        c_bar = c_bar + h_bar * o * (1 - squashed**2)
        slope = 1 + g**2 if mistake == "sign" else 1 - g**2
        a_bar = np.stack(
            [
                c_bar * g * i * (1 - i),
                c_bar * c_before * f * (1 - f),
                h_bar * squashed * o * (1 - o),
                c_bar * i * slope,
            ]
        )
        W_x_bar = W_x_bar + a_bar[:, :, None] * x[t]
        W_h_bar = W_h_bar + a_bar[:, :, None] * h_before
        b_bar = b_bar + a_bar
        back = W_h if mistake == "transpose" else W_h.transpose(0, 2, 1)
        h_bar = sum(back[k] @ a_bar[k] for k in range(4))
        c_bar = c_bar * f
    return W_x_bar, W_h_bar, b_bar


def attend(Q, K, V):
    """½ |softmax(Q Kᵀ/√d) V|²."""
    P = softmax(Q @ K.T / np.sqrt(2.0), axis=-1)
    return 0.5 * np.sum((P @ V) ** 2)


def attend_backward(Q, K, V, mistake=""):
    """The gradient of `attend`, by hand: (Q_bar, K_bar, V_bar)."""
    P = softmax(Q @ K.T / np.sqrt(2.0), axis=-1)
    O_bar = P @ V
    P_bar = O_bar @ V.T
    mean = 0 if mistake == "path" else np.sum(P * P_bar, axis=1, keepdims=True)
    S_bar = P * (P_bar - mean) / np.sqrt(2.0)
    K_bar = S_bar @ Q if mistake == "transpose" else S_bar.T @ Q
    return S_bar @ K, K_bar, P.T @ O_bar


def report(title, certificate, seconds):
    """Print one line, and for a mistake its place."""
    print(f"{title}: {certificate.status}, bound {certificate.bound:.1e}, {seconds:.2f} s")
    if certificate.status == "refuted":
        wrong = [e for e in certificate.entries if e.status == "refuted"]
        print(f"  wrong: {', '.join(dict.fromkeys(e.name for e in wrong))}")
        witness = wrong[0].witness
        print(f"  {wrong[0].label} should be {witness.left}")
        print(f"  {' ' * len(wrong[0].label)} but is    {witness.right}")
        named = next((e.blame.mistake for e in wrong if e.blame and e.blame.mistake), "")
        print(f"  the mistake: {named or 'not identified'}")


def main() -> None:
    """Certify both, then plant mistakes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    shapes = [(4, HIDDEN, INPUTS), (4, HIDDEN, HIDDEN), (4, HIDDEN), (options.steps, INPUTS)]
    tokens = [(3, 2), (3, 2), (3, 2)]
    cases = [
        ("LSTM", loss, backward, shapes, ["W_x", "W_h", "b"], ["", "sign", "transpose"]),
        ("attention", attend, attend_backward, tokens, ["Q", "K", "V"], ["", "transpose", "path"]),
    ]
    for name, f, by_hand, sizes, wrt, mistakes in cases:
        graph = symad.trace(f, sizes)
        for mistake in mistakes:
            derived = symad.trace(partial(by_hand, mistake=mistake), graph.inputs)
            start = time.perf_counter()
            certificate = symad.verify(graph, wrt, gradient=derived, seed=1)
            report(f"{name}, {mistake or 'as derived'}", certificate, time.perf_counter() - start)
            assert (certificate.status == "refuted") == bool(mistake)


if __name__ == "__main__":
    main()
