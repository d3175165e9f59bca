"""Display in notebooks: formulas as in publications, pictures, tables; and LaTeX that compiles."""

import re

import numpy as np
import pytest
import sympy as sp

import symad
from symad.functions import scan
from symad.numeric import lower
from tests.symad.display.latex_reading import value_of
from tests.symad.display.published_graphs import GRAPHS, PUBLISHED, x, y


@pytest.mark.parametrize("wanted", list(PUBLISHED))
def test_formulas_as_one_would_publish_them(wanted):
    assert PUBLISHED[wanted].to_latex() == wanted


@pytest.mark.parametrize(
    "expression",
    [
        x**2 / (y + 1), -sp.sin(x) / x, (x - y) * (x + y) ** 3, sp.sqrt(x**2 + 1), x ** sp.Rational(2, 3),
        2 * x - 3 * y, 1 / (x * y), sp.exp(-(x**2)) * x, x - (y - x * 2) / 3, sp.log(x) ** 2, (x * y) ** y,
        sp.Rational(3, 7) * x, sp.atan2(y, x), sp.cosh(x) ** 2 - 1, -(x + y), sp.sqrt(2) * x,
        sp.Abs(x - y) ** 3,
    ],
    ids=str,
)  # fmt: skip
def test_a_formula_means_what_the_graph_computes(expression):
    """Read by a grammar of the tests' own, the formula has the value of the expression."""
    graph = symad.trace(expression, inputs=[x, y])
    text = graph.to_latex().split("=", 1)[1]
    assert abs(value_of(text, x=0.7, y=0.3) - float(expression.subs({x: 0.7, y: 0.3}))) < 1e-12
    for slope, label in ((symad.gradient(graph, x), x), (symad.gradient(graph, y), y)):
        text = slope.to_latex()
        if "aligned" not in text and "cases" not in text and "sign" not in text:
            exact = float(expression.diff(label).subs({x: 0.7, y: 0.3}))
            assert abs(value_of(text.split("=", 1)[1], x=0.7, y=0.3) - exact) < 1e-11


def balanced(text):
    depth = 0
    for mark in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if mark == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right")
    assert text.count(r"\begin") == text.count(r"\end")


KNOWN = {r"\lVert": r"\|", r"\rVert": r"\|", r"\lvert": "|", r"\rvert": "|"}
"""Delimiters that the parser knows by another name."""


@pytest.mark.parametrize("case", GRAPHS)
def test_listings_show_the_plain_code_and_formulas_that_compile(case):
    graph = GRAPHS[case]()
    kernel = lower(graph)
    balanced(kernel.to_latex())
    balanced(graph.to_latex())
    table = kernel.to_markdown().splitlines()
    source = lower(graph, style="plain").source
    rows = [re.match(r"\| (?:&emsp;)*`(.*)` \| \$(.*)\$ \|$", line) for line in table[2:]]
    assert all(rows)
    for row in rows[:-1]:
        assert row[1].replace("\\|", "|") in source
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    for row in rows:
        if r"\begin" not in row[2]:
            text = row[2]
            for old, new in KNOWN.items():
                text = text.replace(old, new)
            parser.parse(f"${text}$")


def test_a_derivation_names_each_rule():
    text = symad.trace(sp.sin(x * y) ** 2 / x + 3 * x).explain(as_latex=True)
    balanced(text)
    for rule in (
        "product rule",
        "quotient rule",
        "chain rule, derivative of sin",
        "sum rule",
        "constant factor",
    ):
        assert rf"\text{{{rule}}}" in text
    assert r"\dot{s}_{2} &= \dot{x} y + \dot{y} x" in text
    assert text._repr_latex_() == rf"$\displaystyle {text}$"


def test_large_graphs_are_no_formulas():
    many = symad.trace(lambda z: sum(np.sin(k * z) for k in range(200)), [()])
    assert many._repr_latex_() is None
    with pytest.raises(symad.errors.SymadError, match="too many for a formula"):
        many.to_latex()
    with pytest.raises(symad.errors.SymadError, match="too many for a derivation"):
        many.explain(as_latex=True)


def test_pictures_without_a_path(tmp_path):
    graph = symad.trace(sp.sin(x * y) + x)
    picture = graph.draw()
    assert picture._repr_svg_().startswith("<svg") and graph._repr_svg_() == str(picture)
    picture.save(tmp_path / "f.svg")
    graph.draw(tmp_path / "g.svg")
    assert (tmp_path / "f.svg").read_text() == (tmp_path / "g.svg").read_text()
    assert "<svg" in graph._repr_html_() and "sin" in graph._repr_html_()


