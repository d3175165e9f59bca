"""One function, one signature: order, grouping and names of arguments."""

import inspect
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

import symad
from symad import testing
from symad.errors import DerivativeError, EvaluationError, TraceError
from symad.numeric import lower

x, y, z, t = sp.symbols("x y z t", real=True)
q = x**2 * y
V = sp.symbols("v1:4", real=True)

DERIVED = {
    "gradient": symad.gradient,
    "value_and_gradient": symad.value_and_gradient,
    "jacobian": symad.jacobian,
    "sparse jacobian": lambda f, w, **k: symad.jacobian(f, w, sparse=True, **k),
    "hessian": symad.hessian,
    "sparse hessian": lambda f, w, **k: symad.hessian(f, w, sparse=True, **k),
    "hvp": symad.hvp,
    "pushforward": symad.pushforward,
    "pullback": symad.pullback,
}


@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
def test_wrt_never_changes_the_order(derive):
    for wrt in (None, x, y, [y, x], "none"):
        graph = derive(q, z if wrt == "none" else wrt)
        assert graph.inputs[:2] == (x, y)
        assert [p for p in inspect.signature(graph).parameters][:2] == ["x", "y"]


@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
def test_inputs_fix_the_order_for_expressions_graphs_and_functions(derive):
    for f, inputs in ((q, [y, z, x]), (symad.trace(q), [y, z, x]), (lambda y, z, x: x**2 * y, [y, z, x])):
        assert derive(f, x, inputs=inputs).inputs[:3] == (y, z, x)


def test_values_follow_the_signature():
    assert symad.gradient(q, y)(2.0, 3.0) == 4.0
    assert symad.gradient(q, (y, x))(2.0, 3.0) == (4.0, 12.0)
    assert symad.jacobian(q, y)(2.0, 3.0).tolist() == [[4.0]]
    assert symad.hessian(q, y)(2.0, 3.0).tolist() == [[0.0]]
    assert symad.gradient(q, z)(2.0, 3.0, 9.0) == 0.0
    for inputs, slope in ((None, lambda x, y: x**2), ([y, x], lambda y, x: x**2)):
        certificate = symad.verify(q, y, gradient=slope, inputs=inputs, hostile=False)
        assert certificate.status in ("tested", "measured")
    testing.assert_derivative(q, y, gradient=x**2)


def test_names_are_in_natural_order():
    many = sp.symbols("x:12", real=True)
    assert symad.trace(sp.Add(*many)).inputs == many
    plain, positive = sp.Symbol("a"), sp.Symbol("a", positive=True)
    message = r"two different symbols a: a \((without|positive).*\) and a \((without|positive).*\); make"
    for function in (symad.trace, symad.gradient, symad.check, lower):
        with pytest.raises(TraceError, match=message):
            function(plain * positive)
    for order in ([plain, positive], [positive, plain]):
        both = symad.trace(plain - 2 * positive, inputs=order)
        assert both(3.0, 5.0) == lower(both)(3.0, 5.0) == (-7.0 if order[0] is plain else -1.0)
        with pytest.raises(EvaluationError, match="two inputs a"):
            both.explain(a=2.0)
    with pytest.raises(TraceError, match=r"two different symbols a"):
        symad.gradient(plain**2 * sp.Trace(sp.MatrixSymbol("a", 2, 2)))
    with pytest.raises(TraceError, match="depends on x2, x10, missing"):
        symad.trace(sp.Symbol("x10") + sp.Symbol("x2") + x, inputs=[x])


def test_other_functions_take_inputs():
    assert symad.check(q, inputs=[y, x]).status == "proved"
    assert symad.equal(lambda a: a * 2, lambda a: a + a, inputs=[()]).status == "proved"
    assert symad.flops(lambda a: a * a, inputs=[(5,)]) == 5
    assert symad.memory(lambda a: a * a, inputs=[(5,)]) == 80
    assert symad.vmap(q, inputs=[y, x])(np.array([3.0, 1.0]), np.array([2.0, 5.0])).tolist() == [12, 25]
    assert symad.jacobian_sparsity([y, x], inputs=[y, x]).toarray().tolist() == [[True, False], [False, True]]
    assert symad.hessian_sparsity(q, y, inputs=[y, x]).nnz == 0
    assert symad.join(q, x, inputs=[y, x])(3.0, 2.0) == (12.0, 2.0)
    assert lower(q, inputs=[y, x])(3.0, 2.0) == 12.0
    assert lower(lambda a: a.sum(), inputs=[(3,)])([1, 2, 3]) == 6


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [None, "numpy", "c", "runs"])
def test_keywords(backend):
    graph = symad.gradient(q)
    call = graph if backend is None else lower(graph, backend=backend)
    assert tuple(call(y=3.0, x=2.0)) == tuple(call(2.0, y=3.0)) == (12.0, 4.0)
    assert list(inspect.signature(call).parameters) == ["x", "y"]
    for wrong, message in (
        (lambda: call(x=2.0), "missing: y"),
        (lambda: call(2.0, 3.0, y=1.0), "y twice"),
        (lambda: call(2.0, 3.0, w=1.0), "'w' is none of them"),
    ):
        with pytest.raises(EvaluationError, match=message):
            wrong()


