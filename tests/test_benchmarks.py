"""Benchmarks run alone, from any folder, in small: one that nothing runs fails when it is next needed."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"

SMALL = {
    "scalar/bench_scalar_peers.py": ["rosenbrock 10", "--rounds", "1", "--limit", "2"],
    "arrays/bench_models.py": ["lstm", "--rounds", "1", "--dtype", "float64"],
    "arrays/bench_hessians.py": ["logistic", "--rounds", "1"],
    "arrays/bench_given.py": ["--rounds", "1"],
    "arrays/bench_passes.py": ["last state", "--passes", "last step", "--rounds", "1"],
    "arrays/bench_memory.py": ["lstm"],
    "arrays/bench_pairwise.py": ["--largest", "1000"],
    "scalar/bench_scalar_thresholds.py": ["places", "--rounds", "1"],
    "arrays/bench_thresholds.py": ["quotients", "--rounds", "1"],
    "arrays/bench_layout_thresholds.py": ["sparse Newton", "--rounds", "1"],
    "scale/bench_one_core.py": ["--small"],
    "verification/pairs.py": ["--count", "20", "--jobs", "1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SMALL)
def test_a_benchmark_runs(script, tmp_path):
    if script.endswith("peers.py"):
        pytest.importorskip("casadi")
    out = ["--out", str(tmp_path)] if script == "scale/bench_one_core.py" else []
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *SMALL[script], *out],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert any(c.isdigit() for c in done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(FOLDER.glob("*/*.py")), ids=lambda path: path.name)
def test_a_benchmark_finds_what_it_imports(script, tmp_path):
    """Also those that take minutes, or need a GPU. Only symad is found without the file's own help."""
    optional = ("torch", "jax", "casadi", "symengine", "dask", "distributed", "cupy", "asdex", "sklearn")
    code = f"""
import runpy, sys, symad
sys.path.remove({str(FOLDER.parent)!r})
sys.path.insert(0, {str(script.parent)!r})
runpy.run_path({str(script)!r}, run_name="imported")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    missing = [name for name in optional if f"No module named '{name}" in done.stderr]
    assert done.returncode == 0 or missing, done.stderr


# ---- what each file reads, without running it --------------------------------------------------------

FILES = sorted(FOLDER.rglob("*.py"))
PEERS = {
    "asdex",
    "autograd",
    "casadi",
    "cupy",
    "dask_glm",
    "dask_ml",
    "jax",
    "pykeops",
    "sklearn",
    "symengine",
    "torch",
}


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


def imports(path):
    """The modules that a file imports, with the names that it takes from them (None: the module itself)."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def file_of(module, beside):
    """The file of a module of this repository, as Python finds it from a file; None for other libraries."""
    parts = module.split(".")
    for root in (beside.parent, FOLDER.parent, FOLDER, FOLDER / "arrays", FOLDER / "scalar"):
        for path in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__init__.py")):
            if path.is_file() and parts[0] not in PEERS:
                return path
    return None


