"""C that stands alone: compiled with all warnings as errors, called from C, C++ and Python."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.special import expit

import symad
from symad import functions
from symad.core.graph import Graph, TupleOf
from symad.errors import LoweringError
from symad.models.sequences.lstm import LSTM
from symad.models.transformers.attention import attention, causal_mask
from symad.numeric import c_file, lower
from symad.numeric.compiler import c_compiler
from symad.numeric.standalone_c import CFile
from symad.numeric.targets.c_functions import SCALAR_C
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import dimension, input_node
from symad.ops.elementwise.apply import apply

pytestmark = pytest.mark.skipif(c_compiler.compiler() is None, reason="no C compiler on this machine")

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)


def compiled(made: CFile, folder: Path, *flags: str) -> Any:
    """The library of a file, in a folder of its own: a library that is loaded is not read again."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    made.save(folder / "model.c")
    cc = c_compiler.compiler()
    assert cc is not None
    command = [*cc, *STRICT, *flags, "-shared", "-fPIC", "model.c", "-o", "model.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "model.so"))


def flat(results: Any) -> Any:
    """All numbers of some results, row by row; of sparse matrices those that are stored."""
    if isinstance(results, (tuple, list)):
        return np.concatenate([flat(r) for r in results])
    if isinstance(results, dict):
        return flat(tuple(results.values()))
    return np.ravel(results.data if hasattr(results, "indptr") else np.asarray(results, dtype=float))


def called(made: CFile, folder: Path, values: Sequence[Any]) -> Any:
    """The numbers that a file computes."""
    library = compiled(made, folder)
    given = flat(tuple(values))
    found = np.full(int(constants(made)[f"{made.name.upper()}_OUTPUTS"]), np.nan)
    assert constants(made)[f"{made.name.upper()}_INPUTS"] == len(given)
    getattr(library, made.name)(*(a.ctypes.data_as(ctypes.c_void_p) for a in (given, found)))
    return found


def constants(made: CFile) -> dict[str, int]:
    """What the header defines."""
    return {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)", made.header)}


def agrees(graph: Graph, folder: Path, values: Sequence[Any], tolerance: float = 1e-12) -> None:
    """The file against the graph."""
    found, expected = called(c_file(graph), folder, values), flat(graph(*values))
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()))


def draw(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape) for shape in shapes]


# ---- models ---------------------------------------------------------------------------------------


def layer(W: Any, b: Any, X: Any) -> Any:
    return np.sum(np.tanh(X @ W + b))


def cell(W: Any, U: Any, xs: Any) -> Any:
    return np.sum(functions.scan(lambda h, u: np.tanh(W @ h + U @ u), np.zeros(3), xs)[-1] ** 2)