def test_names_that_are_no_identifiers():
    odd = sp.Symbol(r"\lambda_1")
    keyword = sp.Symbol("lambda")
    call = lower(odd * keyword)
    assert call(**{r"\lambda_1": 2.0, "lambda": 3.0}) == call(lambda_1=2.0, lambda_=3.0) == 6.0
    with pytest.raises(TypeError, match=r"\\lambda_1 must hold real numbers"):
        call("a", 1.0)


def test_saved_code_takes_keywords(tmp_path):
    lower(symad.hvp(q, x, inputs=[y, [x, z]])).save(tmp_path / "model.py")
    space = {}
    exec((tmp_path / "model.py").read_text(), space)
    assert space["f_hvp"](x_z=[2.0, 0.0], y=3.0, x_v=1.0) == 6.0
    with pytest.raises(TypeError, match="x_v"):
        space["f_hvp"](3.0, [2.0, 0.0])


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_lowered_errors_name_the_input(backend):
    kernel = lower(sp.sin(x) * y, backend=backend)
    with pytest.raises(TypeError, match="y must hold real numbers"):
        kernel(1.0, np.array([1j]))


# ---- groups -------------------------------------------------------------------------------------

FORMS = {"list": list(V), "tuple": V, "Matrix": sp.Matrix(V), "Array": sp.Array(V), "Tuple": sp.Tuple(*V)}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("backend", [None, "numpy", "c", "runs"])
def test_a_vector_of_symbols(form, backend):
    f = V[0] * V[1] ** 2 + t * V[2]
    lowered = (lambda g: g) if backend is None else lambda g: lower(g, backend=backend)
    gradient = lowered(symad.gradient(f, inputs=[t, form]))
    by_t, by_v = gradient(2.0, [3.0, 4.0, 5.0])
    assert by_t == 5.0 and by_v.tolist() == [16, 24, 2]
    assert list(inspect.signature(gradient).parameters) == ["t", "v"]
    assert gradient(t=2.0, v=np.array([[3.0], [4.0], [5.0]]))[1].tolist() == [16, 24, 2]
    assert lowered(symad.trace(f, [t, form]))(2.0, np.array([[3.0, 4.0, 5.0], [1, 1, 1]])).tolist() == [58, 3]
    assert lowered(symad.gradient(f, 1, inputs=[t, form]))(2.0, [3.0, 4.0, 5.0]).tolist() == [16, 24, 2]
    assert lowered(symad.gradient(f, V[1], inputs=[t, form]))(2.0, [3.0, 4.0, 5.0]) == 24
    product = lowered(symad.hvp(f, "v", inputs=[t, form]))
    assert product(2.0, [3.0, 4.0, 5.0], [0.0, 1.0, 0.0]).tolist() == [8, 6, 0]
    with pytest.raises(TypeError, match=r"v is an array of shape \(3,\), but was given one of shape \(2,\)"):
        gradient(2.0, np.ones(2))


def test_results_are_vectors_where_arguments_are():
    column = sp.Matrix([V[1], -V[0]])
    assert symad.trace(column, [list(V)])([1, 2, 3]).shape == (2,)
    assert symad.trace(column, V)(1, 2, 3).shape == (2, 1)
    assert symad.jacobian(column, [V[0]], inputs=[V])([1, 2, 3]).shape == (2, 1)


def test_matrices_of_symbols_and_nested_lists():
    M = sp.Matrix(2, 2, sp.symbols("m:4", real=True))
    for entry in (M, M.tolist()):
        slope = symad.gradient(M.det(), 0, inputs=[entry])
        assert slope([[1.0, 2.0], [3.0, 4.0]]).tolist() == [[4, -3], [-2, 1]]
        assert lower(slope)(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[4, -3], [-2, 1]]


