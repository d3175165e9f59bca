"""The step-through: its numbers are SymPy's derivatives, and its page needs nothing else."""

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import sympy

import symad
from symad.core.graph import Graph, topological
from symad.display.player import films
from symad.display.reading import mathml, plain
from symad.errors import EvaluationError
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import sum_all
from symad.ops.basic.sources import Input
from symad.ops.elementwise.selection import Condition

x, y = sympy.symbols("x y", real=True)
F = sympy.sin(x * y) + x**2
AT = {"x": 2.0, "y": 0.5}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def steps():
    return symad.trace(F).explain(**AT)


def films_of(page):
    return json.loads(re.search(r'id="films">(.*?)</script>', page, re.DOTALL)[1])


def shown(value):
    """Six digits, as the boxes show numbers."""
    return f"{float(value):.6g}"


def derivative(*wrt):
    return F.diff(*wrt).subs({x: 2, y: sympy.Rational(1, 2)})


def texts(film):
    return [m.text for frame in film.frames for m in frame.formulas]


def test_the_last_steps_are_sympys_derivatives(steps):
    made = {film.title: texts(film) for film in films(steps.writer)}
    assert len(made) == 12  # two directions, reverse, three pairs, three modes in two directions
    for name, symbol in (("x", x), ("y", y)):
        assert made[f"forward mode, direction {name}"][-1].endswith(f"= {shown(derivative(symbol))}")
        (adjoint,) = [t for t in made["reverse mode"] if t.startswith(f"r_{name} ")]
        assert adjoint.endswith(f"= {shown(derivative(symbol))}")
        for other, second in (("x", x), ("y", y)):
            entry = f"= {shown(derivative(symbol, second))}"
            for mode, letter in (
                ("forward over reverse", "r'"), ("reverse over forward", "("), ("reverse over reverse", "ṡ"),
            ):  # fmt: skip
                start = f"(r_{other})_1 " if letter == "(" else f"{letter}_{other} "
                found = [t for t in made[f"{mode}, direction {name}"] if t.startswith(start)]
                assert found[0].endswith(entry), (mode, name, other)
    pair = made["forward over forward, direction x and y"]
    assert pair[-1] == f"t'_4 = t'_3 = {shown(derivative(x, y))}"


def test_reverse_mode_adds_at_a_fan_out(steps):
    (film,) = [f for f in films(steps.writer) if f.title == "reverse mode"]
    assert texts(film)[-1] == f"r_x = 2 r_1 x + r_2 y = {shown(derivative(x))}"


def test_the_page_needs_no_network(steps, tmp_path):
    assert steps.play(tmp_path / "steps.html") == [tmp_path / "steps.html"]
    page = (tmp_path / "steps.html").read_text("utf-8")
    assert re.findall(r"https?://[^\"\\ ]+", page).count("http://www.w3.org/2000/svg") == page.count("http")
    assert "src=" not in page and "@import" not in page and "<link" not in page
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page and "ArrowRight" in page
    shown_films = films_of(page)
    assert [f["title"] for f in shown_films][2] == "reverse mode"
    for film in shown_films:
        root = ElementTree.fromstring(film["svg"])
        boxes = {e.get("data-box") for e in root.iter(SVG + "rect") if e.get("data-box")}
        assert boxes == set(map(str, range(6)))
        for frame in film["frames"]:
            assert frame["box"] in range(-1, 6)
            for formula in frame["formulas"]:
                ElementTree.fromstring(formula)


def test_names_cannot_leave_the_page(tmp_path):
    odd = sympy.Symbol("</script><script>alert(1)", real=True)
    symad.trace(odd**2).explain(**{odd.name: 3.0}).play(tmp_path / "f.html")
    page = (tmp_path / "f.html").read_text("utf-8")
    assert "<script>alert" not in page and page.count("</script>") == 2
    assert films_of(page)[0]["frames"]


def test_frames_for_slides(steps, tmp_path):
    made = steps.play(tmp_path / "s.svg", "reverse mode")
    assert [p.name for p in made] == [f"s_{k}.svg" for k in range(1, 8)]
    first, *_, last = (ElementTree.parse(p).getroot() for p in made)
    assert len(list(first.iter(SVG + "text"))) < len(list(last.iter(SVG + "text")))
    marked = [r for r in last.iter(SVG + "rect") if r.get("stroke") == "#c2185b"]
    assert len(marked) == 1 and marked[0].get("rx") == "16"  # the input x
    texts = [path.read_text("utf-8") for path in steps.play(tmp_path / "s.tex")]  # of every mode
    for text in texts:
        assert text.startswith(r"\begin{tikzpicture}") and text.count("{") == text.count("}")
        assert text.isascii()
    assert any(r"r'_{2} = -r_{3} s'_{2} s_{3} = -0.420735" in text for text in texts)


@pytest.mark.thorough
def test_frames_as_png_and_pdf(steps, tmp_path):
    pytest.importorskip("matplotlib")
    made = steps.play(tmp_path / "s.png", "reverse mode")
    assert len(made) == 7 and all(p.read_bytes().startswith(b"\x89PNG") for p in made)
    steps.play(tmp_path / "s.pdf", "reverse mode")
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "s.pdf").read_bytes())) == 7


def test_what_play_refuses(steps, tmp_path):
    with pytest.raises(EvaluationError, match=r"play writes .*\.html.* not f\.gif"):
        steps.play(tmp_path / "f.gif")
    with pytest.raises(EvaluationError, match="no mode of f begins with 'sideways'; there are: forward mode"):
        steps.play(tmp_path / "f.html", "sideways")


