"""Imports go one way, symad <- symad.numeric <- symad.gpu; heavy libraries are imported where used."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = {"sympy", "numpy", "scipy", "mpmath", "networkx", "plum", "flint", "rich", "symad"}
HEAVY = [
    "networkx", "scipy.sparse", "scipy.special", "matplotlib", "cupy", "torch", "jax", "sklearn",
    "statsmodels",
]  # fmt: skip
BACKENDS_OF_THE_CPU = ["symad.numeric.numpy_arrays.lower", "symad.numeric.scalars.lower_c"]


@dataclass(frozen=True)
class Import:
    """One imported dotted name: where, and whether it runs when the module is imported."""

    file: str
    line: int
    name: str
    at_import: bool

    def __str__(self):
        return f"{self.file}:{self.line} imports {self.name}"

    def under(self, *packages):
        return any(self.name == p or self.name.startswith(p + ".") for p in packages)


def called(call):
    """The last name of the function that is called: ``import_module`` of ``importlib.import_module(...)``."""
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)


def imports_in(source, file="<source>"):
    """Every import of a module, ``from a import b`` as a.b, and importlib calls with a literal."""
    found = []

    def visit(node, at_import):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_import = False
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, False)
            for child in node.orelse:
                visit(child, at_import)
            return
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
        found.extend(Import(file, node.lineno, name, at_import) for name in names)
        for child in ast.iter_child_nodes(node):
            visit(child, at_import)

    visit(tree_of(source), True)
    return found


@cache
def tree_of(source):
    """The syntax of a text; several tests read the same files."""
    return ast.parse(source)


def files_of(package):
    """The Python files of symad (without the two linked packages), numeric or gpu."""
    linked = (ROOT / "symad" / "numeric", ROOT / "symad" / "gpu")
    files = sorted((ROOT / package).rglob("*.py"))
    return [f for f in files if not any(link in f.parents for link in linked)]


@cache
def imports_of(package):
    return [
        entry
        for path in files_of(package)
        for entry in imports_in(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())
    ]


@pytest.fixture(scope="module", autouse=True)
def every_file_is_read():
    """Reads the three packages once, before the first test."""
    for package in ("symad", "numeric", "gpu"):
        imports_of(package)


def listed(entries):
    return [str(entry) for entry in entries]


def is_command_line(entry):
    return entry.file.startswith("symad/cli")


def is_for_types(entry):
    """The package's face names what is loaded on use for type checkers, not for Python."""
    return entry.file == "symad/__init__.py" and not entry.at_import


def is_bridge(entry):
    """The bridges to other libraries stand above all three packages, and are loaded on use."""
    return entry.file.startswith(("symad/torch", "symad/jax"))


def is_of_bridge(entry):
    """Whether a bridge imports the library that it leads to."""
    return is_bridge(entry) and entry.under(entry.file.split("/")[1])


def test_the_reader_of_imports_sees_every_form():
    source = """
import a.b
from symad import numeric
from . import graph
if TYPE_CHECKING:
    import cupy
class C:
    import d
    def f(self):
        import e
        importlib.import_module("symad.gpu")
"""
    assert [(i.name, i.at_import) for i in imports_in(source)] == [
        ("a.b", True), ("symad.numeric", True), ("..graph", True), ("cupy", False), ("d", True),
        ("e", False), ("symad.gpu", False),
    ]  # fmt: skip


def test_symad_imports_neither_numeric_nor_gpu():
    upward = [i for i in imports_of("symad") if i.under("symad.numeric", "symad.gpu")]
    assert listed(i for i in upward if not (is_command_line(i) or is_bridge(i) or is_for_types(i))) == []
    assert listed(i for i in upward if is_command_line(i) and i.at_import) == []


def test_numeric_does_not_import_gpu():
    assert listed(i for i in imports_of("numeric") if i.under("symad.gpu")) == []