def test_dicts_and_lists_of_arrays():
    A, b = sp.MatrixSymbol("A", 2, 2), sp.MatrixSymbol("b", 2, 1)
    f = b.T * A * b
    values = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0], [6.0]])
    for made, given in (({"A": A, "b": b}, dict(zip("Ab", values, strict=True))), ([A, b], list(values))):
        graph = symad.gradient(f, 0, inputs=[made])
        for call in (graph, lower(graph), lower(graph, backend="c")):
            slope = call(given)
            assert type(slope) is type(made)
            by_b = slope["b"] if isinstance(slope, dict) else slope[1]
            assert np.allclose(by_b, (values[0] + values[0].T) @ values[1])
    named = symad.trace(f, inputs={"parameters": {"A": A, "b": b}})
    assert list(inspect.signature(named).parameters) == ["parameters"]
    with pytest.raises(EvaluationError, match="parameters has the keys A, b; the value given lacks b"):
        named({"A": values[0]})
    with pytest.raises(TypeError, match="parameters is a dict with the keys A, b, but was given one with A"):
        lower(named)({"A": values[0]})
    with pytest.raises(symad.errors.ShapeError, match=r"parameters\['b'\]|axis 0 of b"):
        named({"A": values[0], "b": np.ones((3, 1))})


def test_groups_go_through_batches_and_joins():
    f = V[0] * V[1] + V[2]
    batch = symad.vmap(f, inputs=[V])
    assert batch(np.arange(6.0).reshape(2, 3)).tolist() == [2, 17]
    joined = symad.join(f, symad.gradient(f, inputs=[V]), inputs=[V])
    assert joined([1, 2, 3])[0] == 5
    with pytest.raises(TraceError, match="group inputs in two ways"):
        symad.join(symad.trace(f, [V]), symad.trace(f, [V[:2], V[2]]))
    assert symad.trace(lambda a: symad.trace(f, [V])(a) ** 2, [(3,)])([1, 2, 3]) == 25


def test_groups_are_saved(tmp_path):
    f = V[0] * V[1] + V[2]
    for graph in (symad.hvp(f, 0, inputs=[V]), symad.gradient(f, inputs=[[V[0], V[1]], {"c": V[2]}])):
        symad.save(graph, tmp_path / "g.json")
        again = symad.load(tmp_path / "g.json")
        assert (again.inputs, again.grouping, again.packing) == (graph.inputs, graph.grouping, graph.packing)
        assert again.outputs == graph.outputs and inspect.signature(again) == inspect.signature(graph)


def test_wrong_inputs_are_named():
    for wrong, message in (
        ([x, x, y], "x twice"),
        ([[x, x], y], "x twice"),
        ([x], "depends on y, missing"),
        ({x, y}, "list with one entry"),
        ("xy", "list with one entry"),
        ([x, y, "z"], "'z'"),
        ([x, y, None], "None"),
    ):
        with pytest.raises(TraceError, match=message):
            symad.gradient(q, inputs=wrong)
    loop = [x]
    loop.append(loop)
    with pytest.raises(TraceError, match="contain itself"):
        symad.trace(q, inputs=[loop, y])


# ---- functions of time --------------------------------------------------------------------------

TIME = dynamicsymbols._t
A1, A2 = dynamicsymbols("a1 a2")


def test_functions_of_time_are_inputs():
    f = sp.cos(A1) * A1.diff(TIME) ** 2 + A2
    graph = symad.gradient(f)
    assert graph.inputs == (A1, A1.diff(TIME), A2)
    assert list(inspect.signature(graph).parameters) == ["a1", "a1_dot", "a2"]
    s = sp.symbols("s:3")
    plain = f.subs(A1.diff(TIME), s[1]).subs({A1: s[0], A2: s[2]})
    expected = [float(plain.diff(v).subs(dict(zip(s, (0.3, 2.0, 1.0), strict=True)))) for v in s]
    for backend in ("numpy", "c", "runs"):
        assert lower(graph, backend=backend)(a1=0.3, a1_dot=2.0, a2=1.0) == pytest.approx(expected)
    assert graph(**{"a1(t)": 0.3, "Derivative(a1(t), t)": 2.0, "a2(t)": 1.0}) == pytest.approx(expected)
    assert symad.check(f).status == "proved"
    by_sympy = sp.diff(f.subs(A1.diff(TIME), s[1]), A1).subs(s[1], A1.diff(TIME))
    assert sp.expand(symad.to_sympy(symad.gradient(f, A1)) - by_sympy) == 0
    state = symad.jacobian([f], [A1, A2], inputs=[TIME, [A1, A2], [A1.diff(TIME), A2.diff(TIME)]])
    assert list(inspect.signature(state).parameters) == ["t", "a", "a_dot"]
    assert state(0.0, [0.3, 1.0], [2.0, 0.0]) == pytest.approx(np.array([[expected[0], 1.0]]))