@cache
def names_in(path):
    """The names that a module gives: assigned, defined or imported anywhere in it, or listed in a text."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def absent(path):
    """What a file imports from this repository and is not there."""
    for module, name in imports(path):
        if name is not None and file_of(f"{module}.{name}", path):
            continue
        source = file_of(module, path)
        if source is None:
            if module.split(".")[0] in ("symad", "benchmarks", "tests"):
                yield module
        elif name is not None and name not in names_in(source):
            yield f"{module}.{name}"


@pytest.mark.parametrize("script", FILES, ids=lambda path: path.name)
def test_what_a_benchmark_takes_from_this_repository_is_there(script):
    assert list(absent(script)) == []


def test_the_search_for_absent_names_finds_them(tmp_path):
    script = tmp_path / "script.py"
    lines = ["import symad.gone", "from symad.numeric import lower, gone", "from symad.errors import Gone"]
    script.write_text("\n".join([*lines, "from symad import numeric"]))
    assert list(absent(script)) == ["symad.gone", "symad.numeric.gone", "symad.errors.Gone"]


def test_thresholds_that_are_measured_are_there():
    """They are named by texts: "passes.blocking.row_blocks.BLOCK" is BLOCK of this module of numeric/."""
    measured = 0
    for script in FOLDER.rglob("bench_*thresholds.py"):
        for node in ast.walk(parsed(script)):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            module, _, name = text.rpartition(".")
            if module and name.isupper() and text.replace(".", "").isidentifier():
                assert name in names_in(
                    FOLDER.parent.joinpath("numeric", *module.split(".")).with_suffix(".py")
                )
                measured += 1
    assert measured >= 30


def guards(path):
    """The peers that a file names, if it asks whether they can be loaded."""
    calls = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return names_in(path) & PEERS if any(call.func.id == "loaded" for call in calls) else set()


@pytest.mark.parametrize("script", FILES, ids=lambda path: path.name)
def test_a_benchmark_runs_without_its_peers(script):
    """A peer is imported inside of functions, by a file that asks first or that such a file imports."""
    at_once = {
        name.name for node in parsed(script).body if isinstance(node, ast.Import) for name in node.names
    }
    assert not at_once & PEERS
    needed = {module.split(".")[0] for module, _ in imports(script)} & PEERS
    if "gpu" in script.parts:
        needed.discard("cupy")
    if script.name == "nested_programs.py":  # a comparison with JAX alone, as it says
        needed.discard("jax")
    importing = [
        other for other in FILES if script in {file_of(module, other) for module, _ in imports(other)}
    ]
    assert needed <= set().union(*(guards(other) for other in (script, *importing)))


@pytest.fixture
def benchmark_module(monkeypatch):
    """Loads a file of benchmarks/ as a module."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_peer_that_breaks_while_it_is_loaded_is_left_out_and_named_once(
    benchmark_module, monkeypatch, tmp_path, capsys
):
    (tmp_path / "broken_peer.py").write_text("raise OSError('libpeer.so.2: no such file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    machine = benchmark_module("machine")
    assert [machine.loaded(name) for name in ("broken_peer", "broken_peer", "absent_peer", "json")] == [
        False, False, False, True,
    ]  # fmt: skip
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "broken_peer is left out: OSError: libpeer.so.2: no such file"
    assert len(said) == 2 and said[1].startswith("absent_peer is left out: ModuleNotFoundError")


def test_a_benchmark_that_fails_does_not_end_the_others(benchmark_module, monkeypatch, tmp_path, capfd):
    run_all = benchmark_module("run_all")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "scalar").mkdir()
    (tmp_path / "arrays" / "bench_models.py").write_text("raise ImportError('no peer')")
    row = {"case": "a case", "contestant": "symad", "ratio": 0.25}
    alone = {"case": "without a peer", "contestant": "symad", "ratio": 1.0}
    written = json.dumps({"rows": [row, row | {"contestant": "jax", "ratio": 1.0}, alone]})
    code = f"import sys; open(sys.argv[sys.argv.index('--json') + 1], 'w').write({written!r})"
    (tmp_path / "arrays" / "bench_hessians.py").write_text(code)
    wanted = {"arrays/bench_models.py": [], "arrays/bench_hessians.py": []}
    (tmp_path / "models.json").write_text("of an earlier run")
    drawn = []
    monkeypatch.setattr(run_all, "HERE", tmp_path)
    monkeypatch.setattr(run_all, "benchmarks", lambda quick, full: wanted)
    monkeypatch.setattr(run_all, "PARTS", {name: run_all.PARTS[name] for name in wanted})
    monkeypatch.setattr(run_all, "draw", lambda groups, path: drawn.append(groups))
    monkeypatch.setattr(sys, "argv", ["run_all.py", "--out", str(tmp_path)])
    assert run_all.main() == 1
    assert drawn == [{run_all.PARTS["arrays/bench_hessians.py"][0]: [("a case", 0.25)]}]
    out, err = capfd.readouterr()
    assert "0.25" in out
    assert err.splitlines()[-1] == "failed with exit status 1: benchmarks/arrays/bench_models.py"


def test_all_benchmarks_of_the_table_exist(benchmark_module):
    run_all = benchmark_module("run_all")
    assert all((FOLDER / script).is_file() for script in run_all.benchmarks(True, True))
    assert {*run_all.PARTS} <= {*run_all.WRITES} <= {*run_all.benchmarks(False, False)}