def test_tables_colorings_certificates_and_kernels_are_shown():
    explained = symad.trace(sp.sin(x) * y).explain(x=1.0, y=2.0)
    page = explained._repr_html_()
    assert page.count("<table>") == len(explained.tables) and "$" in page
    assert explained._repr_latex_() == explained.to_latex()
    coloring = symad.color(np.array([[1, 0, 1], [0, 1, 0]]), kind="column")
    assert coloring._repr_svg_().count("<title>") == 3 and "<svg" in coloring._repr_html_()
    assert symad.color(np.eye(100), kind="column")._repr_svg_() is None
    assert "<" in symad.equal(x, x)._repr_html_()
    assert "| code | formula |" in lower(x * y)._repr_markdown_()


def test_names_are_no_markup():
    hostile = sp.Symbol("<b>x</b>", real=True)
    assert "<b>x" not in symad.trace(hostile * 2)._repr_html_()
    assert "<b>x" not in symad.trace(hostile * 2).explain()._repr_html_()


def test_nothing_is_computed_by_sympy_when_an_inverse_is_shown(monkeypatch):
    xs = sp.symbols("x:5", real=True)
    M = sp.ImmutableMatrix(5, 5, lambda i, j: sp.sin(xs[i] * xs[j] + i) + 3 * (i == j))
    f = sp.MatMul(sp.Inverse(M), sp.ImmutableMatrix(xs), evaluate=False)

    def refuse(*args, **options):
        raise AssertionError("SymPy computes an inverse")

    monkeypatch.setattr(sp.MatrixBase, "inv", refuse)
    monkeypatch.setattr(sp.MatrixBase, "det", refuse)
    for graph in (symad.trace(f, xs), symad.jacobian(f, xs)):
        shown = symad.to_sympy(graph)
        assert str(shown) and sp.latex(shown) and repr(-shown)
    again = symad.trace(symad.to_sympy(symad.trace(f, xs)), xs)
    point = [0.1, 0.4, -0.3, 0.7, 0.2]
    np.testing.assert_allclose(again(*point), symad.trace(f, xs)(*point))


def test_accents_stand_over_letters_and_words_are_upright():
    q = sp.symbols("q1 q2", real=True)
    steps = symad.trace(q[0] * q[1] / 3 + sp.exp(q[0] / 7)).explain(as_latex=True)
    assert r"\dot{q}_{1}" in steps and r"\dot{q_" not in steps
    assert r"\text{constant factor}" in steps and "product rule" in steps and "quotient rule" not in steps
    loss = symad.trace(lambda logvar: np.sum(np.exp(logvar)), inputs=[(3,)])
    assert r"e^{\mathrm{logvar}}" in loss.to_latex()
    listing = lower(symad.gradient(sp.exp(q[0] * q[1])), style="plain").to_latex()
    assert r"\bar{q}_{1}" in listing and r"\bar{q_" not in listing
    assert symad.gradient(q[0] * q[1]).explain(as_latex=True).splitlines()[-2].startswith(r"\nabla f\left(")


def test_a_recurrence_is_shown_with_its_step():
    def rnn(W, xs):
        return np.sum(scan(lambda h, x: np.tanh(W @ h + x), np.zeros(2), xs)[-1] ** 2)

    text = symad.trace(rnn, inputs=[(2, 2), (5, 2)]).to_latex()
    assert r"\operatorname{scan}\left(\mathbf{0}, \mathrm{xs}, W\right)_{4,\cdot}" in text
    step = r"\operatorname{scan}\left(h_{0}, \mathrm{xs}, W\right) \colon \quad h_{t} &= "
    assert step + r"\tanh{\left(W h_{t - 1} + \mathrm{xs}_{t} \right)}" in text.replace(r" \, ", " ")


def test_a_part_of_a_part_has_one_subscript():
    part = symad.trace(lambda A: np.sum(A[1][0] * A[2][:, 1]), inputs=[(4, 3, 3)])
    assert "A_{1,0,\\cdot}" in part.to_latex() and "A_{2,\\cdot,1}" in part.to_latex()
    padded = symad.gradient(symad.trace(lambda x: np.sum(x[1:3] ** 2), inputs=[(5,)])).to_latex()
    assert r"\operatorname{pad}_{1:3}" in padded


def test_reused_values_are_named_and_not_written_out():
    """v ← v sin v + v, n times: every value is used three times, so without names the text triples."""

    def repeated(n):
        def f(v):
            for _ in range(n):
                v = np.sin(v) * v + v
            return v

        return symad.trace(f, [()]).to_latex()

    lengths = [len(repeated(n)) for n in (20, 40, 80)]
    assert lengths[2] < 2.3 * lengths[1] < 5.5 * lengths[0]
    balanced(repeated(80))
