"""Scalar graphs as runs, in NumPy and by the compiled kernel: the values of straight-line code."""

import threading
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import LoweringError
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.scalars import numpy_runs
from symad.numeric.numpy_arrays.scalars.level_runs import plan
from symad.numeric.scalars import c_interpreter, lower_runs

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def everything() -> tuple[symad.Graph, int]:
    """A little of every operation, many times over."""
    x = sp.symbols("x:40", real=True)
    terms = []
    for a, b in pairwise(x):
        terms += [
            sp.sin(a) * b - a / (2 + b**2) + sp.sqrt(1 + a**2) ** 3 - 1 / (3 + sp.cos(b)),
            sp.Max(a, b, a * b) - sp.Min(a, 0.3) + sp.Abs(a - b) ** sp.Rational(3, 2),
            sp.Piecewise((sp.exp(a), a < b), (sp.log(2 + b**2), sp.And(a > 0, b > -1)), (b, True)),
            symad.functions.sigmoid(a) * sp.tanh(b) + sp.atan2(a, 2 + b) + sp.sign(a) + (1 + a**2) ** b,
        ]
    return symad.gradient(sp.Add(*terms), x), len(x)


def straight(graph: symad.Graph, monkeypatch: pytest.MonkeyPatch) -> symad.numeric.Kernel:
    """The straight-line code, whatever is faster."""
    with monkeypatch.context() as m:
        m.setattr(numpy_runs, "MIN_OPERATIONS", 10**9)
        return lower(graph)


@pytest.mark.thorough
def test_long_regular_programs_become_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sp.symbols("x:300", real=True)
    chain = sp.Add(*[100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(x)])
    graph = symad.gradient(chain, x)
    kernel = lower(graph)
    assert "_runs(" in kernel.source and "_at_point" not in kernel.source
    point = np.random.default_rng(0).normal(size=300)
    assert np.allclose(kernel(*point), straight(graph, monkeypatch)(*point), rtol=1e-14)
    packed = lower(graph, packed=True)
    assert np.allclose(packed(point), kernel(*point), rtol=1e-15)
    with pytest.raises(ValueError, match=r"\(300,\)"):
        packed(point[1:])
    single = lower(graph, dtype="float32", packed=True)(point)
    assert single.dtype == np.float32 and np.allclose(single, packed(point), rtol=1e-3)


def test_short_or_irregular_programs_stay_straight() -> None:
    x = sp.symbols("x:6", real=True)
    assert "_runs(" not in lower(symad.gradient(sp.sin(sp.Mul(*x)), x)).source


@pytest.mark.thorough
def test_runs_in_numpy_equal_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, count = everything()
    points = np.random.default_rng(1).normal(size=(count, 7))
    expected = straight(graph, monkeypatch)(*points)
    monkeypatch.setattr(numpy_runs, "MIN_OPERATIONS", 0)
    monkeypatch.setattr(numpy_runs, "MIN_RUN_LENGTH", 0)
    kernel = lower(graph)
    assert "_runs(" in kernel.source
    assert np.allclose(kernel(*points), expected, rtol=1e-12, atol=1e-13)
    assert np.allclose(kernel(*points[:, 0]), [e[0] for e in expected], rtol=1e-12, atol=1e-13)
    with pytest.raises(TypeError, match="x1 must hold real numbers"):
        kernel(points[0], "no", *points[2:])


@pytest.mark.thorough
@needs_compiler
def test_the_compiled_kernel_equals_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, count = everything()
    compiled, reference = lower(graph, backend="runs"), straight(graph, monkeypatch)
    for batch in [(), (1,), (5,), (64,), (3, 50)]:
        points = np.random.default_rng(2).normal(size=(count, *batch))
        assert np.allclose(compiled(*points), reference(*points), rtol=1e-12, atol=1e-13), batch


@needs_compiler
@pytest.mark.parametrize("backend", ["runs", "c"])
def test_batches_of_any_layout_and_results_that_are_kept(backend: str) -> None:
    a, b = sp.symbols("a b", real=True)
    kernel = lower(symad.trace([a * b, sp.Matrix([a - b, b])], [a, b]), backend=backend)
    left = np.arange(20_000).reshape(200, 100).T  # integers, columns first
    right = np.linspace(-1, 1, 40_000).reshape(200, 200)[::2, ::2]  # with gaps
    right = np.concatenate([right, right], axis=1)
    product, pair = kernel(left, right)
    assert np.allclose(product, left * right)
    assert np.array_equal(pair, np.stack([left - right, right], -1)[..., None])
    others = [kernel(left + k, np.float32(2.0)) for k in range(3)]
    assert np.allclose(product, left * right)  # its memory is not used again
    for k, (times, _) in enumerate(others):
        assert np.array_equal(times, 2.0 * (left + k))