def test_values_and_adjoints_in_a_picture(steps):
    found = ["".join(t.itertext()) for t in ElementTree.fromstring(str(steps.draw())).iter(SVG + "text")]
    assert {"s4 = 4.84147", "r4 = 1", "x = 2", f"rx = {shown(derivative(x))}"} <= set(found)


def test_a_vector_function_has_forward_mode_alone(tmp_path):
    made = films(symad.trace([x * y, x + y]).explain(**AT).writer)
    assert [f.title for f in made] == ["forward mode, direction x", "forward mode, direction y"]


def attention(q, k, v):
    S = q @ k.T
    P = symad.functions.softmax(S)
    return np.sum(P @ v)


def test_arrays_in_matrix_calculus():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(3, 2)) for _ in range(3))
    made = films(symad.trace(attention, [(3, 2)] * 3).explain(q=q, k=k, v=v).writer)
    (reverse,) = [texts(f) for f in made if f.title == "reverse mode"]
    pairs = [t.partition(", ‖")[0].split(" = ") for t in reverse if ", ‖" in t]
    formulas = dict(pairs)
    assert formulas["P̄"] == "r_3 vᵀ" and formulas["v̄"] == "Pᵀ r_3"
    assert formulas["S̄"] == "P ⊙ (P̄ - Σ P ⊙ P̄ by rows)"
    assert formulas["q̄"] == "S̄ k" and formulas["k̄"] == "S̄ᵀ q"


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\bar{Y} B^{\mathsf{T}}", "Ȳ Bᵀ"),
        (r"-\left(A^{\mathsf{T}}\right)^{-1} \bar{Y}", "-(Aᵀ)⁻¹ Ȳ"),
        (r"\frac{1}{\sqrt{2}} e^{x} \cos{\left(A \right)}", "1/√2 e^x cos(A)"),
        (r"\tanh{\left(W h_{t - 1} + U x_{t} \right)}", "tanh(W h_(t - 1) + U x_t)"),
        (r"s_{1}^{2} \sin^{2}{\left(x \right)}", "s_1² sin²(x)"),
        (r"\begin{cases} a & \text{if } A \\ 0 & \text{otherwise} \end{cases}", "a, if A; 0, otherwise"),
        (r"\begin{bmatrix} a & b \\ c & d \end{bmatrix}", "[a, b; c, d]"),
        (r"\sqrt[3]{x + 1}", "³√(x + 1)"), (r"\mathrm{loss} \theta_{1}", "loss θ_1"),
        (r"\operatorname{\text{scatter add}}\left(B, \bar{Y}\right)", "scatter add(B, Ȳ)"),
    ],
)  # fmt: skip
def test_formulas_read_as_text(latex, expected):
    assert plain(latex) == expected
    ElementTree.fromstring(mathml(latex))


@pytest.mark.thorough
def test_a_long_program_has_a_page(tmp_path):
    """243 steps in which each state is used three times: its formula would have 3^60 parts."""

    def deep(W, x):
        for _ in range(60):
            x = np.tanh(W @ x) * x + x
        return x.sum()

    steps = symad.trace(deep, [(3, 3), (3,)]).explain(W=np.eye(3) / 10, x=np.ones(3) / 10)
    steps.play(tmp_path / "deep.html")
    (reverse,) = [f for f in films(steps.writer) if f.title == "reverse mode"]
    assert any(t.startswith("W̄ = a sum over 60 uses, ‖W̄‖ = ") for t in texts(reverse))


def cases():
    for cls, make in EXAMPLES.items():
        node = make()[0]
        inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
        total = sum_all(mul(node, node)) if node.shape else mul(node, node)
        if inputs and not Graph(inputs, (node,)).dims and not isinstance(node.op, Condition):
            long = cls.__name__ in ("AttentionSecond", "PairSumTangent")  # ten seconds of formulas
            marks = [pytest.mark.slow] if long else []
            yield pytest.param(Graph(inputs, (total,)), id=cls.__name__, marks=marks)


@pytest.mark.thorough
@pytest.mark.parametrize("graph", list(cases()))
def test_every_op_has_frames(graph, tmp_path):
    """All formulas are read without a rest of LaTeX, and stay short."""
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.1, 0.9, n.shape)[()] for n in graph.input_nodes]
    explained = graph.explain(**dict(zip(map(str, graph.inputs), values, strict=True)))
    for film in films(explained.writer):
        for text in texts(film):
            assert "\\" not in text and "{" not in text and len(text) < 700
    explained.play(tmp_path / "f.html")
    assert len((tmp_path / "f.html").read_bytes()) < 3_000_000


@pytest.mark.parametrize(
    ("latex", "tall"), [(r"f\left(x, y\right)", False), (r"\left(\frac{x}{y}\right)", True)]
)
def test_parentheses_are_as_tall_as_what_they_enclose(latex, tall):
    """A browser without a font for mathematics makes those that stretch too tall."""
    made = mathml(latex)
    assert made.count("<mo>(</mo>") == tall and made.count("<mo stretchy='false'>(</mo>") == (not tall)


def test_pictures_of_a_page_have_a_dark_form(tmp_path):
    symad.trace(x * y).explain(x=2.0, y=1.0).play(tmp_path / "steps.html")
    page = (tmp_path / "steps.html").read_text("utf-8")
    assert page.count("--turned: invert") == 2 and "filter: var(--turned)" in page
