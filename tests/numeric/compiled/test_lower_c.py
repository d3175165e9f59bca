"""Compiled scalar code against the graph at high precision, against NumPy code, and on its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler import c_compiler
from symad.numeric.scalars import lower_c

pytestmark = pytest.mark.skipif(c_compiler.compiler() is None, reason="no C compiler on this machine")

x, y, z = sp.symbols("x y z", real=True)

MAIN = """\
#include <stdio.h>
#include "model.h"
int main(void) {
    double x[2] = {0.5, 2}, y[2];
    MODEL(x, y);
    printf("%.17g %.17g", y[0], y[1]);
    return 0;
}
"""
EXPRESSIONS = [
    x * y / z - x**3 + 2 * z,
    sp.sin(x) * sp.exp(-y / 3) + sp.sqrt(x**2 + y**2) + sp.log(1 + z),
    sp.Piecewise((x**2, x > y), (sp.sin(z), sp.And(y > 0, z > 0)), (y, True)),
    sp.Max(x, y, z) - sp.Min(x, y) + sp.Abs(x - y) * sp.sign(z),
    sp.erf(x) + sp.gamma(y) + sp.loggamma(z + 1) + sp.atan2(x, y),
    sp.floor(3 * x) + sp.ceiling(y) + sp.Heaviside(z) + sp.Mod(x, 1) + x**y,
    1 / (1 + sp.exp(-x)) + sp.log(sp.exp(x) + sp.exp(y)),
]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("derived", [symad.trace, symad.gradient, symad.hessian])
def test_compiled_code_equals_high_precision(e: sp.Expr, derived: object) -> None:
    graph = derived(symad.trace(e, (x, y, z)))  # type: ignore[operator]
    try:
        kernel = lower(graph, backend="c")
    except symad.errors.LoweringError as error:
        assert "not in C's math.h" in str(error)  # the derivatives of gamma
        assert e.has(sp.gamma)
        return
    rows = np.random.default_rng(1).uniform(0.2, 1.9, size=(4, 3))
    for row in rows:
        with mpmath.workdps(40):
            expected = np.array(graph(*[mpmath.mpf(v) for v in row]), dtype=float)
        assert np.allclose(np.array(kernel(*row)), expected, rtol=1e-12, atol=1e-14)
    batch = kernel(*rows.T)
    assert np.allclose(np.array(batch), np.array(lower(graph)(*rows.T)), rtol=1e-12, atol=1e-14)


def test_semantics_are_ieee() -> None:
    assert lower(1 / x, backend="c")(0.0) == np.inf
    assert np.isnan(lower(sp.log(x), backend="c")(-1.0))
    assert np.isnan(lower(sp.Max(x, 1.0), backend="c")(np.nan))
    assert lower(sp.sign(x), backend="c")(0.0) == 0.0


@pytest.mark.thorough
def test_long_programs_are_cut() -> None:
    f = x
    with sp.evaluate(False):
        for k in range(3000):
            f = sp.Add(sp.sin(f, evaluate=False), sp.Rational(1, k + 2), evaluate=False)
    kernel = lower(f + sp.cos(x), backend="c")
    assert kernel.c_source.count("static void part_") >= 6
    assert kernel(0.3) == pytest.approx(lower(f + sp.cos(x))(0.3), rel=1e-13)


def test_equal_functions_on_a_level_are_evaluated_together() -> None:
    xs = sp.symbols("x0:11")
    f = sp.Add(*[sp.tanh(k * s) + sp.exp(-s) / (k + 2) + sp.log(3 + s) * sp.sin(s) for k, s in enumerate(xs)])
    graph = symad.gradient(symad.trace(f, xs))
    kernel = lower(graph, backend="c", packed=True)
    assert {"sech_all(", "exp_all(", "sin_all(", "log_all("} <= set(re.findall(r"\w+_all\(", kernel.c_source))
    point = np.linspace(-1, 1.5, 11)
    point[4] = 1e9  # where sin needs more digits of π
    with mpmath.workdps(40):
        expected = np.array(graph(*[mpmath.mpf(v) for v in point]), dtype=float)
    assert np.allclose(kernel(point), expected, rtol=1e-12, atol=1e-14)


def test_above_the_limit_the_kernel_for_all_functions_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_c, "MAX_OPERATIONS", 10)
    monkeypatch.setattr(lower_c, "compile_c", None)
    f = sp.Add(*[sp.sin(k * x) for k in range(1, 30)])
    kernel = lower(f, backend="c")
    assert kernel(0.3) == pytest.approx(float(f.subs(x, 0.3)), rel=1e-14)
    assert "sin_all(" in kernel.c_source and kernel.native is not None


def test_packed_and_structures() -> None:
    xs = sp.symbols("x0:30")
    gradient = symad.gradient(sp.Add(*[s**2 for s in xs]), xs)
    assert np.array_equal(lower(gradient, backend="c", packed=True)(np.arange(30.0)), 2 * np.arange(30.0))
    value = lower({"a": x, "m": sp.Matrix([[x, y], [1, 0]])}, backend="c")(2.0, 3.0)
    assert value["a"] == 2.0
    assert np.array_equal(value["m"], [[2, 3], [1, 0]])


def test_the_c_file_stands_alone(tmp_path: Path) -> None:
    kernel = lower(symad.gradient(sp.exp(x) * y, (x, y)), backend="c")
    kernel.save(tmp_path / "model.c")
    kernel.save(tmp_path / "model.h")
    name = kernel.c_header.split("void ")[1].split("(")[0]
    (tmp_path / "main.c").write_text(MAIN.replace("MODEL", name))
    cc = c_compiler.compiler()
    assert cc is not None
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*cc, *flags, "main.c", "model.c", "-o", "run", "-lm"], cwd=tmp_path, check=True)
    out = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout
    assert [float(v) for v in out.split()] == pytest.approx([2 * np.exp(0.5), np.exp(0.5)], rel=1e-15)


def test_the_header_says_where_everything_stands() -> None:
    rough = sp.Symbol("a*/b/*", real=True)
    model = {"loss": rough * x, "grid": sp.Matrix([[x, 1], [rough, 0]])}
    header = lower(model, backend="c").c_header
    assert "_INPUTS 2\n" in header and "_OUTPUTS 5\n" in header
    assert "y[0] = output 1: loss\n" in header
    assert "y[1..4] = output 2: grid, shape (2, 2), row by row" in header
    slopes = lower(symad.value_and_gradient(x**2 * y, (x, y)), backend="c").c_header
    assert "y[1] = output 2: x_bar\n   y[2] = output 3: y_bar\n" in slopes
    assert "y[0] = output 1\n" in lower((x, y), backend="c").c_header
    assert header.count("*/") == header.count("/*") == 5
    sparse = lower(symad.hessian(x**2 + y**2, (x, y), sparse=True), backend="c").c_header
    assert "y[0..1] = output 1, the stored entries of a sparse matrix (2, 2), row by row" in sparse


def test_a_program_in_another_language_links_with_the_file(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    kernel = lower(symad.gradient(sp.exp(x) * y, (x, y)), backend="c")
    kernel.save(tmp_path / "model.c")
    kernel.save(tmp_path / "model.h")
    name = kernel.c_header.split("void ")[1].split("(")[0]
    size = f"{name.upper()}_OUTPUTS"
    (tmp_path / "main.cpp").write_text(
        f'#include <cstdio>\n#include "model.h"\nint main() {{ double x[] = {{0.5, 2.0}}, y[{size}]; '
        f'{name}(x, y); for (double v : y) std::printf("%.17g ", v); }}'
    )
    cc = c_compiler.compiler()
    assert cc is not None
    subprocess.run([*cc, "-std=c99", "-c", "model.c"], cwd=tmp_path, check=True)
    link = ["g++", "-Wall", "-Werror", "main.cpp", "model.o", "-o", "run", "-lm"]
    subprocess.run(link, cwd=tmp_path, check=True)
    out = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout
    assert [float(v) for v in out.split()] == pytest.approx([2 * np.exp(0.5), np.exp(0.5)], rel=1e-15)


def test_without_a_compiler_numpy_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    c_compiler.compiler.cache_clear()
    try:
        with pytest.warns(UserWarning, match="no C compiler"):
            kernel = lower(x**2, backend="c")
        assert kernel(3.0) == 9.0
        assert "x[0]*x[0]" in kernel.c_source
    finally:
        c_compiler.compiler.cache_clear()


def test_scalars_in_single_precision_are_refused_with_the_way_out() -> None:
    with pytest.raises(symad.errors.LoweringError, match="backend='numpy'"):
        lower(x**2, backend="c", dtype="float32")


def test_a_compiler_without_this_processors_options_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compiler, "NATIVE", ("-march=no_such_processor",))
    c_compiler.native_options.cache_clear()
    try:
        assert c_compiler.native_options() == ()
        assert lower(sp.tanh(x) + 3, backend="c")(0.0) == 3.0
    finally:
        c_compiler.native_options.cache_clear()


def test_the_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_CACHE", str(tmp_path))
    lower(sp.sin(x) + 17, backend="c")
    made = sorted(tmp_path.iterdir())
    stamp = made[0].stat().st_mtime_ns
    assert lower(sp.sin(x) + 17, backend="c")(0.0) == 17.0
    assert sorted(tmp_path.iterdir()) == made
    assert made[0].stat().st_mtime_ns == stamp