@needs_compiler
def test_shapes_and_structures_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = sp.symbols("a b", real=True)
    graph = symad.trace({"matrix": sp.Matrix([[a, b], [a * b, 2]]), "pair": (a - b, b)})
    one = lower(graph, backend="runs")(2.0, 3.0)
    assert np.array_equal(one["matrix"], [[2, 3], [6, 2]]) and one["pair"] == (-1.0, 3.0)
    many = lower(graph, backend="runs")(np.ones((4, 1)), np.arange(3.0))
    assert many["matrix"].shape == (4, 3, 2, 2) and many["pair"][0].shape == (4, 3)
    packed = lower(symad.jacobian(sp.Matrix([a * b, a**2]), (a, b)), backend="runs", packed=True)
    assert np.array_equal(packed([2.0, 5.0]), [[5, 2], [4, 0]])


@needs_compiler
def test_the_compiled_kernel_has_the_values_of_ieee_arithmetic() -> None:
    a, b = sp.symbols("a b", real=True)
    kernel = lower(symad.trace((a / b, sp.log(a), sp.sqrt(a), sp.exp(a), sp.Max(a, b))), backend="runs")
    with np.errstate(all="ignore"):
        assert kernel(1.0, 0.0)[0] == np.inf and np.isnan(kernel(-1.0, 1.0)[1])
        assert np.isnan(kernel(-1.0, 1.0)[2]) and kernel(1e4, 1.0)[3] == np.inf
        assert np.isnan(kernel(np.nan, 1.0)[4])


@pytest.mark.thorough
@needs_compiler
def test_slices_and_constants_have_loops_of_their_own() -> None:
    x = sp.symbols("x:60", real=True)
    chain = sp.Add(*[100 * (b - a**2) ** 2 + (1 - a) ** 2 + 1 / (2 + a) - b for a, b in pairwise(x)])
    graph = symad.gradient(chain, x)
    made = plan(graph, [e for o in graph.output_nodes for e in ((o,) if not o.shape else o.args)])
    table, _ = c_interpreter.tables(made.runs)
    kinds = {k for (_, k), code in c_interpreter.codes().items() if code in table[:, 0]}
    assert {("slice", "slice"), ("one", "slice")} <= kinds
    point = np.random.default_rng(3).normal(size=60)
    at = dict(zip(x, point, strict=True))
    expected = [float(chain.diff(s).subs(at)) for s in x]
    assert np.allclose(lower(graph, backend="runs", packed=True)(point), expected, rtol=1e-12)


@needs_compiler
@pytest.mark.parametrize("backend", ["runs", "c"])
def test_sparse_results(backend: str) -> None:
    x = sp.symbols("x:12", real=True)
    f = sp.Add(*[sp.exp(a * b) for a, b in pairwise(x)])
    graph = symad.hessian(f, x, sparse=True)
    point = np.linspace(0.1, 1, 12)
    expected = np.array(sp.hessian(f, x).subs(dict(zip(x, point, strict=True))), dtype=float)
    kernel = lower(graph, backend=backend)
    assert np.allclose(kernel(*point).toarray(), expected, rtol=1e-13)
    assert np.allclose(lower(graph, backend=backend, packed=True)(point).toarray(), expected, rtol=1e-13)
    many = kernel(*np.stack([point, 2 * point], axis=1))
    assert many.shape == (2, 12, 12) and np.allclose(many[0], expected, rtol=1e-13)


