"""`style="plain"`: text, program and graph agree, for all ops, all models and random programs."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad
from symad.cli.tour.stages import all_stages
from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numeric import lower
from symad.numeric.modules.module_text import Names
from symad.numeric.plain import plain_program
from symad.numeric.program.expressions import Compute, Index, Position, Read, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Store
from symad.numeric.targets.statements import recurrence
from symad.numeric.targets.target import NUMPY
from symad.numeric.targets.writer import Writer
from symad.ops.elementwise.apply import Apply
from tests.numeric.agreement import random_programs
from tests.numeric.programs import plain_cases as cases

EXAMPLES = cases.examples_of_ops()
STAGES = all_stages()
MAX_NODES = 3000
"""Nodes up to which a model is printed in plain style here; larger models are tested as fast code only."""

over = pytest.mark.parametrize


def agree(graph, values, rtol=1e-9):
    expected = graph(*values)
    cases.assert_same(lower(graph, style="plain")(*values), expected, rtol)
    cases.assert_same(run_program(plain_program(graph), values), expected, rtol)


@pytest.mark.sample(142)
@over("name", EXAMPLES)
def test_every_op(name):
    agree(EXAMPLES[name], cases.point(EXAMPLES[name]))


@pytest.mark.sample(34)
@over("name", STAGES)
def test_models_and_their_gradients(name):
    model = STAGES[name].model()
    graph = model.graph("model")
    if len(graph.nodes) > MAX_NODES:
        pytest.skip("a model of many nodes")
    agree(graph, model.point, 1e-7)
    if len(graph.output_nodes) == 1 and not graph.output_nodes[0].shape:
        agree(symad.value_and_gradient(graph, model.wrt), model.point, 1e-7)


@pytest.mark.sample(6)
@over("seed", range(12))
def test_random_programs(seed):
    shapes = random_programs.shapes_of(seed)
    values = [np.random.default_rng(seed).normal(size=shape) for shape in shapes]
    graph = symad.trace(lambda *v: random_programs.program("numpy", seed, v)[1], shapes)
    agree(symad.value_and_gradient(graph), values, 1e-7)


@over("name", cases.LISTINGS)
def test_plain_and_fast_text_agree(name):
    graph = cases.LISTINGS[name]()
    values = cases.point(graph)
    cases.assert_same(lower(graph, style="plain")(*values), lower(graph)(*values))


@pytest.mark.thorough
@over("name", cases.LISTINGS)
def test_the_saved_file_stands_alone_and_ends_with_the_entry_point(name, tmp_path):
    graph = cases.LISTINGS[name]()
    kernel = lower(graph, style="plain")
    path = tmp_path / "model.py"
    kernel.save(path)
    last = ast.parse(path.read_text("utf-8")).body[-1]
    assert isinstance(last, ast.FunctionDef) and last.name == kernel.name == graph.name
    assert [a.arg for a in last.args.args] == [str(s) for s in graph.inputs]
    code = f"import sys, model; print('symad' in sys.modules, model.{last.name}.__doc__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("False"), done.stderr


@over("name", cases.LISTINGS)
def test_nothing_in_the_text_is_unused(name):
    tree = ast.parse(lower(cases.LISTINGS[name](), style="plain").source)
    read = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    *helpers, entry = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    assert {helper.name for helper in helpers} <= read
    written = {
        node.id for node in ast.walk(entry) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    dims = {"n", "T", "d"}
    assert written - dims <= read


def test_single_precision_stays():
    graph = cases.LISTINGS["rnn"]()
    values = cases.point(graph)
    found = lower(graph, dtype="float32", style="plain")(*values)
    assert all(part.dtype == np.float32 for part in found)
    cases.assert_same(tuple(np.asarray(f, float) for f in found), graph(*values), 1e-5)


def test_packed():
    graph = cases.LISTINGS["attention"]()
    values = cases.point(graph)
    flat = np.concatenate([v.ravel() for v in values])
    kernel = lower(graph, packed=True, style="plain")
    expected = np.concatenate([np.ravel(part) for part in graph(*values)])
    value, slope = kernel(flat, cases.SIZES[cases.d], cases.SIZES[cases.n])
    np.testing.assert_allclose([value, *slope], expected, rtol=1e-12)


def test_scalar_functions_take_batches_of_points():
    x, y = sp.symbols("x y")
    f = sp.Matrix([x * y, sp.exp(x), 3])
    kernel = lower(f, style="plain")
    points = np.linspace(0, 1, 4)[:, None], np.linspace(1, 2, 3)
    made = kernel(*points)
    assert made.shape == (4, 3, 3, 1)
    np.testing.assert_allclose(made[..., 0, 0], points[0] * points[1])
    np.testing.assert_allclose(made[..., 2, 0], 3)
    assert kernel(1.0, 2.0).shape == (3, 1)


def test_numbers_have_the_semantics_of_numpy():
    x = sp.Symbol("x")
    with np.errstate(all="ignore"):
        assert lower(1 / x, style="plain")(0.0) == np.inf
        assert np.isnan(lower(sp.log(x), style="plain")(-1.0))
        assert np.isinf(lower(sp.exp(x), style="plain")(1000.0))


def test_results_share_no_memory_with_arguments():
    X = sp.MatrixSymbol("X", 3, 3)
    values = np.arange(9.0).reshape(3, 3)
    made = lower(X.T, style="plain")(values)
    assert not np.shares_memory(made, values)
    made[0, 0] = 7.0  # results are writable


@over(
    ("values", "error", "words"),
    [
        ((np.ones((4, 4)), np.ones((4, 3)), np.ones((5, 2))), ValueError, ["xs", "(T, 3)", "(5, 2)"]),
        ((np.ones((4, 5)), np.ones((4, 3)), np.ones((5, 3))), ValueError, ["W", "(4, 4)", "(4, 5)"]),
        ((np.ones((4, 4)), "text", np.ones((5, 3))), TypeError, ["U", "real numbers"]),
    ],
)
def test_errors_name_the_argument(values, error, words):
    with pytest.raises(error) as caught:
        lower(cases.LISTINGS["rnn"](), style="plain")(*values)
    assert all(word in str(caught.value) for word in words)


def test_a_style_or_backend_that_is_not_there_is_named():
    x = sp.Symbol("x")
    with pytest.raises(LoweringError, match="'pretty'"):
        lower(x, style="pretty")
    with pytest.raises(LoweringError, match="'c'"):
        lower(x, backend="c", style="plain")


def test_the_log_tells_what_each_pass_did():
    lines = []
    lower(cases.LISTINGS["rnn"](), style="plain", log=lines.append)
    told = {name: done for name, _, done in (line.partition(": ") for line in lines)}
    assert "nodes" in told["keep"] and told["expand"] == "nothing to do"
    assert "statements" in told["inline"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="ast.unparse writes parentheses around targets")
def test_the_page_of_listings_shows_what_is_printed():
    page = (Path(__file__).resolve().parents[3] / "docs" / "listings.md").read_text("utf-8")
    assert page == cases.listings.page(), "the style has changed: python docs/make_listings.py, and read it"


@pytest.mark.thorough
def test_very_long_sums_compile():
    xs = sp.symbols("x:4000")
    graph = symad.trace(sp.Add(*(x if k % 2 else -x for k, x in enumerate(xs))), list(xs))
    values = np.linspace(0, 1, len(xs))
    np.testing.assert_allclose(lower(graph, style="plain")(*values), graph(*values), rtol=1e-12)


HOSTILE = "n} {print('run')}\nraise SystemExit  # \""


def test_names_are_no_code(capsys):
    """Names of dimensions, inputs, functions and graphs are in the text as identifiers or not at all."""
    m = sp.Symbol(HOSTILE, integer=True)
    X, Y = sp.MatrixSymbol(HOSTILE + "X", m, 2), sp.MatrixSymbol("Y", m + 1, 2)
    graph = symad.trace(lambda x, y: np.sum(x[2:] * y[3:]), [X, Y])
    graph = Graph(graph.input_nodes, graph.output_nodes, graph.structure, HOSTILE)
    kernel = lower(symad.value_and_gradient(graph), style="plain")
    value, *_ = kernel(np.ones((4, 2)), np.ones((5, 2)))
    assert value == 4.0
    with pytest.raises(ValueError):
        kernel(np.ones((1, 2)), np.ones((2, 2)))
    assert "run" not in capsys.readouterr().out


def test_names_of_functions_in_formulas_are_no_code():
    text = recurrence_of(type("f\nprint('run')", (sp.Function,), {}))
    assert text[0] == "" and text[1].startswith("# h_{t+1} = ") and "\n" not in text[1]


def recurrence_of(head):
    """The comment above the loop h_{t+1} = head(h_t)."""
    h, t = Value("h", (4,)), Value("t", ())
    inner = Compute(Apply(head), (Index(Read(h), (Position(0, t),)),), ())
    return recurrence(
        Loop(t, 3, False, (), (Store(h, Position(1, t), inner),)), Writer(NUMPY, "float64", Names())
    )


def test_states_that_are_scans():
    """The step of a loop returns the states of an inner loop, which are stored as a row."""
    f = symad.trace(
        lambda a: symad.functions.scan(
            lambda c, x: symad.functions.scan(lambda d, z: np.sin(d) + z + c.sum(), x[0] * 0.3, x),
            np.zeros(2), a,
        ),
        [(3, 2)],
    )  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(3, 2))
    wanted, c = [], np.zeros(2)
    for x in rows:
        d, states = x[0] * 0.3, []
        for z in x:
            d = np.sin(d) + z + c.sum()
            states.append(d)
        c = np.array(states)
        wanted.append(c)
    np.testing.assert_allclose(lower(f, style="plain")(rows), wanted, rtol=1e-14)


@pytest.mark.parametrize("step", [-1, -2, -3])
@pytest.mark.parametrize("options", [{"style": "plain"}, {}, {"backend": "c"}], ids=str)
def test_gradients_of_reversed_steps_at_symbolic_lengths(step, options):
    n = sp.Symbol("n", integer=True, positive=True)
    kernel = lower(symad.gradient(symad.trace(lambda x: np.sum(x[::step] ** 2), [(n,)])), **options)
    for count in range(1, 8):
        x, wanted = np.arange(1.0, count + 1), np.zeros(count)
        wanted[::step] = 2 * x[::step]
        np.testing.assert_array_equal(kernel(x), wanted)


@pytest.mark.filterwarnings("error")
def test_plain_code_does_not_warn_where_cosh_would_overflow():
    graph = symad.gradient(symad.trace(lambda u: np.tanh(u).sum(), [(3,)]))
    slope = lower(graph, style="plain")(np.array([1.0, 900.0, -900.0]))
    np.testing.assert_allclose(slope, [0.4199743416140261, 0.0, 0.0], rtol=1e-15)  # 1 − tanh(1)²