def test_time_itself_is_refused_where_it_matters():
    f = A1 * sp.sin(TIME)
    assert symad.trace(f).inputs == (A1, TIME)
    assert symad.gradient(f, A1)(2.0, 0.5) == pytest.approx(np.sin(0.5))
    for wrt in (None, TIME, [A1, TIME]):
        with pytest.raises(DerivativeError, match=r"by t: its input a1\(t\) is a function of t"):
            symad.gradient(f, wrt)
    with pytest.raises(DerivativeError, match=r"by t: its input a1\(t\)"):
        symad.gradient(A1**2, TIME)
    i = sp.Symbol("i", integer=True)
    with pytest.raises(TraceError, match="depends on the index i"):
        symad.trace(sp.Sum(sp.Function("F")(i), (i, 0, 3)))


# ---- structures of a traced function -------------------------------------------------------------


@dataclass
class Layer:
    """A layer."""

    W: object
    b: object


def network(params, x):
    """Two layers and a head."""
    for layer in params["layers"]:
        x = np.tanh(layer["w.weight"] @ x + layer["b"])
    return (params["head"].W @ x + params["head"].b).sum()


SHAPES = {
    "layers": [{"w.weight": (3, 2), "b": (3,)}, {"w.weight": (3, 3), "b": np.zeros(3)}],
    "head": Layer((1, 3), (1,)),
}


def parameters(seed=0):
    """Values in the structure of the shapes."""
    rng = np.random.default_rng(seed)
    return {
        "layers": [
            {"w.weight": rng.normal(size=(3, n)), "b": rng.normal(size=3)} for n in (2, 3)
        ],
        "head": Layer(rng.normal(size=(1, 3)), rng.normal(size=1)),
    }


@pytest.mark.parametrize("backend", [None, "numpy", "c"])
def test_nested_parameters_against_torch(backend):
    torch = pytest.importorskip("torch")
    graph = symad.value_and_gradient(network, "params", inputs=[SHAPES, (2,)])
    call = graph if backend is None else lower(graph, backend=backend)
    values, point = parameters(), np.array([0.3, -0.7])
    value, slope = call(values, point)
    tensors = [torch.tensor(v, requires_grad=True) for layer in values["layers"] for v in layer.values()]
    head = [torch.tensor(v, requires_grad=True) for v in (values["head"].W, values["head"].b)]
    h = torch.tensor(point)
    for k in (0, 2):
        h = torch.tanh(tensors[k] @ h + tensors[k + 1])
    loss = (head[0] @ h + head[1]).sum()
    loss.backward()
    assert value == pytest.approx(loss.item())
    assert isinstance(slope["layers"], list) and isinstance(slope["head"], Layer)
    found = [v for layer in slope["layers"] for v in layer.values()] + [slope["head"].W, slope["head"].b]
    for mine, theirs in zip(found, [*tensors, *head], strict=True):
        np.testing.assert_allclose(mine, theirs.grad.numpy(), rtol=1e-12)


def test_nested_parameters_everywhere():
    values, point = parameters(), np.array([0.3, -0.7])
    graph = symad.trace(network, [SHAPES, (2,)])
    assert str(graph.inputs[0]) == "params['layers'][0]['w.weight']"
    product = symad.hvp(graph, 0)(values, point, parameters(1))
    assert product["layers"][1]["b"].shape == (3,)
    one = symad.gradient(graph, "params['head'].W")(values, point)
    np.testing.assert_allclose(one, symad.gradient(graph, 0)(values, point)["head"].W)
    with pytest.raises(EvaluationError, match=r"params\['layers'\] is a list or tuple of 2 entries"):
        graph({**values, "layers": values["layers"][:1]}, point)
    with pytest.raises(symad.errors.ShapeError, match=r"params\['head'\]\.b"):
        graph({**values, "head": Layer(values["head"].W, np.ones(2))}, point)
    certificate = symad.verify(
        lambda p, x: (p["a"] * x**2).sum(), "p", inputs=[{"a": (3,)}, (3,)], gradient=lambda p, x: {"a": x**2}
    )
    assert certificate.status in ("tested", "measured")


# ---- exactness ----------------------------------------------------------------------------------


def test_integers_and_fractions_stay_exact():
    slope = symad.gradient(q, (x, y))(Fraction(1, 3), 2)
    assert slope == (Fraction(4, 3), Fraction(1, 9)) and not any(isinstance(s, float) for s in slope)