def test_numeric_names_gpu_in_its_one_backend_table():
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in files_of("numeric")
        for node in ast.walk(tree_of(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and re.fullmatch(r"symad\.gpu(\.\w+)*", str(node.value))
    }
    assert len(naming) <= 1


def test_cupy_is_imported_under_gpu_inside_functions():
    outside = [i for p in ("symad", "numeric") for i in imports_of(p) if i.under("cupy", "cupyx")]
    eager = [i for i in imports_of("gpu") if i.under("cupy", "cupyx") and i.at_import]
    assert listed(outside + eager) == []


def test_the_graph_and_the_questions_know_no_op():
    below = {"symad/core/graph.py", "symad/core/questions.py", "symad/core/dims.py", "symad/errors.py"}
    known = [i for i in imports_of("symad") if i.file in below and i.under("symad.ops")]
    assert listed(known) == []


@pytest.mark.parametrize("package", ["symad", "numeric", "gpu"])
def test_imports_are_absolute(package):
    assert listed(i for i in imports_of(package) if i.name.startswith(".")) == []


@pytest.mark.parametrize("package", ["symad", "numeric", "gpu"])
def test_only_core_dependencies_are_imported_at_import(package):
    eager = [i for i in imports_of(package) if i.at_import]
    allowed = CORE | set(sys.stdlib_module_names)
    assert listed(i for i in eager if i.name.split(".")[0] not in allowed and not is_of_bridge(i)) == []


@pytest.mark.parametrize("package", ["symad", "numeric", "gpu"])
def test_no_text_reaches_sympys_parser(package):
    """``sympify`` evaluates text unless it is strict; parsers and ``eval`` are not used at all."""
    loose = []
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text("utf-8")
        if not any(word in text for word in ("sympify", "parse_expr", "parse_latex", "eval")):
            continue
        tree = tree_of(text)
        strict = {
            id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)
            and any(k.arg == "strict" and ast.unparse(k.value) == "True" for k in n.keywords)
        }  # fmt: skip
        for n in ast.walk(tree):
            name = getattr(n, "attr", getattr(n, "id", ""))
            called = isinstance(n, ast.Attribute | ast.Name) and isinstance(n.ctx, ast.Load)
            if called and (
                name in ("parse_expr", "parse_latex") or (name == "sympify" and id(n) not in strict)
            ):
                loose.append(f"{path.relative_to(ROOT)}:{n.lineno}")
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "eval":
                loose.append(f"{path.relative_to(ROOT)}:{n.lineno}")
    assert loose == []


def test_no_test_module_is_imported():
    """What tests share stands in plain modules: a test module may skip itself when it is imported."""
    taken = r"tests\.([\w.]+\.)?test_\w+"
    among = r"from tests[\w.]* import .*\btest_"
    forms = rf"(import {taken}|from {taken} import|{among}|import_module\(.tests.*\btest_)"
    texts = {path: path.read_text("utf-8") for folder in ("tests", "benchmarks") for path in files_of(folder)}
    assert [path.name for path, text in texts.items() if re.search(forms, text)] == []


def test_only_audits_use_a_bridge():
    """Audits of users' files verify functions of PyTorch, and load the bridge when they meet one."""
    every = [i for package in ("symad", "numeric", "gpu") for i in imports_of(package)]
    used = [i for i in every if i.under("symad.torch", "symad.jax") and not is_bridge(i)]
    assert listed(i for i in used if i.at_import or not i.file.startswith("symad/audits/")) == []


GUESTS = {
    "symad.verification.coq": "certificate.to_coq('f.v')",
    "symad.verification.mistakes": "",
    "symad.audits": "run('audit', '--all')",
    "symad.corpus": "run('corpus')",
    "symad.torch": "symad.torch.as_function(f)",
    "symad.jax": "symad.jax.as_function(f)",
    "symad.splitting": "symad.splits(f, 'n')",
    "symad.numeric.scale": "import symad.numeric.scale",
    "symad.numeric.stability": "symad.error_bound(f, {x: (0, 1)})",
}
"""The guests, and what asks for each of them; to name mistakes nobody asks."""

