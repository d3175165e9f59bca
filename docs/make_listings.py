"""Writes docs/listings.md: what `lower(f, style="plain")` and `lower(f)` print for four models.

The tests compare the page with what is printed, so that a change of style is seen and judged. Run
``python docs/make_listings.py`` in the root of the repository to write it again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.numeric import lower

HERE = Path(__file__).resolve().parent
T, n, d = sp.symbols("T n d", integer=True, positive=True)
Matrix = sp.MatrixSymbol


def rnn() -> Graph:
    """The loss and its gradient of a recurrent network."""

    def loss(W, U, xs):  # type: ignore[no-untyped-def]
        h = functions.scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(4), xs)[-1]
        return h @ h

    inputs = [Matrix("W", 4, 4), Matrix("U", 4, 3), Matrix("xs", T, 3)]
    return symad.value_and_gradient(symad.trace(loss, inputs))


def lstm() -> Graph:
    """The same of a long short-term memory."""

    def loss(W, U, b, xs):  # type: ignore[no-untyped-def]
        def step(state, x):  # type: ignore[no-untyped-def]
            h, c = state
            z = W @ h + U @ x + b
            i, f, o = (functions.sigmoid(z[k : k + 4]) for k in (0, 4, 8))
            g = np.tanh(z[12:])
            c = f * c + i * g
            return o * np.tanh(c), c

        h, _ = functions.scan(step, (np.zeros(4), np.zeros(4)), xs)
        return h[-1] @ h[-1]

    b = sp.IndexedBase("b", shape=(16,))
    inputs = [Matrix("W", 16, 4), Matrix("U", 16, 3), b, Matrix("xs", T, 3)]
    return symad.value_and_gradient(symad.trace(loss, inputs))


def attention() -> Graph:
    """|P V|² with P = softmax(Q Kᵀ/√d), and its gradient."""

    def loss(K, Q, V):  # type: ignore[no-untyped-def]
        Y = functions.softmax(Q @ K.T / sp.sqrt(d), 1) @ V
        return (Y * Y).sum()

    return symad.value_and_gradient(symad.trace(loss, [Matrix(name, n, d) for name in "KQV"]))


def arm() -> Graph:
    """The gradient of the squared distance of a robot arm's hand from a point."""
    a, b, px, py = sp.symbols("a b px py")
    x, y = sp.cos(a) + sp.cos(a + b), sp.sin(a) + sp.sin(a + b)
    traced = symad.trace((x - px) ** 2 + (y - py) ** 2, [a, b, px, py])
    return symad.gradient(Graph(traced.input_nodes, traced.output_nodes, None, "arm"), ["a", "b"])


LISTINGS: dict[str, Callable[[], Graph]] = {
    "rnn": rnn,
    "lstm": lstm,
    "attention": attention,
    "arm": arm,
}

ABOUT = {
    "rnn": (
        "A recurrence",
        """`h = functions.scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(4), xs)[-1]` and `loss = h @ h`.
All states stand in one array, so that `h[:T]` are those before each step. The gradients of the weights
are one product each over all steps.""",
    ),
    "lstm": (
        "A recurrence of two states",
        """`z = W h + U x + b`, gates i, f, o = σ(z), `g = tanh(z)`, `c = f c + i g`, `h = o tanh(c)`,
`loss = |h_T|²`.
What the backward loop needs of each step is kept on the way.""",
    ),
    "attention": ("Attention", "`loss = |P V|²` with P = softmax(Q Kᵀ/√d) by rows."),
    "arm": (
        "An expression",
        """The squared distance of the hand (cos a + cos(a + b), sin a + sin(a + b)) from (px, py).
Functions of numbers take batches of points, too.""",
    ),
}

HEAD = """\
# What printed code reads like

`lower(f, style="plain")` prints one line for each mathematical step, and nothing for speed: code to read,
to teach, and to check the fast code against. A value that a variable of the traced function holds has the
name of this variable: the gates of the LSTM below are i, f and o, as in its Python function. Other names say
what a value is: `W_bar` is the gradient of W, `x_dot` a tangent, `h` a state, P the probabilities of a
softmax. The first listing is a whole file; the others show the last function, which is the entry point.
`python docs/make_listings.py` writes this page, and the tests compare it with what is printed.
[Lowering, stage by stage](lowering.md) says how the text is made.
"""


FAST = """\
## The fast form

`lower(f)` prints the same mathematics for speed, under the same names. An array that is not read again is
written over (`np.tanh(h_t, h_t)`), a step writes its state into its row of the array of all states, and a
matrix that every step needs transposed is laid out once before the loop (`W_T`). `_new` takes memory that an
earlier call has left, and `del` gives back arrays that may be large; `..._t = None` does so for the rows of a
loop. What has no role is v and a number.
"""

BESIDE = """\
## Formulas beside the code

`kernel.to_markdown()` sets the same lines beside their formulas, in the symbols of the model;
`kernel.to_latex()` is the same as a LaTeX tabular. A notebook shows a kernel so. `←` replaces what a loop
carries from step to step. `graph.to_latex()` is a whole function as one formula,
`graph.explain(as_latex=True)` its derivation with the name of each rule.

"""


def last_function(source: str) -> str:
    """The entry point of a module, with its decorators."""
    tree = ast.parse(source).body[-1]
    assert isinstance(tree, ast.FunctionDef)
    first = min([tree.lineno, *(line.lineno for line in tree.decorator_list)])
    return "\n".join(source.splitlines()[first - 1 :])


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, make in LISTINGS.items():
        title, about = ABOUT[name]
        source = lower(make(), style="plain").source
        shown = source.rstrip() if name == "rnn" else last_function(source)
        parts.append(f"## {title}\n\n{about}\n\n```python\n{shown}\n```\n")
    parts.append(FAST)
    for name, make in LISTINGS.items():
        title, _ = ABOUT[name]
        shown = last_function(lower(make()).source)
        parts.append(f"### {title}, fast\n\n```python\n{shown}\n```\n")
    for name in ("rnn", "attention", "arm"):
        title, _ = ABOUT[name]
        table = lower(LISTINGS[name]()).to_markdown()
        parts.append(f"{BESIDE if name == 'rnn' else ''}### {title}\n\n{table}")
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "listings.md").write_text(page(), encoding="utf-8")
