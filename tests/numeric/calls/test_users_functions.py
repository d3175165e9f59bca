"""Functions that users implement, in lowered code and in saved files."""

import math
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.utilities.lambdify import implemented_function

import symad
from symad.errors import LoweringError
from symad.numeric import lower
from tests.numeric.calls.users_module import bump

x, y = sp.symbols("x y", real=True)
CUBE = symad.register_function("cube", lambda t: t**3, [lambda t: 3 * t**2])
BUMP = symad.register_function("bump", bump, [lambda t: 2 * t])
SHIFTED = implemented_function("shifted", np.vectorize(lambda t, k: math.fsum([t, k])))
"""It cannot be traced: it is called as it is."""
BACKENDS = ["graph", "numpy", "plain", "c", "runs"]


def made(graph: Any, backend: str, dtype: str = "float64") -> Any:
    if backend == "graph":
        return graph
    if backend == "plain":
        return lower(graph, dtype=dtype, style="plain")
    return lower(graph, backend, dtype=dtype)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_and_derivatives_of_scalars(backend: str) -> None:
    f = sp.sin(CUBE(x)) * SHIFTED(y, x)
    value = made(symad.trace(f, inputs=[x, y]), backend)
    right = np.sin(0.7**3) * (0.7 + 1.5)
    assert value(0.7, 1.5) == pytest.approx(right, rel=1e-14)
    xs = np.array([0.7, -0.2])
    np.testing.assert_allclose(value(xs, 1.5), np.sin(xs**3) * (xs + 1.5), rtol=1e-14)
    slope = made(symad.gradient(sp.sin(CUBE(x)), x), backend)
    np.testing.assert_allclose(slope(xs), np.cos(xs**3) * 3 * xs**2, rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_derivatives_of_arrays(backend: str, dtype: str) -> None:
    if backend == "runs" or (backend == "graph" and dtype == "float32"):
        return
    graph = symad.trace(lambda a: np.sum(CUBE(a) * BUMP(a)), [(3,)])
    a = np.array([0.5, -1.5, 2.0], dtype=dtype)
    value, slope = made(symad.value_and_gradient(graph), backend, dtype)(a)
    assert value == pytest.approx(float((a**5).sum()), rel=1e-6)
    np.testing.assert_allclose(slope, 5 * a**4, rtol=1e-6)
    assert np.asarray(slope).dtype == dtype


def test_functions_in_loops_and_of_several_arguments() -> None:
    graph = symad.trace(
        lambda h, u: symad.functions.scan(lambda s, v: SHIFTED(s, v) * 0.5 + CUBE(v), h, u), [(), (4,)]
    )
    u = np.array([0.3, -0.4, 1.0, 0.2])
    want, h = [], 0.1
    for v in u:
        h = (h + v) * 0.5 + v**3
        want.append(h)
    for backend in ("graph", "numpy", "plain", "c"):
        np.testing.assert_allclose(made(graph, backend)(0.1, u), want, rtol=1e-13)


def test_two_functions_of_one_name_are_two() -> None:
    one, two = (symad.register_function("same", f) for f in (lambda t: t + 1, lambda t: t * 10))
    kernels = [lower(symad.trace(head(x))) for head in (one, two)]
    assert [k(2.0) for k in kernels] == [3.0, 20.0]
    assert lower(symad.trace(one(x) + two(x)))(2.0) == 23.0


def test_inputs_may_have_the_names_that_the_code_uses() -> None:
    for name in ("cube", "CALLS", "elementwise", "tests", "values"):
        s = sp.Symbol(name, real=True)
        assert lower(symad.trace(CUBE(s) + BUMP(s) + s))(2.0) == 14.0
        graph = symad.trace(lambda a: CUBE(a) + BUMP(a) + a, [sp.MatrixSymbol(name, 2, 1)])
        assert lower(graph)(np.full((2, 1), 2.0)).tolist() == [[14.0], [14.0]]


def test_results_are_new_arrays_of_their_type() -> None:
    same = symad.register_function("same_array", lambda t: t)
    whole = symad.register_function("whole", lambda t: np.ones(np.shape(t), dtype=int))
    for backend in ("graph", "numpy", "plain", "c"):
        a = np.array([1.0, 2.0])
        result = made(symad.trace(lambda a: same(a), [(2,)]), backend)(a)
        assert not np.shares_memory(a, result)
        ones = made(symad.trace(lambda a: whole(a), [(2,)]), backend)(a)
        assert ones.dtype == np.float64


def test_functions_that_are_not_elementwise_are_refused_by_name() -> None:
    total = symad.register_function("total", lambda t: np.sum(t))
    floats = symad.register_function("only_floats", lambda t: float(t) + 1)
    phase = symad.register_function("phase", lambda t: np.exp(1j * t))
    a = np.array([1.0, 2.0])
    for backend in ("graph", "numpy", "plain", "c"):
        with pytest.raises(ValueError, match=r"total .* elementwise: of shape \(2,\) it makes \(\)"):
            made(symad.trace(lambda a: total(a), [(2,)]), backend)(a)
        with pytest.raises(TypeError, match=r"only_floats .* numpy\.vectorize"):
            made(symad.trace(lambda a: floats(a), [(2,)]), backend)(a)
        with pytest.raises(TypeError, match="phase has to return real numbers, not complex128"):
            made(symad.trace(lambda a: phase(a), [(2,)]), backend)(a)
        assert made(symad.trace(floats(x)), backend)(1.5) == 2.5


def test_a_gpu_refuses_by_name() -> None:
    with pytest.raises(LoweringError, match="cube has no CUDA or CuPy form"):
        lower(symad.trace(lambda a: CUBE(a), [(3,)]), "cupy")


def test_a_function_that_nobody_implements_is_refused_by_name() -> None:
    class nobody(sp.Function):
        pass

    for style in ("fast", "plain"):
        with pytest.raises(LoweringError, match=r"nobody has no NumPy or SciPy form.*register_function"):
            lower(symad.trace(nobody(x), inputs=[x]), style=style)


@pytest.mark.thorough
@pytest.mark.parametrize("style", ["fast", "plain"])
def test_a_saved_file_imports_the_function(tmp_path: pathlib.Path, style: str) -> None:
    for k, graph in enumerate([symad.trace(BUMP(x)), symad.trace(lambda a: BUMP(a), [(3,)])]):
        path = tmp_path / f"saved{k}.py"
        lower(graph, style=style).save(path)
        assert "import tests.numeric.calls.users_module" in path.read_text()
        call = "3.0" if k == 0 else "[3.0, 3.0, 3.0]"
        code = f"import saved{k}; print(list(vars(saved{k}).values())[-1]({call}))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": f"{tmp_path}:{pathlib.Path(__file__).parents[3]}"},
        )
        assert done.stdout.split()[0].strip("[") in ("9.0", "9."), done.stderr


@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "runs"])
def test_a_file_cannot_hold_a_function_without_a_module(tmp_path: pathlib.Path, backend: str) -> None:
    body = symad.trace(lambda h, u: symad.functions.fold(lambda s, v: s + CUBE(v), h, u), [(), (4,)])
    for graph in (symad.trace(CUBE(x)), symad.trace(SHIFTED(x, y)), body):
        if backend == "runs" and graph is body:
            continue
        with pytest.raises(LoweringError, match=r"kernel\.py: the function (cube|shifted) .* no module"):
            made(graph, backend).save(tmp_path / "kernel.py")
    assert not (tmp_path / "kernel.py").exists()


def test_kernels_of_registered_functions_are_pickled_by_name() -> None:
    kernel = lower(symad.trace(CUBE(x)))
    assert pickle.loads(pickle.dumps(kernel))(2.0) == 8.0