SMOKE = """
import io, contextlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == GUEST or name.startswith(GUEST + "."):
            raise ModuleNotFoundError(f"{GUEST} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import numpy as np, sympy, symad
from symad.cli import main
from symad.numeric import lower

x, y = sympy.symbols("x y", real=True)
f = sympy.sin(x * y) + sympy.exp(x)
certificate = symad.check(f)
assert certificate.status == "proved"
wrong = symad.verify(sympy.tanh(x), gradient=lambda x: 1 - np.tanh(x), hostile=False)
named = wrong.entries[0].blame is not None
assert wrong.status == "refuted" and named != (GUEST == "symad.verification.mistakes")
assert certificate.recheck().status == "proved"
assert lower(symad.hessian(f))(1.0, 2.0).shape == (2, 2)
assert np.allclose(*(lower(symad.gradient(f), backend=b)(1.0, 2.0) for b in ("c", "numpy")), rtol=1e-14)
assert symad.jacobian(lambda u: u**2, sparse=True, inputs=[(3,)])(np.ones(3)).nnz == 3
loop = symad.trace(lambda u: symad.functions.fold(lambda s, t: np.tanh(s + t), 0.0, u), [(4,)])
assert symad.gradient(loop)(np.ones(4)).shape == (4,)
heads = symad.trace(lambda q: symad.functions.attention(q, q, q), [(8, 4)])
assert "__global__" in lower(heads, "cupy").source
assert f.diff(x) == symad.to_sympy(symad.gradient(f, x))
assert symad.trace(f).explain(x=1, y=2) and symad.trace(f).draw()

def run(*words):
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        code = main(list(words))
    assert code == 2, code
    raise ImportError(told.getvalue())

assert symad.cli.main(["ops"]) == 0
try:
    exec(ASK) if ASK else print("not installed")
except (ImportError, symad.errors.SymadError) as error:
    print(str(error))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(GUESTS))
def test_the_core_does_without_its_guests(name, tmp_path):
    """All but the guest works without it, and what asks for the guest says that it is missing."""
    code = f"GUEST, ASK = {name!r}, {GUESTS[name]!r}\n{SMOKE}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert any(words in last for words in ("blocked", "not installed", "invalid choice")), last


def test_nothing_outside_of_a_guest_imports_it():
    """Neither when it is loaded nor later; the public names of the package's face are loaded on use."""
    allowed = {("symad/audits/user_files.py", "symad.torch")}  # guests of each other, and rooms of theirs
    rooms = {"symad.splitting": ("numeric/scale",)}
    found = []
    for entry in (i for package in ("symad", "numeric", "gpu") for i in imports_of(package)):
        for name in GUESTS:
            inside = (name.replace("symad.numeric", "numeric").replace(".", "/"), *rooms.get(name, ()))
            if entry.under(name) and not entry.file.startswith(inside) and not is_for_types(entry):
                found += [str(entry)] if (entry.file, name) not in allowed else []
    assert found == []


IMPORTED = ["symad", "symad.numeric", "symad.gpu", *BACKENDS_OF_THE_CPU]


@pytest.fixture(scope="module")
def loaded():
    """For each module the heavy libraries that are loaded when it and those before it are imported."""
    code = (
        "import importlib, json, sys\nfound = {}\n"
        f"for name in {IMPORTED!r}:\n"
        "    importlib.import_module(name)\n"
        f"    found[name] = [heavy for heavy in {HEAVY!r} if heavy in sys.modules]\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", IMPORTED)
def test_importing_loads_nothing_heavy(module, loaded):
    assert loaded[module] == []


@pytest.mark.parametrize("folder", ["numeric", "gpu"])
def test_a_second_copy_is_refused(folder):
    code = f"import {folder}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert f"import symad.{folder}, not {folder}" in done.stderr


def module_of(path):
    """The dotted name under which a file is imported."""
    name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    return name if name.split(".")[0] == "symad" else f"symad.{name}"