@needs_compiler
@pytest.mark.parametrize("backend", ["runs", "c"])
def test_the_numpy_form_is_printed_when_it_is_asked_for(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sp.Symbol("x", real=True)
    with monkeypatch.context() as m:
        m.setattr(lower_numpy, "lower", lambda *_: pytest.fail("nobody asked for it"))
        kernel = lower(symad.trace(sp.sin(x) + x), backend=backend)
        assert kernel(0.5) == pytest.approx(np.sin(0.5) + 0.5, rel=1e-15)
    kernel = lower(symad.trace(sp.sin(x) + x), backend=backend)
    assert "def f(x)" in kernel.source
    with pytest.raises(TypeError, match="f takes 1 value"):
        kernel()


@needs_compiler
def test_threads_do_not_share_values() -> None:
    x = sp.symbols("x:50", real=True)
    gradient = symad.gradient(sp.Add(*[sp.sin(a * b) for a in x for b in x[:5]]), x)
    kernel = lower(gradient, backend="runs", packed=True)
    points = np.random.default_rng(0).normal(size=(4, 50))
    expected = [kernel(p) for p in points]
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(300) if not np.array_equal(kernel(points[k]), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_operations_are_grouped_by_level() -> None:
    x = sp.symbols("x:16", real=True)
    graph = symad.trace(sp.Add(*[a**2 for a in x]))
    made = plan(graph, graph.output_nodes)
    assert [run.function for run in made.runs] == ["multiply", "add", "add", "add", "add"]
    assert [run.count for run in made.runs] == [16, 8, 4, 2, 1]
    assert np.array_equal(made.runs[0].operands[0], np.arange(16))


def test_what_runs_cannot_do() -> None:
    x = sp.Symbol("x", real=True)
    with pytest.raises(LoweringError, match="arrays inside the graph"):
        lower(symad.trace(lambda a: np.sum(a), inputs=[(3,)]), backend="runs")
    with pytest.raises(LoweringError, match="float32"):
        lower(symad.trace(x), backend="runs", dtype="float32")


@pytest.mark.parametrize("backend", ["c", "runs"])
def test_functions_that_c_lacks_go_through_scipy(backend: str) -> None:
    x = sp.Symbol("x", real=True)
    kernel = lower(sp.zeta(x) * sp.sin(x), backend)
    assert kernel(2.0) == pytest.approx(np.pi**2 / 6 * np.sin(2.0), rel=1e-15)
    assert np.allclose(kernel(np.array([2.0, 4.0])), [np.pi**2 / 6, np.pi**4 / 90] * np.sin([2.0, 4.0]))


def test_without_a_compiler_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_runs, "compile_c", lambda *_: None)
    x = sp.Symbol("x", real=True)
    assert lower(symad.trace(sp.sin(x)), backend="runs")(0.5) == np.sin(0.5)


@pytest.mark.parametrize("backend", ["numpy", "runs", "c"])
@pytest.mark.parametrize("packed", [True, False])
def test_bound_calls_read_and_write_arrays_in_place(backend: str, packed: bool) -> None:
    a, b = sp.symbols("a b", real=True)
    kernel = lower(symad.trace((sp.Matrix([[a, b], [a * b, 2]]), a - b)), backend=backend, packed=packed)
    x, y = np.array([2.0, 3.0]), np.zeros(5)
    call = kernel.bind(x, y)
    call()
    assert np.array_equal(y, [2, 3, 6, 2, -1])
    x[:] = 5.0, 1.0
    call()
    assert np.array_equal(y, [5, 1, 5, 2, 4])
    with pytest.raises(TypeError, match="y is float32"):
        kernel.bind(x, np.zeros(5, np.float32))
    if kernel.native is not None:
        with pytest.raises(ValueError, match="x must have 2 elements and y 5, not 2 and 4"):
            kernel.bind(x, np.zeros(4))
    del x, y
    call()  # the arrays live as long as the call


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
def test_dense_hessians_run_in_lanes(mode: str) -> None:
    x = sp.symbols("x:9", real=True)
    hidden = [sp.tanh(sp.Add(*[(k + j) % 3 * a for j, a in enumerate(x)]) / 7) for k in range(4)]
    f = sp.Max(hidden[0], hidden[1]) * sp.exp(hidden[2]) / (2 + hidden[3]) ** 2
    f += sp.sqrt(1 + x[0] ** 2) * x[8]
    point = np.random.default_rng(0).normal(size=9)
    at = dict(zip(x, point, strict=True))
    expected = np.array(sp.hessian(f, x).subs(at).doit().evalf(20), dtype=float)
    graph = symad.hessian(f, x, mode=mode)
    kernel = lower(graph, backend="runs", packed=True)
    assert kernel.native is not None
    assert np.allclose(kernel(point), expected, rtol=1e-12, atol=1e-13)
    plain = lower(graph, backend="runs")
    assert np.allclose(plain(*point), expected, rtol=1e-12, atol=1e-13)
    y = np.zeros(81)
    kernel.bind(point, y)()
    assert np.array_equal(y.reshape(9, 9), kernel(point))
    many = plain(*np.stack([point, 2 * point], axis=1))
    assert many.shape == (2, 9, 9) and np.allclose(many[0], expected, rtol=1e-11, atol=1e-12)


@needs_compiler
def test_scalars_made_of_arrays_are_refused_by_name() -> None:
    """Sums, elements and last states of arrays, beside arrays that could be lanes."""
    x = sp.Symbol("x", real=True)
    lanes = np.arange(3.0)
    for reduced in (np.sum, lambda a: a[1], lambda a: symad.functions.fold(lambda h, u: h * u, a[0], a)):
        graph = symad.trace(lambda x, reduced=reduced: np.sin(reduced(np.exp(x * lanes))) + x, inputs=[x])
        with pytest.raises(LoweringError, match="backend 'runs' takes graphs of scalars"):
            lower(graph, "runs")
