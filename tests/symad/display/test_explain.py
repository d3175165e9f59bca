"""The evaluation tables, against numbers by hand, SymPy's derivatives and the transformations."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.core.graph import Graph, topological
from symad.display.explain import formula_sizes
from symad.display.tables import Math, Table, boxed, cell_latex, text
from symad.errors import EvaluationError
from symad.numbers.dual import Dual
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import matmul, sum_all
from symad.ops.basic.sources import Input, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import Condition

x, y, z = sympy.symbols("x y z", real=True)

FORWARD = """\
Forward mode: states and tangents
─────────────────────────────────────────────────────────
s_k  is         value  t_k        ∂/∂x  flops  live bytes
─────────────────────────────────────────────────────────
s_0  x              3                1      0          16
s_1  s_0²           9  2 s_0 t_0     6      3          32
s_2  s_0 + s_1     12  t_0 + t_1     7      2          48
─────────────────────────────────────────────────────────
"""

REVERSE = """\
Reverse mode: adjoints, last first
───────────────────────────────────────────────────────
r_k  is the sum over its uses  value  flops  live bytes
───────────────────────────────────────────────────────
r_2  1                             1      0          48
r_1  r_2                           1      2          32
r_0  2 r_1 s_0 + r_2               7      1          16
───────────────────────────────────────────────────────
"""


def table(explanation, title):
    """The rows of the one table whose title starts so, by the first cell."""
    (found,) = [t for t in explanation.tables if t.title.startswith(title)]
    return {text(row[0]): row[1:] for row in found.rows}


def parts(cell):
    return cell.value, cell.tangent


def test_x_plus_x_squared_at_3():
    shown = str(symad.trace(x + x**2).explain(x=3))
    assert FORWARD in shown
    assert REVERSE in shown


def test_the_dual_tables_of_a_chain():
    """f = sin(exp(x)) at x = 1/2, every entry of the recurrences by hand."""
    tables = symad.trace(sympy.sin(sympy.exp(x))).explain(x=0.5)
    e = np.exp(0.5)
    s, t = [0.5, e, np.sin(e)], [1, e, e * np.cos(e)]
    h = [0, e, e * np.cos(e) - e**2 * np.sin(e)]  # ∂²g_k
    r = [e * np.cos(e), np.cos(e), 1]
    r_x = [h[2], -np.sin(e) * e, 0]  # ∂r_k/∂x
    fof = table(tables, "Hessian, forward over forward")
    for_ = table(tables, "Hessian, forward over reverse")
    rof = table(tables, "Hessian, reverse over forward")
    ror = table(tables, "Hessian, reverse over reverse")
    for k in range(3):
        name = f"s_{k}"
        np.testing.assert_allclose(parts(fof[name][0]), (s[k], t[k]), rtol=1e-14)
        np.testing.assert_allclose(parts(fof[name][1]), (t[k], h[k]), rtol=1e-14)
        np.testing.assert_allclose(parts(for_[name][0]), (s[k], t[k]), rtol=1e-14)
        np.testing.assert_allclose(parts(for_[name][1]), (r[k], r_x[k]), rtol=1e-14)
        np.testing.assert_allclose(parts(rof[name][1]), (r_x[k], r[k]), rtol=1e-14)
        np.testing.assert_allclose(ror[name][:3], (r[k], t[k], r_x[k]), rtol=1e-14)


FUNCTIONS = [
    sympy.sin(x * y) * sympy.exp(x) / y + sympy.atan2(x, y),
    sympy.sqrt(x * x + y) * sympy.log(y) ** 3,
    x**y + sympy.erf(x - y),
    (1 - x) ** 2 + 100 * (y - x**2) ** 2,
    sympy.Piecewise((sympy.sin(x) * y, x > 0), (sympy.log(x), True)),
    sympy.Max(x, y) * sympy.Abs(x - y),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
def test_all_modes_give_sympys_derivatives(f):
    point = {"x": 0.4, "y": 1.3}
    tables = symad.trace(f).explain(**point)
    first, second = table(tables, "Forward"), table(tables, "Reverse")
    names = {"x": x, "y": y}
    at = {x: 0.4, y: 1.3}
    gradient = {n: float(f.diff(names[n]).subs(at).doit()) for n in names}
    hessian = {(a, b): float(f.diff(names[a], names[b]).subs(at).doit()) for a in names for b in names}
    last = list(first)[-1]
    np.testing.assert_allclose(first[last][3:5], list(gradient.values()), rtol=1e-12)
    for a in names:
        np.testing.assert_allclose(second[f"r_{a}"][1], gradient[a], rtol=1e-12)
        for_ = table(tables, f"Hessian, forward over reverse, direction {a}")
        rof = table(tables, f"Hessian, reverse over forward, direction {a}")
        ror = table(tables, f"Hessian, reverse over reverse, direction {a}")
        for b in names:
            expected = pytest.approx(hessian[a, b], rel=1e-11, abs=1e-13)
            assert parts(for_[b][1]) == (pytest.approx(gradient[b]), expected)
            assert parts(rof[b][1]) == (expected, pytest.approx(gradient[b]))
            assert ror[b][2] == expected
    title = "Hessian, forward over forward, direction x and y"
    assert parts(table(tables, title)[last][1])[1] == pytest.approx(hessian["x", "y"], rel=1e-11)


def test_a_node_used_twice_adds_its_adjoints():
    s = sympy.sin(x)
    rows = table(symad.trace(s * sympy.exp(s)).explain(x=0.7), "Reverse")
    assert rows["r_1"][1] == pytest.approx(np.exp(np.sin(0.7)) * (1 + np.sin(0.7)))
    assert rows["r_0"][1] == pytest.approx(rows["r_1"][1] * np.cos(0.7))


def test_a_branch_not_taken_leaks_nothing():
    f = sympy.Piecewise((sympy.sqrt(sympy.log(x)), x > 1), (0, True))
    tables = symad.trace(f).explain(x=0.0)
    assert table(tables, "Reverse")["r_0"][1] == 0
    assert table(tables, "Hessian, reverse over reverse")["s_0"][2] == 0
    assert table(tables, "Hessian, reverse over forward")["s_0"][1].value == 0


def test_without_a_point_the_tables_are_symbolic():
    tables = symad.trace(x**3).explain()
    assert table(tables, "Reverse")["r_0"][1] == 3 * x**2
    assert parts(table(tables, "Hessian, forward over reverse")["s_0"][1]) == (3 * x**2, 6 * x)


def test_exact_values_stay_exact():
    tables = symad.trace((x + 1) / x**2).explain(x=Fraction(1, 3))
    assert table(tables, "Reverse")["r_0"][1] == Fraction(-63)


def test_rational_functions_at_integers_are_shown_exactly():
    tables = symad.trace((x + 1) / x**2).explain(x=3)
    assert table(tables, "Reverse")["r_0"][1] == Fraction(-5, 27)
    assert "-5/27" in str(tables)
    assert "inf" in str(symad.trace((x + 1) / x**2).explain(x=0))


def test_arrays_in_the_direction_of_ones():
    w = input_node(sympy.MatrixSymbol("W", 2, 3), (2, 3))
    v = input_node(sympy.MatrixSymbol("v", 3, 1), (3, 1))
    g = Graph((w, v), (sum_all(apply(sympy.tanh, matmul(w, v))),))
    values = {"W": np.arange(6.0).reshape(2, 3) / 10, "v": np.array([[0.1], [0.5], [-0.3]])}
    tables = g.explain(**values)
    gradient = symad.gradient(g)(*values.values())
    ones = np.ones(9)
    product = symad.hessian(g)(*values.values()) @ ones
    reverse = table(tables, "Reverse")
    np.testing.assert_allclose(reverse["W̄"][1], gradient[0], rtol=1e-13)
    np.testing.assert_allclose(reverse["v̄"][1], gradient[1], rtol=1e-13)
    for mode, place in (("forward over reverse", 1), ("reverse over forward", 0)):
        rows = table(tables, f"Hessian, {mode}, direction (1, ..., 1)")
        found = [parts(rows[n][1])[place].ravel() for n in ("W", "v")]
        np.testing.assert_allclose(np.concatenate(found), product, rtol=1e-12)
    assert table(tables, "Forward")["s_1"][0].text == "W v"


def test_several_outputs_show_forward_mode_only():
    tables = symad.trace([x * y, x + y]).explain(x=2, y=3)
    assert [t.title.split(":")[0] for t in tables.tables] == ["Forward mode"]
    rows = table(tables, "Forward")
    assert rows["s_1"][1:5:2] == (6.0, 3.0)


def test_reverse_mode_memory_grows_along_the_states():
    node = start = input_node(x)
    for _ in range(6):
        node = apply(sympy.sin, node)
    tables = Graph((start,), (node,)).explain(x=0.5)
    live = [row[-1] for row in table(tables, "Reverse").values()]
    assert live == sorted(live, reverse=True)
    assert (live[0], live[-1]) == (7 * 8 + 2 * 8, 8 + 8)  # the states, and r_6 with r_5; s_0, r_0
    assert {row[-1] for row in table(tables, "Forward").values()} == {16, 32}


def test_the_cost_table_counts_the_graphs_themselves():
    f = sympy.sin(x) * sympy.exp(y)
    costs = table(symad.trace(f).explain(x=1, y=2), "Whole")
    assert costs["value"][0] == 3
    assert costs["Hessian, reverse-over-forward"][0] == symad.flops(
        symad.hessian(f, mode="reverse-over-forward")
    )


def test_markdown_has_one_width_and_escapes_bars():
    shown = symad.trace(sympy.Abs(x) * y).explain(x=-1, y=2).to_markdown()
    for block in re.findall(r"(?:^\|.*\|$\n?)+", shown, flags=re.MULTILINE):
        lines = block.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
        assert set(lines[1]) <= set("|-: ")
    assert symad.trace(x).explain(x=1)._repr_markdown_().startswith("## f(x) at x = 1")
    assert Table("t", ("a",), (("|x|",),)).to_markdown().count(r"\|x\|") == 1


def test_latex_is_balanced_and_uses_plain_tabulars():
    shown = symad.trace(sympy.sqrt(x) / 3 + y).explain(x=sympy.Rational(1, 2), y=1).to_latex()
    assert shown.count(r"\begin{tabular}") == shown.count(r"\end{tabular}") == shown.count("subsection")
    assert shown.replace(r"\{", "").count("{") == shown.replace(r"\}", "").count("}")
    assert shown.count("$") % 2 == 0
    assert r"\frac{\sqrt{2}}{2}" in shown
    assert shown.isascii()


NESTED = r"$((1,\; 2),\; (3 \cdot 10^{-7},\; 0))$"


@pytest.mark.parametrize(
    ("value", "plain", "typeset"),
    [
        (1e-20, "1e-20", r"$1 \cdot 10^{-20}$"),
        (Fraction(1, 3), "1/3", r"$\frac{1}{3}$"),
        (Dual(1.5, 2.0), "(1.5, 2)", r"$(1.5,\; 2)$"),
        (np.array([1.0, 2.5]), "[1, 2.5]", "[1, 2.5]"),
        (
            Dual(np.array([[1.0], [2.0]]), np.array([[1e-8], [Fraction(1, 3)]], dtype=object)),
            "([[1], [2]], [[1e-08], [1/3]])",
            r"$([[1],\; [2]],\; [[1 \cdot 10^{-8}],\; [\frac{1}{3}]])$",
        ),
        (
            Dual(np.full((5, 4), 1e-9), np.zeros((5, 4), dtype=object)),
            "(5×4, norm 4.47214e-09, 5×4 array)",
            r"$(5 \times 4,\; \|\cdot\| = 4.47214 \cdot 10^{-9},\; 5 \times 4)$",
        ),
        (Dual(Dual(1.0, 2.0), Dual(3e-7, 0.0)), "((1, 2), (3e-07, 0))", NESTED),
        (np.zeros((5, 4)), "5×4, norm 0", r"5$\times$4, norm 0"),
        (True, "True", "True"),
        (None, "", ""),
        (Math("a**2", "a^2"), "a**2", "$a^2$"),
        ("a_b & 5%", "a_b & 5%", r"a\_b \& 5\%"),
    ],
)
def test_cells(value, plain, typeset):
    assert text(value) == plain
    assert cell_latex(value) == typeset


def test_values_may_be_given_in_order():
    f = symad.trace(x * sympy.Symbol("y", real=True) ** 2)
    assert str(f.explain(2.0, 3.0)) == str(f.explain(x=2.0, y=3.0)) == str(f.explain(2.0, y=3.0))


def test_bad_questions_are_answered():
    with pytest.raises(EvaluationError, match=r"'q' is not an input of f; its inputs are x"):
        symad.trace(x**2).explain(q=1)
    with pytest.raises(EvaluationError, match="real number"):
        symad.trace(x**2).explain(x="3")
    with pytest.raises(EvaluationError, match=r"at most one value for x; 2 were given"):
        symad.trace(x**2).explain(1, 2)
    with pytest.raises(EvaluationError, match=r"at most one value for x; a second value of x"):
        symad.trace(x**2).explain(1, x=2)
    n = sympy.Symbol("n", integer=True, positive=True)
    a = input_node(sympy.MatrixSymbol("A", n, n), (n, n))
    with pytest.raises(EvaluationError, match=r"A has the symbolic shape \(n, n\)"):
        Graph((a,), (sum_all(a),)).explain()
    node = start = input_node(x)
    for _ in range(500):
        node = add(apply(sympy.sin, node), start)
    with pytest.raises(EvaluationError, match="1001 nodes, too many"):
        Graph((start,), (node,)).explain(x=1)


def rnn(steps):
    def loss(W, U, xs):
        states = functions.scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(2), xs)
        return np.sum(states[-1] ** 2)

    return symad.trace(loss, inputs=[(2, 2), (2, 3), (steps, 3)])


@pytest.mark.parametrize("make", [lambda: rnn(12), lambda: symad.gradient(rnn(12))], ids=["f", "gradient"])
def test_formulas_that_nobody_reads_are_refused_before_they_are_made(make):
    said = r"a formula of about \de\+\d+ symbols: give numbers for W, U, xs"
    with pytest.raises(EvaluationError, match=said):
        make().explain()
    rng = np.random.default_rng(0)
    W, U, xs = rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=(12, 3))
    assert make().explain(W=W, U=U, xs=xs).tables
    with pytest.raises(EvaluationError, match=r"give numbers for W, or explain"):
        make().explain(U=U, xs=xs)


def test_long_formulas_are_refused_where_arrays_give_the_sizes():
    with pytest.raises(EvaluationError, match=r"give numbers for W, U, or explain"):
        rnn(sympy.Symbol("T", integer=True, positive=True)).explain(xs=np.ones((12, 3)))


def test_the_size_of_a_formula_is_the_number_of_its_symbols():
    graph = rnn(3)
    value = graph(*(np.array(sympy.symarray(name, shape)) for name, shape in SHAPES))
    symbols = sum(part.is_Symbol for part in sympy.preorder_traversal(value))
    sizes = formula_sizes(graph.output_nodes, dict.fromkeys(graph.input_nodes, 1.0))
    assert symbols <= sizes[graph.output_nodes[0]] <= 4 * symbols  # a square is counted as a product


SHAPES = [("W", (2, 2)), ("U", (2, 3)), ("x", (3, 3))]


@pytest.mark.parametrize("name", ["self", "graph", "point"])
def test_inputs_may_have_any_name(name):
    tables = symad.trace(sympy.Symbol(name, real=True) ** 2).explain(**{name: 3})
    assert table(tables, "Reverse")["r_0"][1] == 6


def scalar_examples():
    """The sum of each op's example over all elements, squared so that Hessians are not zero.

    All examples of an op make the same tables; those after the first are slow tests.
    """
    for cls, make in EXAMPLES.items():
        for k, node in enumerate(make()):
            inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
            total = sum_all(mul(node, node)) if node.shape else mul(node, node)
            if inputs and not Graph(inputs, (node,)).dims and not isinstance(node.op, Condition):
                marks = [pytest.mark.slow] if k else []
                yield pytest.param(Graph(inputs, (total,)), id=f"{cls.__name__} {k}", marks=marks)


@pytest.mark.sample(16, without=("AttentionSecond",))
@pytest.mark.parametrize("graph", list(scalar_examples()))
def test_every_op_in_every_table(graph):
    """Gradients and Hessian-vector products of the tables are those of the transformations."""
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.1, 0.9, n.shape)[()] for n in graph.input_nodes]
    names = [str(s) for s in graph.inputs]
    tables = graph.explain(**dict(zip(names, values, strict=True)))
    gradient = symad.gradient(graph, graph.inputs)(*values)
    assert "" not in {row[0].text for row in table(tables, "Forward").values()}
    if len(names) <= 3 and not any(n.shape for n in graph.input_nodes):
        directions = [(n, [float(m == n) for m in names]) for n in names]
    else:
        directions = [("(1, ..., 1)", [np.ones(n.shape)[()] for n in graph.input_nodes])]
    arrays = any(n.shape for n in graph.nodes if not n.op.literal)
    rows = names if arrays or len(names) > 1 else ["s_0"]
    for direction, dots in directions:
        product = symad.hvp(graph, graph.inputs)(*values, *dots)
        for_, rof, ror = (
            table(tables, f"Hessian, {mode}, direction {direction}")
            for mode in ("forward over reverse", "reverse over forward", "reverse over reverse")
        )
        for row, first, second in zip(rows, gradient, product, strict=True):
            close = {"rtol": 1e-9, "atol": 1e-11}
            np.testing.assert_allclose(for_[row][1].value, first, **close)
            np.testing.assert_allclose(for_[row][1].tangent, second, **close)
            np.testing.assert_allclose(rof[row][1].value, second, **close)
            np.testing.assert_allclose(rof[row][1].tangent, first, **close)
            np.testing.assert_allclose(ror[row][2], second, **close)


def test_wide_tables_are_blocks_of_80_columns():
    """Every column is shown once, the first one in each block."""
    names = [f"∂/∂alpha_{k}" for k in range(12)]
    shown = Table("Wide", ("s_k", *names), (("s_1", *range(12)), ("s_2", *range(12)))).to_text()
    assert max(map(len, shown.splitlines())) <= 80
    heads = [line.split() for line in shown.splitlines() if line.startswith("s_k ")]
    assert len(heads) > 1
    assert [name for head in heads for name in head[1:]] == names
    second = next(line.split() for line in shown.splitlines() if line.startswith("s_2 "))
    assert second[:3] == ["s_2", "0", "1"]


def test_zeros_have_no_sign():
    """−0.0 is a zero; in boxes, tables and lists of entries alike."""
    told = str(symad.trace(sympy.sin(x * y) - x**2, [x, y]).explain(x=0.0, y=-0.0))
    assert not re.search(r"(?<![\w)])-0(?![.\d])", told)
    assert text(np.array([-0.0, 1.0])) == "[0, 1]" and text(-0.0) == "0"


def test_each_block_of_a_wide_table_has_its_title():
    wide = Table("Values", tuple("abcd"), (("x" * 30,) * 4,))
    titles = [line for line in wide.to_text().splitlines() if line.startswith("Values")]
    assert titles == ["Values", *["Values, continued"] * (len(titles) - 1)] and len(titles) == 3


def test_boxes_name_norms_as_norms():
    names, large = [Math("Q", "Q"), Math("s'_Q", "s'_{Q}")], np.full((3, 4), 2.0)
    assert boxed(names[:1], [large]).text == f"‖Q‖ = {text(float(np.linalg.norm(large)))}"
    assert boxed(names, [large, 0]).text.startswith("(‖Q‖, ‖s'_Q‖) = (")
    assert boxed(names, [1.0, 0.5]).text == "Q = (1, 0.5)"


def test_tables_without_numbers_are_bounded():
    """Cells that would be cut are not shown: the Hessians of long formulas ask for numbers."""
    inner = sympy.exp(x * y) * sympy.log(1 + z**2) / sympy.sqrt(1 + x**2 + y**2)
    f = symad.trace(sympy.sin(inner) ** 3 * sympy.tanh(x * y * z))
    without, some = f.explain(), f.explain(x=1.0)
    for made in (without, some):
        assert not any("Hessian, " in table.title for table in made.tables)
        assert len(str(made).splitlines()) < 400
    assert "need numbers for x, y, z." in str(without) and "need numbers for y, z." in str(some)
    assert any("Hessian, " in table.title for table in f.explain(x=1.0, y=2.0, z=3.0).tables)
