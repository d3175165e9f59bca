"""Programs of arrays explained: matrix calculus, loops against backpropagation by hand, bounded widths."""

import re
import unicodedata

import numpy as np
import pytest
import sympy

import symad
from symad.display.tables import text
from symad.functions import scan, sigmoid, softmax


def rnn(W, U, x, y):
    h = scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(2), x)
    loss = ((h - y) ** 2).sum()
    return loss


RNG = np.random.default_rng(0)
POINT = {
    name: RNG.normal(size=shape)
    for name, shape in [("W", (2, 2)), ("U", (2, 3)), ("x", (9, 3)), ("y", (9, 2))]
}


@pytest.fixture(scope="module")
def explained():
    return symad.trace(rnn, [POINT[name].shape for name in "WUxy"]).explain(**POINT)


def rows_of(explained, title):
    (found,) = [t for t in explained.tables if t.title.startswith(title)]
    return {text(row[0]): row[1:] for row in found.rows}, list(map(text, found.notes))


def backpropagation(W, U, x, y):
    """States, and the total adjoint of each, by the loops of a lecture."""
    h, states = np.zeros(2), []
    for row in x:
        h = np.tanh(W @ h + U @ row)
        states.append(h)
    totals, carried = [], np.zeros(2)
    for state, target in zip(states[::-1], y[::-1], strict=True):
        total = 2 * (state - target) + carried
        totals.append(total)
        carried = W.T @ ((1 - state**2) * total)
    return states, totals[::-1]


def test_the_steps_of_a_loop(explained):
    rows, notes = rows_of(explained, "The loop h, 9 steps")
    states, totals = backpropagation(**POINT)
    assert list(rows) == ["1", "2", "3", "…", "7", "8", "9"]
    for t in (1, 2, 3, 7, 8, 9):
        np.testing.assert_allclose(rows[str(t)][0], states[t - 1], rtol=1e-13)
        np.testing.assert_allclose(rows[str(t)][1], totals[t - 1], rtol=1e-12)
    assert notes == [
        "h_t = tanh(W h_(t - 1) + U x_t)",
        "h̄_(t - 1) += Wᵀ((1 - h_t²) ⊙ h̄_t)",
        "x̄_t += Uᵀ((1 - h_t²) ⊙ h̄_t)",
        "W̄ += ((1 - h_t²) ⊙ h̄_t) h_(t - 1)ᵀ",
        "Ū += ((1 - h_t²) ⊙ h̄_t) x_tᵀ",
    ]


def test_adjoints_have_formulas_rules_and_shapes(explained):
    rows, _ = rows_of(explained, "Reverse")
    assert [c if isinstance(c, str) else c.text for c in (rows["h̄"][0], *rows["h̄"][2:4])] == [
        "r_3", "sum rule", "(9, 2)",
    ]  # fmt: skip
    assert rows["W̄"][0].text == "by the steps of the loop"


def test_plain_code_stands_below_the_tables(explained):
    code = explained.code
    function = code[code.index("def rnn_gradient(W, U, x, y):") :]
    assert "for t in reversed(range(9)):" in function
    assert function in str(explained) and f"```python\n{function}" in explained.to_markdown()
    module: dict[str, object] = {}
    exec(code, module)  # it needs nothing else
    at = [explained.writer.runs.states[n] for n in explained.writer.graph.input_nodes]
    expected = symad.gradient(explained.writer.graph)(*at)
    for mine, theirs in zip(module["rnn_gradient"](*at), expected, strict=True):
        assert np.allclose(mine, theirs)
    x = sympy.Symbol("x", real=True)
    assert symad.trace(x**2).explain(x=2).code == ""