@cache
def import_graph():
    """Which module imports which, imports inside of functions and for type checkers included."""
    packages = ("symad", "numeric", "gpu")
    modules = {module_of(f) for package in packages for f in files_of(package)}
    graph = networkx.DiGraph()
    for entry in (entry for package in packages for entry in imports_of(package)):
        name, target = module_of(ROOT / entry.file), entry.name
        while target and target not in modules:
            target = target.rpartition(".")[0]
        if target and target != name:
            graph.add_edge(name, target)
    return graph


def test_imports_run_downhill():
    """No circle of imports anywhere, those inside of functions and for type checkers included."""
    circles = [c for c in networkx.strongly_connected_components(import_graph()) if len(c) > 1]
    assert [sorted(c) for c in circles] == []


def imports_between_children():
    """For every folder, a graph of the imports between its subfolders and files.

    An import counts in the deepest folder that holds both modules. The ``__init__`` of that folder is left
    out: it is the face of the others.
    """
    levels = {}
    for importer, imported in import_graph().edges:
        above = importer.split("."), imported.split(".")
        shared = next(k for k, pair in enumerate(zip_longest(*above)) if len(set(pair)) > 1)
        if shared < min(map(len, above)):
            folder = ".".join(above[0][:shared])
            levels.setdefault(folder, networkx.DiGraph()).add_edge(above[0][shared], above[1][shared])
    return levels


def test_folders_import_each_other_in_one_direction():
    """No circle between the subfolders and files of any folder, though no file be in a circle."""
    circles = {
        folder: sorted(circle)
        for folder, graph in imports_between_children().items()
        for circle in networkx.strongly_connected_components(graph)
        if len(circle) > 1
    }
    assert circles == {}


def test_the_folders_stand_in_the_order_that_the_design_gives():
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    table = re.findall(r"^\| (`.*?) \|", text[text.index("Within symad the folders") :].split("##")[0], re.M)
    order = [name for row in table for name in re.findall(r"`(\w+)`", row)]
    folders = {module_of(f).split(".")[1] for f in files_of("symad") if len(f.relative_to(ROOT).parts) > 2}
    assert sorted(order) == sorted(folders)
    edges = imports_between_children()["symad"].edges
    assert [
        (a, b) for a, b in edges if a in folders and b in folders and order.index(b) > order.index(a)
    ] == []


@pytest.mark.parametrize("package", ["symad", "numeric", "gpu"])
def test_no_folder_holds_more_files_than_a_person_keeps_in_mind(package):
    folders = [path.parent.relative_to(ROOT).as_posix() for path in files_of(package)]
    assert {f: folders.count(f) for f in folders if folders.count(f) > 25} == {}


READING = {"replace", "split", "rsplit", "splitlines", "partition", "rpartition", "startswith", "endswith",
           "removeprefix", "removesuffix", "find", "rfind", "isidentifier"}  # fmt: skip
"""Methods of strings that look into a text or change it."""

OTHER_TEXT = {
    "numeric/compiled_arrays/blas.py": "names of files",
    "numeric/compiled_arrays/ufuncs.py": "signatures of ufuncs",
    "numeric/compiled_arrays/c/nest_text.py": "names of types",
    "numeric/compiler/c_compiler.py": "flags and messages of the compiler",
    "numeric/compiler/c_header.py": "names that users give",
    "numeric/compiler/private_folder.py": "files",
    "numeric/function.py": "representations of graphs",
    "numeric/kernel.py": "the lines that tracebacks show",
    "numeric/lowering.py": "names of types",
    "numeric/modules/module_text.py": "names that users give",
    "numeric/modules/users_functions.py": "names that users give",
    "numeric/eager/attention.py": "names that users give",
    "numeric/entry_point.py": "the lines that tracebacks show",
    "numeric/pairs/intervals.py": "SymPy's replace",
    "numeric/pairs/pair_functions.py": "SymPy's replace, and names that users give",
    "numeric/pairs/scalar_formulas.py": "SymPy's replace",
    "numeric/pairs/scores.py": "SymPy's replace",
    "numeric/pairs/stable_sympy.py": "SymPy's replace",
    "numeric/passes/algebra/syrk_products.py": "subscripts of a contraction",
    "numeric/sampling/markov_chains.py": "random keys are split",
    "numeric/scalars/quick_calls.py": "results are split",
    "numeric/scale/chunks.py": "names of modules",
    "numeric/scale/engines.py": "names of files",
    "numeric/scheduling/roles.py": "names that users give",
    "numeric/listing.py": "cells of a table in Markdown",
    "numeric/standalone_c.py": "long lines are folded",
    "numeric/targets/pasting.py": "names of modules",
    "numeric/targets/target.py": "names of modules",
    "gpu/device_formulas.py": "SymPy's replace",
    "gpu/standalone_cuda.py": "macros of the written kernels, of which several stand in one file",
    "gpu/traced_launches.py": "names of modules",
}
"""Modules that look into text which is no printed code, and into what."""


