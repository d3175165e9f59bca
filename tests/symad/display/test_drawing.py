"""Pictures: every box and edge is drawn, labels are readable, boxes do not overlap."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.core.graph import Graph
from symad.display.labels import details, label
from symad.display.layout import GAP, ROW, layout
from symad.display.picture import MAX_NODES, picture
from symad.display.scene import Curve, Rectangle, scene
from symad.display.tables import Math
from symad.errors import EvaluationError
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import einsum, matmul, matrix_transpose, sum_axes
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import apply

x, y = sympy.symbols("x y", real=True)
SVG = "{http://www.w3.org/2000/svg}"


def node(expression):
    return symad.trace(expression).outputs[0]


def svg_of(graph, tmp_path):
    graph.draw(tmp_path / "f.svg")
    return ElementTree.parse(tmp_path / "f.svg").getroot()


def texts(root):
    return [t.text for t in root.iter(SVG + "text")]


def test_the_graph_of_x_plus_x_squared(tmp_path):
    root = svg_of(symad.trace(x + x**2), tmp_path)
    assert {"x", "·²", "+", "y"} <= set(texts(root))
    edges = [p for p in root.iter(SVG + "path") if p.get("marker-end")]
    assert len(edges) == 3  # x is used twice
    assert len(root.findall(f".//{SVG}g/{SVG}title")) == 3


def test_shapes_stand_in_the_boxes(tmp_path):
    n, d = sympy.symbols("n d", integer=True, positive=True)
    q, k = (input_node(sympy.MatrixSymbol(s, n, d), (n, d)) for s in "QK")
    g = Graph((q, k), (sum_axes(matmul(q, matrix_transpose(k)), (1,)),))
    found = texts(svg_of(g, tmp_path))
    assert found.count("(n, d)") == 2  # for each input
    assert "(n, n)" in found
    assert "y (n,)" in found
    assert "· @ ·ᵀ" in found


def test_dot_names_every_box_and_edge(tmp_path):
    symad.trace([sympy.sin(x) * y, x / y]).draw(tmp_path / "f.dot")
    dot = (tmp_path / "f.dot").read_text("utf-8")
    assert dot.startswith('digraph "f" {')
    assert len(re.findall(r"^  n\d+ \[label=", dot, flags=re.M)) == 5
    assert len(re.findall(r"^  n\d+ -> n\d+ ", dot, flags=re.M)) == 5
    assert 'label="y1"' in dot
    assert dot.count("{") == dot.count("}")


def test_names_are_escaped(tmp_path):
    odd = sympy.Symbol('a<b>&"c"', real=True)
    g = symad.trace(odd**2)
    assert 'a<b>&"c"' in texts(svg_of(g, tmp_path))
    g.draw(tmp_path / "f.dot")
    assert r"a<b>&\"c\"" in (tmp_path / "f.dot").read_text("utf-8")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (x + y, "+"), (x - y, "−"), (x * y, "×"), (x / y, "÷"), (1 / x, "1 ÷ ·"), (2 * x, "2 × ·"),
        (x / 3, "· ÷ 3"), (1 - x, "1 − ·"), (-x, "− ·"), (sympy.sqrt(x), "√·"), (x**3, "·³"),
        (x**y, "· ^ ·"), (sympy.tanh(x), "tanh"), (sympy.Max(x, y), "max"),
        (sympy.Max(x, 0), "Max(0, ·)"),
        (sympy.Piecewise((x, x > 0), (0, True)), "if · then · else 0"),
    ],
)  # fmt: skip
def test_labels(expression, expected):
    assert label(node(expression)) == expected


@pytest.mark.parametrize(
    ("spec", "drawn", "written"),
    [
        ("ij,jk->ik", "@", "a b"), ("ij,kj->ik", "· @ ·ᵀ", "a bᵀ"),
        ("ji,jk->ik", "·ᵀ @ ·", "aᵀ b"), ("ij,ij->", "Σ · × ·", "tr(aᵀ b)"),
        ("ij->ji", "transpose", "aᵀ"), ("ii->i", "diagonal", "diag a"), ("ij->", "Σ", "Σ_(i, j) a_(i j)"),
        ("ij->i", "Σ axis 1", "a 𝟙"), ("ii->", "trace", "tr a"),
        ("ijk,jl->ilk", "ijk,jl → ilk", "[Σ_j a_(i j k) b_(j l)]_(i l k)"),
    ],
)  # fmt: skip
def test_contractions_are_named(spec, drawn, written):
    parts = spec.partition("->")[0].split(",")
    args = (input_node(ArraySymbol(f"A{k}", (3,) * len(p)), (3,) * len(p)) for k, p in enumerate(parts))
    made = einsum(spec, *args)
    assert (label(made), details(made)) == (drawn, written)


@pytest.mark.parametrize("op_class", EXAMPLES, ids=lambda c: c.__name__)
def test_every_op_can_be_drawn(op_class, tmp_path):
    for made in EXAMPLES[op_class]():
        symad.core.graph.Graph((), (made,)).draw(tmp_path / "f.svg")
        assert ElementTree.parse(tmp_path / "f.svg").getroot().tag == SVG + "svg"


@pytest.mark.thorough
def test_a_long_graph_shows_its_ends(tmp_path):
    end = start = input_node(x)
    for _ in range(5000):
        end = add(apply(sympy.sin, end), start)
    shown = picture(Graph((start,), (end,)))
    assert len(shown.boxes) == MAX_NODES + 1
    assert f"{10_001 - MAX_NODES} operations not shown" in shown.boxes[MAX_NODES // 2].label
    assert all(a < b for a, b in shown.edges)
    svg_of(Graph((start,), (end,)), tmp_path)


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match=r"\.dot files, not f\.gif"):
        symad.trace(x).draw(tmp_path / "f.gif")


@st.composite
def dags(draw):
    count = draw(st.integers(1, 14))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []
    return count, sorted(chosen), draw(st.lists(st.floats(20, 200), min_size=count, max_size=count))


@pytest.mark.thorough
@given(dags())
def test_boxes_never_overlap_and_edges_run_downwards(dag):
    count, edges, widths = dag
    placed = layout(count, edges, widths)
    rows = {}
    for k in range(count):
        rows.setdefault(placed.position[k][1], []).append(k)
    for row in rows.values():
        row.sort(key=lambda k: placed.position[k][0])
        for a, b in pairwise(row):
            gap = placed.position[b][0] - placed.position[a][0] - (widths[a] + widths[b]) / 2
            assert gap >= GAP - 1e-6
    for route in placed.route.values():
        heights = [y for _, y in route]
        assert heights == [heights[0] + k * ROW for k in range(len(heights))]
    assert all(x - widths[k] / 2 >= -1e-6 for k, (x, _) in placed.position.items())
    assert all(x + widths[k] / 2 <= placed.width + 1e-6 for k, (x, _) in placed.position.items())


def test_an_output_never_has_the_name_of_an_input(tmp_path):
    symad.trace(x * y).draw(tmp_path / "f.dot")
    dot = (tmp_path / "f.dot").read_text("utf-8")
    assert dot.count('label="y"') == 1 and 'label="f"' in dot


def test_variables_stand_beside_their_boxes(tmp_path):
    def f(W, x):
        hidden = np.tanh(W @ x)
        loss = hidden @ hidden
        return loss

    path = tmp_path / "f.svg"
    symad.trace(f, [(3, 3), (3,)]).draw(path)
    italic = [e.text for e in ElementTree.parse(path).iter() if e.get("font-style") == "italic"]
    assert italic == ["hidden", "loss"]


def test_an_output_in_a_variable_with_the_name_of_an_input_is_y(tmp_path):
    def f(x):
        x = np.exp(x)
        return x

    assert {"x", "exp", "y"} <= set(texts(svg_of(symad.trace(f, [()]), tmp_path)))


def test_no_shape_leaves_its_box(tmp_path):
    """Below the boxes, edges that turn aside crossed the shapes."""
    x = input_node(ArraySymbol("x", (4, 2, 3)), (4, 2, 3))
    root = svg_of(Graph((x,), (sum_axes(x, (0,)), sum_axes(x, (2,)))), tmp_path)
    (box,) = [g for g in root.iter(SVG + "g") if "(4, 2, 3)" in [t.text for t in g.findall(SVG + "text")]]
    rect = box.find(SVG + "rect")
    top, height, width = (float(rect.get(name)) for name in ("y", "height", "width"))
    (shape,) = [t for t in box.iter(SVG + "text") if t.text == "(4, 2, 3)"]
    assert top < float(shape.get("y")) - float(shape.get("font-size")) < float(shape.get("y")) < top + height
    assert float(shape.get("font-size")) * 0.6 * len(shape.text) < width


def test_outputs_have_the_names_of_derivatives(tmp_path):
    f = symad.trace(sympy.sin(x * y))
    assert {"∂f/∂x", "∂f/∂y"} <= set(texts(svg_of(symad.gradient(f), tmp_path)))
    assert "∂²f (2, 2)" in texts(svg_of(symad.hessian(f), tmp_path))
    assert {"f", "∂f/∂x"} <= set(texts(svg_of(symad.value_and_gradient(f), tmp_path)))
    keyed = symad.trace({"sum": x + y, "difference": x - y})
    assert {"sum", "difference"} <= set(texts(svg_of(keyed, tmp_path)))


def test_boxes_carry_the_states_of_the_tables(tmp_path):
    f = symad.trace(sympy.sin(x * y) + x**2)
    root = svg_of(f, tmp_path)
    tags = {"".join(t.itertext()) for t in root.iter(SVG + "text") if t.get("text-anchor") == "end"}
    assert tags == {f"s{k}" for k in range(1, 5)}
    rows = f.explain(x=1, y=2).tables[0].rows
    assert [row[0].text for row in rows[2:]] == [f"s_{k}" for k in range(1, 5)]


def test_tikz_is_ascii_and_balanced(tmp_path):
    symad.trace([sympy.sqrt(x) / y, sympy.Max(x, y)]).draw(tmp_path / "f.tex")
    text = (tmp_path / "f.tex").read_text("utf-8")
    assert text.isascii() and text.count("{") == text.count("}")
    assert text.count(r"\draw[->") == 5  # the square root's, the quotient's two, the maximum's two
    assert text.count(r"\draw[rounded") == 5 + 2  # boxes, and the legend


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "start"), [("f.png", b"\x89PNG"), ("f.pdf", b"%PDF")])
def test_png_and_pdf(name, start, tmp_path):
    pytest.importorskip("matplotlib")
    symad.trace(sympy.sin(x) * y).draw(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def sampled(curve, count=20):
    """Points on the Bézier pieces of an edge."""
    at, t = curve.points[0], np.linspace(0, 1, count)[:, None]
    for a, b, end in curve.bends:
        p, q, r, s = (np.array(v) for v in (at, a, b, end))
        yield from (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * q + 3 * t**2 * (1 - t) * r + t**3 * s
        at = end


def rnn(W, U, h0, X):
    return np.sum(symad.functions.scan(lambda h, x: np.tanh(W @ h + U @ x), h0, X) ** 2)


RNN = symad.trace(rnn, [(3, 3), (3, 2), (3,), (5, 2)])
X, Y = sympy.symbols("x y", real=True)


@pytest.mark.parametrize(
    "graph", [RNN, symad.gradient(RNN), symad.hessian(sympy.sin(X * Y) * sympy.exp(X / Y))]
)
@pytest.mark.parametrize("lines", [0, 2])
def test_no_edge_passes_behind_a_box(graph, lines):
    every = dict.fromkeys(graph.nodes, (Math("s = 1.23456", ""),) * lines)
    shapes = scene(picture(graph, every, {} if not lines else None)).shapes
    boxes = {s.number: s for s in shapes if isinstance(s, Rectangle) and s.number >= 0}
    for curve in (s for s in shapes if isinstance(s, Curve)):
        for u, v in sampled(curve):
            for k, box in boxes.items():
                inside = box.x < u < box.x + box.width and box.y < v < box.y + box.height
                assert not inside or k in (curve.start, curve.end)


def test_a_loop_is_drawn_unfolded():
    """h_t = tanh(W h_(t-1) + U x_t) for the first two steps and the last: all share W, U and X."""
    shown = picture(RNN)
    steps = [k for k, box in enumerate(shown.boxes) if box.label.startswith("tanh(W h")]
    assert [shown.boxes[k].variable for k in steps] == ["h_1", "h_2", "h_5"]
    assert shown.boxes[steps[2]].label == "tanh(W h_4 + U X_5)"
    (gap,) = (k for k, box in enumerate(shown.boxes) if box.label == "⋯")
    chain = [*steps[:2], gap, steps[2], gap + 2]
    assert set(pairwise(chain)) <= set(shown.edges) and shown.boxes[gap + 2].label == "scan"
    names = [box.label for box in shown.boxes]
    for name in ("W", "U", "X"):
        assert {(names.index(name), k) for k in steps} <= set(shown.edges)
    assert "h_4" not in " ".join(box.label for box in picture(RNN, {}).boxes)


def test_a_loop_at_a_point_has_the_values_and_adjoints_of_its_steps():
    w = symad.trace(lambda w: symad.functions.fold(lambda h, x: w * h + x, 1.0, np.ones(4)), [()])
    drawn = w.explain(w=2.0).draw()
    h = 1.0
    for k in range(1, 5):
        h = 2 * h + 1
        assert (f"{h:g}<" in drawn) == (k != 3)
    assert f"{2.0**3:g}<" in drawn  # ∂h_4/∂h_1 = w³


def test_adjoints_come_from_the_users(tmp_path):
    graph = symad.trace(sympy.sin(X) * X)
    whole = scene(picture(graph, {n: (Math("1", "1"),) for n in graph.nodes}))
    forward, back = (whole.frame(9, 1, up) for up in (False, True))
    for shown, up in ((forward, False), (back, True)):
        for curve in (s for s in shown.shapes if isinstance(s, Curve) and s.marked):
            assert (curve.points[0][1] > curve.points[-1][1]) == up
            assert (curve.start if up else curve.end) == 1