def test_no_line_is_wider_than_a_terminal(explained):
    def widths(shown):
        tables = shown.split("The gradient as plain code")[0]
        return [sum(not unicodedata.combining(c) for c in line) for line in tables.splitlines()]

    assert max(widths(str(explained))) <= 80

    def deep(q, k, v):
        return np.sum(softmax(softmax(softmax(q @ k.T) @ k @ k.T) ** 2 / (1 + q @ k.T)) @ v) ** 2

    arrays = symad.trace(deep, [(3, 2)] * 3)
    assert max(widths(str(arrays.explain(**{n: RNG.normal(size=(3, 2)) for n in "qkv"})))) <= 80


def test_rules_of_several_uses_are_continued_in_the_next_line():
    def f(x):
        return np.where(x > 0, x**2, np.sin(x)).sum() + np.exp(x).sum() + np.max(x) + np.sqrt(x @ x)

    shown = symad.trace(f, [(4,)]).explain(x=np.array([1.0, -2, 0.5, 0.2]))
    assert max(map(len, str(shown).split("The gradient as")[0].splitlines())) <= 82  # two accents
    rows, _ = rows_of(shown, "Reverse")
    assert "constant between jumps" not in rows["x̄"][2] and "chain rule, derivative of sin" in rows["x̄"][2]


def test_a_variable_held_twice_is_a_state():
    def f(x):
        h = np.tanh(x)
        h = np.sin(h)
        return h.sum()

    rows, _ = rows_of(symad.trace(f, [(2,)]).explain(x=np.ones(2)), "Forward")
    assert list(rows) == ["x", "s_1", "s_2", "s_3"]


def lstm(W, U, X):
    def step(state, x):
        h, c = state
        z = W @ h + U @ x
        i, f, o = (sigmoid(z[2 * k : 2 * k + 2]) for k in range(3))
        g = np.tanh(z[6:])
        c = f * c + i * g
        return o * np.tanh(c), c

    hs, _ = scan(step, (np.zeros(2), np.zeros(2)), X)
    return np.sum(hs**2)


def test_the_adjoint_of_an_lstm_reads_like_a_lecture():
    """Part by part: the additive path c̄ through f, each gate by its own derivative, then z̄, W̄ and Ū."""
    rng = np.random.default_rng(0)
    shapes = [(8, 2), (8, 3), (5, 3)]
    shown = symad.trace(lstm, shapes).explain(*(rng.normal(size=s) for s in shapes))
    lines = [note.text for table in shown.tables if "loop" in table.title for note in table.notes]
    for line in (
        "z_t = W h_(t - 1, 0, ·) + U X_t",
        "c_t = f_t ⊙ h_(t - 1, 1, ·) + i_t ⊙ g_t",
        "c̄_t = (h̄_t)_(1, ·) + (1 - tanh²(c_t)) ⊙ o_t ⊙ (h̄_t)_(0, ·)",
        "ḡ_t = i_t ⊙ c̄_t",
        "f̄_t = h_(t - 1, 1, ·) ⊙ c̄_t",
        "ō_t = tanh(c_t) ⊙ (h̄_t)_(0, ·)",
        "h̄_(t - 1) += pad_(1, ·)(f_t ⊙ c̄_t) + pad_(0, ·)(Wᵀ z̄_t)",
        "W̄ += z̄_t h_(t - 1, 0, ·)ᵀ",
        "Ū += z̄_t X_tᵀ",
    ):
        assert line in lines
    assert max(map(len, lines)) < 160


def test_a_loop_says_what_its_step_calls_by_another_name():
    """h_0 and x_1 of its step are the states s_2 and s_3 of the table, and boxes of the picture."""

    def last(W, x):
        return np.sum(symad.functions.fold(lambda h, t: np.tanh(W @ h + t), x[0], x[1:]))

    graph = symad.trace(last, [(2, 2), (4, 2)])
    titles = [table.title for table in graph.explain(np.eye(2), np.ones((4, 2))).tables]
    assert "The loop s_4, 3 steps, h_0 = s_2, x_1 = s_3" in titles
    shown = re.sub("<[^>]*>", "", str(graph.draw()))
    assert shown.index("h0") < shown.index("tanh(W h0 + (x1)1)")