def reading_calls(source):
    """Calls of such methods, and of functions of re."""
    nodes = ast.walk(tree_of(source))
    calls = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [f for f in calls if f.attr in READING or (isinstance(f.value, ast.Name) and f.value.id == "re")]


def test_the_reader_of_calls_sees_methods_and_regular_expressions():
    source = "a.replace('x', 'y'); re.sub('x', 'y', a); replace(a, b=1); ', '.join(a); a.b.split()"
    assert len(reading_calls(source)) == 3


def test_no_module_looks_into_the_text_that_is_printed():
    files = [path for package in ("numeric", "gpu") for path in files_of(package)]
    found = {f.relative_to(ROOT).as_posix() for f in files if reading_calls(f.read_text("utf-8"))}
    assert found == {*OTHER_TEXT}


def test_regular_expressions_are_not_imported():
    assert {i.file for package in ("numeric", "gpu") for i in imports_of(package) if i.under("re")} == set()


# ---- facts about functions -----------------------------------------------------------------------

OF_FUNCTIONS = re.compile(
    r"symad/(facts|sympy_functions|special|models|audits|jax|torch)/|symad/ops/elementwise/slopes"
    r"|symad/functions.py"
    r"|numeric/(targets|compiler|scalars|compiled_arrays|pairs)/|gpu/(printers|device_formulas|passes/integers)"
    r"|symad/verification/(coq|checker)/|symad/tracing/from_numpy/|symad/stable/"
)
"""Facts, slopes, tables of printers and of other libraries, forms of functions; the checker knows its own."""

OTHER_TABLES = {
    "numeric/program_passes/memory/allocation.py": 8, "numeric/stability/roundings.py": 25,
    "symad/display/typesetting/pieces.py": 3, "symad/evaluation/dual_functions.py": 13,
    "symad/evaluation/intervals.py": 7, "symad/evaluation/rational_results.py": 6,
    "symad/saving/saved_limits.py": 39,
    "symad/tracing/from_sympy/parameter_derivatives.py": 13,
    "symad/tracing/from_sympy/rewritten_functions.py": 3, "symad/verification/budget.py": 32,
    "symad/verification/proof/find_proof.py": 3,
    "symad/verification/rewriting/identities/elementary.py": 7,
    "symad/verification/rewriting/identities/functions.py": 13,
    "symad/verification/rewriting/identities/powers.py": 5,
    "symad/verification/rewriting/identity_testing.py": 3,
    "symad/verification/rewriting/restated/by_injective.py": 9,
    "symad/verification/values/constant_exponents.py": 4,
}  # fmt: skip
"""How many functions tables elsewhere name: what remains, which may only become less."""