def attended(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / np.sqrt(3.0)
    weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return np.sum((weights / np.sum(weights, axis=1, keepdims=True)) @ v)


def logistic(w: Any, X: Any, t: Any) -> Any:
    z = X @ w
    return np.sum(np.log(1 + np.exp(z)) - t * z)


def pieces(u: Any) -> Any:
    return np.sum(np.where(u > 0, u**2, np.where(u > -1, np.sin(u), -1.0)) + np.maximum(u, 0.5))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "layer": (layer, [(4, 3), (3,), (5, 4)]),
    "recurrent": (cell, [(3, 3), (3, 2), (5, 2)]),
    "attention": (attended, [(4, 3), (4, 3), (4, 3)]),
    "fused attention": (lambda q, k, v: np.sum(functions.attention(q, k, v) ** 2), [(4, 3), (4, 3), (4, 3)]),
    "solve": (lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), [(4, 4), (4,)]),
    "logistic regression": (logistic, [(3,), (6, 3), (6,)]),
    "pieces": (pieces, [(6,)]),
    "determinants": (lambda a: np.linalg.slogdet(a)[1] + np.linalg.det(a), [(3, 3)]),
    "cholesky": (lambda a: np.sum(np.linalg.cholesky(a @ a.T + np.eye(3))), [(3, 3)]),
    "sorted": (lambda u: np.sum(np.sort(u) ** 3 * np.arange(5)) + np.median(u), [(5,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name: str, tmp_path: Path) -> None:
    f, shapes = CASES[name]
    agrees(symad.value_and_gradient(symad.trace(f, inputs=shapes)), tmp_path, draw(*shapes))


@pytest.mark.thorough
def test_a_long_short_term_memory(tmp_path: Path) -> None:
    model = LSTM(2, 3, 1)
    graph = symad.trace(model.loss, inputs=[model.shapes, (5, 2), (5, 1)]).ungrouped()
    values = draw(*(node.shape for node in graph.input_nodes))
    agrees(symad.value_and_gradient(graph), tmp_path, values)


@pytest.mark.thorough
def test_the_jacobian_of_a_pendulum_of_three_links(tmp_path: Path) -> None:
    q = sp.Matrix(sp.symbols("q1:4"))
    tip = sp.Matrix([sum(map(sp.cos, q[:])), sum(map(sp.sin, q[:]))])
    mass = sp.Matrix(3, 3, lambda i, j: (3 - max(i, j)) * sp.cos(q[i] - q[j]))
    rates = mass.LUsolve(sp.Matrix([(3 - i) * sp.sin(q[i]) for i in range(3)]))
    for expression in (tip, rates):
        exact = sp.lambdify(list(q), expression.jacobian(q), "mpmath")
        found = called(c_file(symad.jacobian(expression, q)), tmp_path, [0.3, -0.5, 1.1])
        assert np.allclose(found, np.array(exact(0.3, -0.5, 1.1).tolist(), float).ravel(), rtol=1e-12)


@pytest.mark.thorough
def test_classes_are_integers(tmp_path: Path) -> None:
    def cross_entropy(W: Any, X: Any, labels: Any) -> Any:
        z = X @ W
        shift = np.max(z, axis=1, keepdims=True)
        total = np.log(np.sum(np.exp(z - shift), axis=1)) + shift[:, 0]
        return np.sum(total - z[np.arange(4), labels])

    graph = symad.trace(cross_entropy, inputs=[(3, 5), (4, 3), (4,)])
    W, X, _ = draw((3, 5), (4, 3), (4,))
    labels = np.array([4, 0, 2, 2])
    gradient = symad.value_and_gradient(graph, wrt="W")
    agrees(gradient, tmp_path, [W, X, labels])
    z = X @ W
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = X.T @ (p - np.eye(5)[labels])
    assert np.allclose(called(c_file(gradient), tmp_path, [W, X, labels])[1:], expected.ravel(), rtol=1e-12)


def test_stable_forms_are_those_of_arrays(tmp_path: Path) -> None:
    graph = symad.gradient(symad.trace(logistic, inputs=[(2,), (1, 2), (1,)]), wrt="w")
    found = called(c_file(graph), tmp_path, [[500.0, 500.0], [[1.0, 1.0]], [1.0]])
    assert np.allclose(found, expit(1000.0) - 1, atol=0)


def test_heads_of_masked_attention(tmp_path: Path) -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return np.sum(attention(q, k, v, causal_mask(3)) ** 2)

    shapes = [(2, 3, 2)] * 3
    agrees(symad.value_and_gradient(symad.trace(loss, inputs=shapes)), tmp_path, draw(*shapes))


# ---- the header -----------------------------------------------------------------------------------


def test_the_header_holds_sizes_and_the_layout() -> None:
    k = sp.Symbol("k", integer=True)
    W = sp.MatrixSymbol("W", n, 2)
    made = c_file({"norm": sp.Trace(W.T * W) * k, "new": 3 * W}, sizes={"n": 3}, inputs=[W, k])
    prefix = made.name.upper()
    assert constants(made) == {
        f"{prefix}_INPUTS": 7, f"{prefix}_OUTPUTS": 7, f"{prefix}_SIZE_W": 6, f"{prefix}_SIZE_NEW_2": 6,
        f"{prefix}_DIM_N": 3,
    }  # fmt: skip
    lines = made.header.splitlines()
    for line in (
        "   n = 3",
        "   x[0..5] = W, shape (3, 2), row by row",
        "   x[6] = k, an integer",
        "   y[0] = output 1: norm",
        "   y[1..6] = output 2: new, shape (3, 2), row by row",
        "    const double *W,  /* (3, 2) */",
        "    double k,",
        "    double *norm,",
        "    double *new_2  /* new (3, 2) */",  # new is a word of C++
    ):
        assert line in lines
    assert "f: x[7] -> y[7]" in made.source and "Inputs in order: W (3, 2), k\n" in made.source


def test_the_derivatives_have_their_names() -> None:
    θ = sp.MatrixSymbol("θ", n, 1)
    header = c_file(symad.value_and_gradient(sp.Trace(θ.T * θ)), sizes={n: 2}).header
    assert "y[1..2] = output 2: θ_bar, shape (2, 1), row by row" in header
    assert "double *theta_bar  /* (2, 1) */" in header


@pytest.mark.parametrize("language", ["c", "c++"])
def test_programs_call_it_with_a_parameter_for_each_array(language: str, tmp_path: Path) -> None:
    if language == "c++" and shutil.which("g++") is None:
        pytest.skip("no g++")
    made = c_file(symad.value_and_gradient(symad.trace(layer, inputs=[(2, 1), (1,), (3, 2)]), wrt=["W", "b"]))
    made.save(tmp_path / "model.c")
    name, prefix = made.name, made.name.upper()
    (tmp_path / f"main.{'c' if language == 'c' else 'cpp'}").write_text(
        f"""\
#include <stdio.h>
#include "model.h"
int main(void) {{
    const double W[{prefix}_SIZE_W] = {{0.5, -1}}, b[{prefix}_SIZE_B] = {{0.25}};
    const double X[{prefix}_SIZE_X] = {{1, 2, 3, 4, 5, 6}};
    double value, W_bar[{prefix}_SIZE_W_BAR], b_bar[{prefix}_SIZE_B_BAR];
    {name}_args(W, b, X, &value, W_bar, b_bar);
    printf("%.17g %.17g %.17g %.17g", value, W_bar[0], W_bar[1], b_bar[0]);
    return 0;
}}
"""
    )
    cc = c_compiler.compiler()
    assert cc is not None
    subprocess.run([*cc, *STRICT, "-c", "model.c"], cwd=tmp_path, check=True)
    strict = [*cc, *STRICT, "main.c"] if language == "c" else ["g++", *STRICT[1:], "main.cpp"]
    subprocess.run([*strict, "model.o", "-o", "run", "-lm"], cwd=tmp_path, check=True)
    out = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout
    X = np.arange(1.0, 7.0).reshape(3, 2)
    z = X @ [0.5, -1] + 0.25
    slope = 1 - np.tanh(z) ** 2
    assert [float(v) for v in out.split()] == pytest.approx([np.tanh(z).sum(), *(slope @ X), slope.sum()])


def linked(folder: Path, language: str, files: Sequence[CFile], main: str) -> str:
    """What a program prints that includes the headers of some files, c0.h, c1.h, ..., and calls them."""
    if language == "c++" and shutil.which("g++") is None:
        pytest.skip("no g++")
    cc = c_compiler.compiler()
    assert cc is not None
    objects = []
    for k, made in enumerate(files):
        made.save(folder / f"c{k}.c")
        subprocess.run([*cc, *STRICT, "-c", f"c{k}.c"], cwd=folder, check=True)
        objects.append(f"c{k}.o")
    includes = "".join(f'#include "c{k}.h"\n' for k in [*range(len(files)), 0])  # one of them twice
    text = f"#include <stdio.h>\n{includes}int main(void) {{\n{main}\nreturn 0;\n}}\n"
    source = folder / f"main.{'c' if language == 'c' else 'cpp'}"
    source.write_text(text)
    strict = [*cc, *STRICT] if language == "c" else ["g++", *STRICT[1:]]
    command = [*strict, source.name, *objects, "-o", "run", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return subprocess.run([str(folder / "run")], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("language", ["c", "c++"])
def test_two_files_of_one_program(language: str, tmp_path: Path) -> None:
    """Each has its name from the user, and its own sizes; the names of variants and parts follow."""
    z = sp.Symbol("z", real=True)
    files = [
        c_file(symad.gradient(x * y), name="force"),
        c_file(symad.gradient(x * sp.sin(y) * z), inputs=None, name="stiffness"),
    ]
    main = """\
    const double at[STIFFNESS_INPUTS] = {2, 0.5, 3};
    double f[FORCE_OUTPUTS], k[STIFFNESS_OUTPUTS];
    force(at, f); stiffness_batch(at, k, 1);
    printf("%d %d %.17g %.17g", FORCE_INPUTS, STIFFNESS_INPUTS, f[0], k[2]);"""
    out = linked(tmp_path, language, files, main).split()
    assert out[:2] == ["2", "3"] and float(out[2]) == 0.5
    assert float(out[3]) == pytest.approx(2 * np.sin(0.5), rel=1e-15)


def test_two_files_of_one_name_are_an_error_that_says_so(tmp_path: Path) -> None:
    """The second header would give the sizes of the first."""
    files = [c_file(symad.gradient(x * y)), c_file(symad.gradient(x * sp.sin(y) * sp.Symbol("z")))]
    told = linked(tmp_path, "c", files, "")
    assert re.search(r'error.*another function has the name symad_f_gradient.*name="', told)


@pytest.mark.parametrize("grouped", [[x, y], sp.Matrix([x, y])])
def test_a_vector_of_inputs_is_one_parameter(grouped: Any, tmp_path: Path) -> None:
    z = sp.Symbol("z", real=True)
    made = c_file(symad.gradient(x**2 * y * z, inputs={"q": grouped, "z": z}), name="slope")
    assert re.search(r"    const double \*q,  .*\n    double z,\n    double \*q_bar", made.header)
    main = """\
    const double q[SLOPE_SIZE_Q] = {3, 5};
    double q_bar[SLOPE_SIZE_Q_BAR], z_bar;
    slope_args(q, 7, q_bar, &z_bar);
    printf("%g %g %g", q_bar[0], q_bar[1], z_bar);"""
    assert linked(tmp_path, "c", [made], main).split() == ["210", "63", "45"]
    kernel = lower(symad.gradient(x**2 * y * z, inputs={"q": grouped, "z": z}), "c")
    assert "const double *q," in kernel.c_header


def test_vectors_of_many_inputs_have_parameters() -> None:
    xs = sp.symbols("x0:300")
    header = c_file(sp.Add(*xs), inputs={"state": xs}).header
    assert "_args(\n    const double *state,  /* (300,) */" in header


NO_NAMES = ["", "2x", "a b", "é", "double", "class", "exp", "gamma", "x", "f_", "_f", 3, "a;b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_c_does_not_take_are_refused(name: Any) -> None:
    with pytest.raises(LoweringError, match="name="):
        c_file(x + y, name=name)


def test_kernels_have_the_name_that_they_are_given() -> None:
    for backend, style in (("numpy", "fast"), ("numpy", "plain"), ("c", "fast"), ("runs", "fast")):
        kernel = lower(x * y, backend, style=style, name="area")
        assert kernel.name == "area" and kernel(2.0, 3.0) == 6.0 and "def area(x, y)" in kernel.source
    assert "void symad_area(" in lower(x * y, "c", name="area").c_source
    for name in ("", "a b", "class", "x+y", 3):
        with pytest.raises(LoweringError, match="name="):
            lower(x * y, name=name)  # type: ignore[arg-type]


def test_many_points_are_computed_at_once(tmp_path: Path) -> None:
    made = c_file(symad.trace(lambda A, v: A @ v, inputs=[(2, 2), (2,)]))
    library = compiled(made, tmp_path)
    given = np.random.default_rng(0).normal(size=(5, 6))
    found = np.empty((5, 2))
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (given, found)]
    getattr(library, f"{made.name}_batch")(*pointers, ctypes.c_size_t(5))
    assert np.allclose(found, np.einsum("pij,pj->pi", given[:, :4].reshape(5, 2, 2), given[:, 4:]))


def test_arrays_without_elements_and_results_that_are_numbers(tmp_path: Path) -> None:
    graph = symad.trace(lambda a, u: (np.sum(a), 2 * a, np.eye(2), u), inputs=[(0, 3), ()])
    assert np.array_equal(called(c_file(graph), tmp_path, [np.ones((0, 3)), 5.0]), [0, 1, 0, 0, 1, 5])


def test_parameters_are_called_what_the_user_calls_them(tmp_path: Path) -> None:
    names = sp.symbols("x y given found lambda class memcpy w[0]", real=True)
    graph = symad.trace(sp.Add(*[k * s**2 for k, s in enumerate(names)]), inputs=list(names))
    made = c_file(symad.value_and_gradient(graph))
    parameters = re.findall(r"double \*?(\w+)[,\n]", made.header.partition("_args(")[2])
    assert parameters[:8] == ["x", "y", "given", "found", "lambda_", "class_", "memcpy_2", "w_0"]
    assert parameters[8:11] == ["f", "x_bar", "y_bar"]
    library = compiled(made, tmp_path)
    results = (ctypes.c_double * 9)()
    addresses = [ctypes.byref(results, 8 * k) for k in range(9)]
    getattr(library, f"{made.name}_args")(*map(ctypes.c_double, range(8)), *addresses)
    assert list(results) == [sum(k**3 for k in range(8)), *(2.0 * k * k for k in range(8))]


@pytest.mark.thorough
def test_all_functions_compile_without_a_warning(tmp_path: Path) -> None:
    of_two = {"atan2", "hypot", "Max", "Min", "Heaviside", "Mod", "logaddexp", "jn", "xlogy"}
    inputs = [input_node(s) for s in sp.symbols("x0:10", real=True)]
    heads = sorted({*SCALAR_C.functions, *SCALAR_C.forms}, key=str)
    made = [apply(h, inputs[0], inputs[1]) for h in heads if h.__name__ in of_two]
    made += [apply(h, node) for h in heads if h.__name__ not in of_two for node in inputs]  # packs, too
    file = c_file(Graph(tuple(inputs), tuple(made), TupleOf((None,) * len(made))))
    assert file.source.count("_all(p") > 5 and len(heads) > 50
    compiled(file, tmp_path)
    compiled(file, tmp_path, "-O2")


def test_functions_of_many_inputs_have_no_parameters() -> None:
    """Compilers need not take more than 127."""
    xs = sp.symbols("x0:127")
    assert "_args(" in c_file(sp.Add(*xs[:126])).source
    assert "_args(" not in c_file(sp.Add(*xs)).source + c_file(sp.Add(*xs)).header


# ---- what is missing ------------------------------------------------------------------------------


def test_open_sizes_are_named() -> None:
    A = sp.MatrixSymbol("A", n, n)
    graph = symad.trace(sp.Trace(A * A))
    with pytest.raises(LoweringError, match=r"leaves n open; give c_file\(f, sizes=.*--sizes n=4"):
        c_file(graph)
    with pytest.raises(LoweringError, match="has no size m; its symbolic sizes: n"):
        c_file(graph, sizes={"m": 3, "n": 4})
    differences = symad.trace(lambda u: np.sum(u[2:] - u[:-2]), inputs=[(n,)])
    with pytest.raises(LoweringError, match="no value at n = 1: n - 2 is negative"):
        c_file(differences, sizes={"n": 1})


def open_size(of: Any) -> Graph:
    """x times a size that no input has."""
    u = input_node(x)
    return Graph((u,), (mul(u, dimension(of)),))


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_a_size_of_no_input_is_an_error_that_names_it(backend: str) -> None:
    graph = open_size(2 * n)
    with pytest.raises(LoweringError, match=r"depends on the size n, .* f.at\(\{n: 4\}\)"):
        lower(graph, backend=backend)
    assert lower(graph.at({n: 3}), backend=backend)(5.0) == 30.0
    with pytest.raises(symad.errors.EvaluationError, match=r"the size 2\*n is not fixed"):
        graph(5.0)
    assert "x[0]" in c_file(graph, sizes={"n": 3}).source


def test_functions_that_c_lacks_are_named() -> None:
    v = sp.MatrixSymbol("v", 2, 1)
    with pytest.raises(LoweringError, match=r"besselj is not in C's math\.h"):
        c_file(v.applyfunc(lambda u: sp.besselj(1, u)))


# ---- kernels --------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_kernels_of_arrays_are_saved_as_c(tmp_path: Path) -> None:
    graph = symad.trace(layer, inputs=[(4, 3), (3,), (5, 4)])
    kernel = lower(graph, backend="c")
    kernel.save(tmp_path / "f.c")
    kernel.save(tmp_path / "f.h")
    made = c_file(graph)
    assert ((tmp_path / "f.c").read_text(), (tmp_path / "f.h").read_text()) == (made.source, made.header)
    with pytest.raises(LoweringError, match="is in float64, but layer is in float32"):
        lower(graph, backend="c", dtype="float32").save(tmp_path / "g.c")
    with pytest.raises(LoweringError, match="backend='c' prints C"):
        lower(graph).save(tmp_path / "g.c")
    with pytest.raises(LoweringError, match=r"ends in \.c"):
        made.save(tmp_path / "g.txt")
    with pytest.raises(LoweringError, match="leaves n open"):
        lower(sp.MatrixSymbol("A", n, n) * 2, backend="c").save(tmp_path / "g.c")


def test_what_is_logged() -> None:
    told: list[str] = []
    c_file(symad.trace(layer, inputs=[(4, 3), (3,), (5, 4)]), log=told.append)
    assert any(line.startswith("scalars: ") for line in told) and any("statements" in line for line in told)


@pytest.mark.slow
def test_a_function_at_the_limit_compiles(tmp_path: Path) -> None:
    """About 80,000 operations."""
    graph = symad.trace(lambda a, b: np.sum(np.tanh(a @ b)), inputs=[(34, 34), (34, 34)])
    a, b = draw((34, 34), (34, 34))
    found = called(c_file(graph), tmp_path, [a / 30, b])
    assert found[0] == pytest.approx(np.tanh(a / 30 @ b).sum(), rel=1e-10)
