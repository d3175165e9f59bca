"""Names of symbols, dimensions and functions are text in generated code and never run as code."""

import ast
import re

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph
from symad.numeric import lower

HOSTILE = [
    '"""\n    boom()\n    """', "'''\nboom()\n'''", '\\"""+boom()+"""', "x; boom()", "x\nboom()", "boom()#",
    "__import__('os')", "*/ int boom(void); /*", "{boom()}", "%s", "lambda", "a b", "", "\\", "\u202e",
    "numpy", "np", "\x00",
]  # fmt: skip
BACKENDS = ["numpy", "c", "runs", "cupy"]


def calls_and_imports(source):
    """The names that a module calls and the modules that it imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def texts(source):
    """The strings of a module, without the comments of C."""
    strings = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    return [re.sub(r"/\*.*?\*/|//[^\n]*", "", s, flags=re.DOTALL) for s in strings if isinstance(s, str)]


def graphs(name):
    """A scalar, a matrix, a dimension and a function of a name, with points and gradients."""
    x = sp.Symbol(name, real=True)
    matrix = sp.MatrixSymbol(name, 2, 2)
    n, i = sp.Symbol(name, integer=True, positive=True), sp.Symbol("i", integer=True)
    u = sp.IndexedBase("u", shape=(n,))
    square = np.arange(4.0).reshape(2, 2)
    named = symad.trace(lambda x: np.sum(x**2), [(3,)])
    titled = Graph(named.input_nodes, named.output_nodes, named.structure, name)
    return [
        (symad.gradient(x**2 * sp.sin(x), x), 0.5, 2 * 0.5 * np.sin(0.5) + 0.25 * np.cos(0.5)),
        (symad.gradient(sp.Trace(matrix.T * matrix), matrix), square, 2 * square),
        (symad.gradient(sp.Sum(u[i] ** 2, (i, 0, n - 1)), u), np.arange(3.0), 2 * np.arange(3.0)),
        (symad.gradient(titled, wrt=0), np.arange(3.0), 2 * np.arange(3.0)),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name, backend):
    cases = graphs(name)
    for graph, point, expected in cases[:1] if backend == "runs" else cases:  # which takes scalars only
        kernel = lower(graph, backend=backend)
        assert "boom" not in calls_and_imports(kernel.source)
        assert not calls_and_imports(kernel.source) & {"os", "__import__", "eval", "exec"}
        if backend != "cupy":
            np.testing.assert_allclose(kernel(point), expected, rtol=1e-14)
        outside = [text for text in texts(kernel.source) if "#include" in text or "__global__" in text]
        assert not any("boom" in text for text in outside)
        c_source = getattr(kernel, "c_source", None) or ""
        code = re.sub(r"/\*.*?\*/", "", c_source, flags=re.DOTALL)
        assert not re.search(r"\bboom\s*\(", code)  # as a part of an argument's name it is no call


@pytest.mark.thorough
def test_no_text_reaches_sympify():
    """sympify evaluates text, unless it is told to be strict: everywhere in the packages it is."""
    from pathlib import Path

    import symad.gpu
    import symad.numeric

    loose, seen = [], 0
    for package in (symad, symad.numeric, symad.gpu):
        for path in Path(package.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "sympify":
                    seen += 1
                    strict = any(k.arg == "strict" and ast.unparse(k.value) == "True" for k in node.keywords)
                    loose += [] if strict else [f"{path}:{node.lineno}"]
    assert seen > 20 and not loose