def functions_in_tables(tree, names):
    """The functions that the displays of a module name, of displays with at least three."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple):
            entries = node.keys if isinstance(node, ast.Dict) else node.elts
            said = {getattr(e, key, None) for e in entries for key in ("attr", "id", "value")}
            said = {s for s in said if isinstance(s, str)} & names
            found |= said if len(said) > 2 else set()
    return found


@pytest.mark.thorough
def test_facts_of_functions_stand_in_one_place():
    from symad.facts.functions import FACTS

    names = {head.__name__ for head in FACTS} - {"beta", "zeta", "gamma"}  # names of models' parameters, too
    counts = {}
    for path in (path for package in ("symad", "numeric", "gpu") for path in files_of(package)):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        if not OF_FUNCTIONS.match(name) and len(names.intersection(re.findall(r"\w+", text))) > 2:
            counts[name] = len(functions_in_tables(tree_of(text), names))
    counts = {name: count for name, count in counts.items() if count}
    assert {n: c for n, c in counts.items() if c > OTHER_TABLES.get(n, 0)} == {}


# ---- the six areas of the design -----------------------------------------------------------------

FACES = {"symad/__init__.py", "symad/testing.py", "symad/pytest.py", "numeric/function.py"}


def areas():
    """By area its folders, the areas that it imports, and its share of the lines, as the design says."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    table = text[text.index("### Six areas") :]
    rows = re.findall(r"^\| (\w+) \| (`.*?) \| (.*?) \| (\d+) % \|$", table, re.M)
    return {
        name: (
            [f if f[:3] in ("num", "gpu") else f"symad/{f}" for f in re.findall(r"`(.*?)`", folders)],
            set(imports.split(", ")),
            int(share),
        )
        for name, folders, imports, share in rows
    }


def area_of(path, known):
    """The area of a file: that of the longest folder that holds it; the files of symad itself are engine."""
    folders = [(folder, name) for name, (held, _, _) in known.items() for folder in held]
    held = [(len(folder), name) for folder, name in folders if path.startswith(folder + "/")]
    return max(held)[1] if held else "engine"


def test_the_picture_of_the_areas_has_what_imports_each_other():
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    picture = text[text.index("### Six areas") :].split("```")[1]
    drawn = {frozenset(pair) for pair in re.findall(r"(?=\b(\w+) <-> (\w+))", picture)}
    imports = {name: row[1] for name, row in areas().items()}
    assert drawn == {frozenset((a, b)) for a in imports for b in imports[a] if a in imports.get(b, ())}


@pytest.mark.thorough
def test_areas_import_what_the_design_says_and_have_its_sizes():
    known, found, lines = areas(), {}, {}
    every = (path for package in ("symad", "numeric", "gpu") for path in files_of(package))
    paths = {path.relative_to(ROOT).as_posix(): path for path in every}
    modules = {name[:-3].removesuffix("/__init__").replace("/", "."): name for name in paths}
    for name, path in paths.items():
        area = area_of(name, known)
        lines[area] = lines.get(area, 0) + path.read_text("utf-8").count("\n")
    for package in ("symad", "numeric", "gpu"):
        for entry in imports_of(package):
            lowered = entry.under("symad.numeric", "symad.gpu")
            said = entry.name.removeprefix("symad.") if lowered else entry.name
            target = modules.get(said) or modules.get(said.rpartition(".")[0])
            if target is not None and entry.file not in FACES:
                found.setdefault(area_of(entry.file, known), set()).add(area_of(target, known))
    assert {name: found[name] - {name} for name in known} == {name: row[1] for name, row in known.items()}
    total = sum(lines.values())
    assert all(abs(100 * lines[name] / total - share) < 3 for name, (_, _, share) in known.items())


def test_the_place_of_each_kind_of_thing_stands_in_the_design():
    """The table names what exists, and every folder of passes."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    table = text[text.index("## Where each kind of thing stands") :].split("## Three packages")[0]
    rows = [row.split(" | ") for row in re.findall(r"^\| (\w.*) \|$", table, re.M)][1:]
    assert [row[0] for row in rows] == ["op", "function", "model", "pass", "target", "tactic", "guest"]
    places = {row[0]: re.findall(r"`([\w/.]+[/.]\w*)`", row[2] + row[3]) for row in rows}
    for found in places.values():
        folders = [ROOT, *(ROOT / p for p in found if p.endswith("/"))]
        assert all(any((folder / p).exists() for folder in folders) for p in found)
    passes = {path.parent for path in files_of("numeric") if path.parent.name in ("passes", "program_passes")}
    assert passes == {ROOT / place for place in places["pass"] if place.endswith("/")}
    assert "design.md" in (ROOT / "README.md").read_text("utf-8")
