"""What is printed for CuPy exists in CuPy; kernels of half precisions compile for devices before 8.0."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad
import symad.gpu
import symad.op_examples
from symad import functions
from symad.core.graph import Graph, topological
from symad.core.questions import EXAMPLES
from symad.errors import LoweringError
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from symad.ops.basic.sources import Input
from tests.gpu import nvrtc
from tests.gpu.cupy_names import NAMES
from tests.gpu.cupy_standin import installed
from tests.gpu.cupy_standin.kernels import RawKernel
from tests.gpu.launch_cases import CASES as MODELS


def of_examples():
    """Every example of every op."""
    for cls, make in EXAMPLES.items():
        for k, node in enumerate(make()):
            inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
            yield f"{cls.__name__} {k}", Graph(inputs, (node,))


def printed(graph, dtype):
    """The text of a module, or None where it is refused: a precision, or a size that no input has."""
    with installed():
        try:
            return lower(graph, backend="cupy", dtype=dtype).source
        except LoweringError:
            return None


def read(text):
    """The dotted names that a module reads of CuPy's modules."""
    for node in ast.walk(ast.parse(text)):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in ("cp", "cupyx"):
            yield [node.id, *reversed(parts)]


def missing(text):
    found = set()
    for path in read(text):
        for k in range(1, len(path)):
            module = ".".join(path[:k])
            if module in NAMES and path[k] not in NAMES[module] | {"__version__"}:
                found.add(f"{module}.{path[k]}")
    return found


def test_the_list_knows_what_cupy_lacks():
    assert missing("cp.exp(cp.linalg.det(x)) + cp.float16(1)") == set()
    assert missing("cp.bfloat16(cp.linalg.lu(x)); cp.cuda.Device(0)") == {"cp.bfloat16", "cp.linalg.lu"}


MATRICES = {
    "eye": lambda a: a @ np.eye(3),
    "inv": lambda a: np.linalg.inv(a).sum(),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "svd": lambda a: np.linalg.svd(a, compute_uv=False).sum(),
    "trace": lambda a: np.trace(a @ a),
    "iota": lambda a: np.arange(3) @ a,
    "argsort": lambda a: np.argsort(a, axis=-1) @ a,
    "stack": lambda a: np.array([1.0, 2.0, a[0, 0]]),
    "full": lambda a: np.full((3,), a[0, 0]) @ a,
    "sum over places": lambda a: np.bincount([0, 2, 2], a[0], 3),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_names_of_matrix_functions_and_their_gradients(dtype):
    pytest.importorskip("ml_dtypes")
    for name, f in MATRICES.items():
        graph = symad.trace(f, [(3, 3)])
        graphs = [graph] if graph.output_nodes[0].shape else [graph, symad.gradient(graph)]
        for each in graphs:
            assert missing(printed(each, dtype)) == set(), name


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_names_of_every_op(dtype):
    pytest.importorskip("ml_dtypes")
    counted = 0
    for name, graph in of_examples():
        text = printed(graph, dtype)
        counted += text is not None
        assert text is None or missing(text) == set(), name
    assert counted > 100


def unused(text):
    """The functions, constants and imports of a module that it never reads."""
    tree, made = ast.parse(text), set()
    for statement in tree.body[:-1]:  # the last function is the entry
        if isinstance(statement, ast.FunctionDef):
            made.add(statement.name)
        elif isinstance(statement, ast.Assign):
            made |= {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            made |= {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return made - read - {"ml_dtypes"}  # the type of results, which some modules do not name


def test_unused_names_are_found():
    assert unused("import a\nimport b.c\nD = 1\ndef e(): return b\ndef f(): return e()") == {"a", "D"}


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_no_module_has_a_name_that_it_does_not_use(dtype):
    pytest.importorskip("ml_dtypes")
    for name, graph in of_examples():
        text = printed(graph, dtype)
        assert text is None or unused(text) == set(), name


@pytest.mark.thorough
@pytest.mark.parametrize("capture", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_no_model_has_a_name_that_it_does_not_use(name, capture):
    function, shapes, data = MODELS[name]
    graph = symad.value_and_gradient(trace_model(function, shapes, *(np.shape(d) for d in data)))
    with symad.gpu.options(capture=capture):
        assert unused(printed(graph, "float32")) == set()


def test_bfloat16_comes_from_the_package_that_the_extras_install():
    with installed():
        text = printed(symad.trace(lambda a: a @ np.eye(3), [(3, 3)]), "bfloat16")
    assert "import ml_dtypes" in text
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert len(re.findall(r"^gpu-cuda1[23] = \[.*ml_dtypes", project, re.MULTILINE)) == 2


# ---- devices before compute capability 8.0 --------------------------------------------------------


def sources(graph, dtype):
    """The kernels that a module compiles whole."""
    text = printed(graph, dtype)
    if text is None:
        return []
    namespace = {}
    with installed():
        exec(compile(text, "generated", "exec"), namespace)
    whole = [v for v in namespace.values() if isinstance(v, str) and "__global__" in v and "SYMAD_REAL" in v]
    return [*whole, *(v.code for v in namespace.values() if isinstance(v, RawKernel))]


def scanned(W, xs):
    return functions.scan(lambda h, x: np.tanh(W @ h + x), np.zeros(3), xs)


n = sp.Symbol("n", integer=True, positive=True)
HALVES = {
    "scan": symad.trace(scanned, [(3, 3), (n, 3)]),
    "gradient of a scan": symad.gradient(
        symad.trace(lambda W, xs: (scanned(W, xs) ** 2).sum(), [(3, 3), (n, 3)])
    ),
    "power": symad.trace(lambda a: np.linalg.matrix_power(a, 5), [(3, 3)]),
    "least squares": symad.trace(lambda a, b: functions.lstsq(a, b), [(5, 3), (5,)]),
    "layer norm": symad.trace(lambda a: (a - a.mean(-1, keepdims=True)) / a.std(-1, keepdims=True), [(n, 8)]),
}


@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float16", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", HALVES)
def test_half_precision_compiles_for_turing(name, dtype):
    pytest.importorskip("ml_dtypes")
    for source in set(sources(HALVES[name], dtype)):
        assert nvrtc.compile_text(source, "sm_75")[0]


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_of_every_op_compiles_for_turing(dtype):
    pytest.importorskip("ml_dtypes")
    for source in {s for _, graph in of_examples() for s in sources(graph, dtype)}:
        assert nvrtc.compile_text(source, "sm_75")[0]
