"""Generated code has no dead names: every name that it assigns, defines or imports is read."""

import ast

import pytest

import symad
from symad.cli.tour.stage import Skip
from symad.cli.tour.stages import all_stages
from symad.errors import LoweringError
from symad.numeric import lower
from tests.gpu.lowering.op_cases import example_graphs

TARGETS = {
    "numpy": {},
    "numpy float32": {"dtype": "float32"},
    "plain": {"style": "plain"},
    "c": {"backend": "c"},
    "c float32": {"backend": "c", "dtype": "float32"},
    "cupy": {"backend": "cupy"},
}
QUICK = [
    "attention dynamics",
    "encoder-decoder",
    "gaussian process",
    "rosenbrock",
    "sunspots",
    "tiled attention",
]
EXAMPLES = list(example_graphs())


def assigned(node):
    """The names that one statement assigns; to assign None only frees memory, and ``_`` is no name."""
    if isinstance(node, ast.Assign):
        freed = isinstance(node.value, ast.Constant) and node.value.value is None
        targets = [] if freed else node.targets
    elif isinstance(node, ast.For):
        targets = [node.target]
    else:
        targets = []
    every = [inner for target in targets for inner in ast.walk(target)]
    return [n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id != "_"]


def read(scope):
    """The names that are read in a scope; ``a += b`` reads a, which may be a view of another array."""
    every = [*ast.walk(scope)]
    names = {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return names | {
        n.target.id for n in every if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }


def dead_names(source):
    """The names that a module assigns, defines or imports and does not read; the entry point is read."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    entry = [n for n in tree.body if isinstance(n, ast.FunctionDef)][-1]
    dead = set()
    for scope in [tree, *functions]:
        inner = scope.body if scope is tree else [n for n in ast.walk(scope) if n is not scope]
        made = {name for node in inner for name in assigned(node)}
        made |= {node.name for node in inner if isinstance(node, ast.FunctionDef) and node is not entry}
        for node in inner:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                made |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        dead |= made - read(scope)
    return dead


def test_dead_names_are_found():
    helper = "def helper(x):\n    y, _ = x\n    x = None\n    return x\n"
    source = f"import math\n{helper}def f(x):\n    z = x\n    return x\n"
    assert dead_names(source) == {"math", "helper", "y", "z"}
    assert (
        dead_names("import math\ndef f(x):\n    for y in x:\n        y += 1\n    return math.pi\n") == set()
    )


def graphs(name):
    """A model of the tour, and its value with its gradient if it is scalar."""
    model = all_stages()[name].model()
    graph = model.graph(name)
    scalar = len(graph.outputs) == 1 and not graph.outputs[0].shape and not graph.grouping
    return [graph, *([symad.value_and_gradient(graph, model.wrt)] if scalar else [])]


def models():
    for name in all_stages():
        yield pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)


def check(graph):
    """No dead names for all targets that have a form of the graph."""
    for target, options in TARGETS.items():
        try:
            source = lower(graph, **options).source
        except LoweringError:
            continue
        assert dead_names(source) == set(), target


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(models()))
def test_models(name):
    try:
        made = graphs(name)
    except Skip as reason:
        pytest.skip(str(reason))
    for graph in made:
        check(graph)


@pytest.mark.slow
@pytest.mark.parametrize(("graph", "dims"), EXAMPLES)
def test_ops(graph, dims):
    check(graph)
