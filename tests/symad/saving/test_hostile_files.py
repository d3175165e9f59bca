"""Saved graphs with malicious bytes: each is refused by a named error, or loads, in a short time."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import symad
from symad.core.graph import Graph, topological
from symad.errors import SavingError
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from symad.saving.save_load import dumps, load, loads
from symad.saving.saved_values import read_expression, write_expression

x = sympy.Symbol("x", real=True)
n = sympy.Symbol("n", integer=True, positive=True)
X, N = ["symbol", "x", {"real": True}], ["symbol", "n", {"integer": True, "positive": True}]

LIMITS = """
import resource, sys, time
sys.path[:0] = {path!r}
import symad
from symad.errors import SavingError
from symad.saving.save_load import loads
loads(open({harmless!r}).read())
texts = open({hostile!r}).read().split("\\0")
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for k, text in enumerate(texts):
    resource.setrlimit(resource.RLIMIT_CPU, ({seconds} + int(time.process_time()) + 1, -1))
    print(k, end=" ", flush=True)
    try:
        loads(text)
    except SavingError:
        pass
print("all")
"""


def soon(tmp_path: Path, texts: list[str], seconds: int = 20) -> None:
    """Asserts that each text loads or is refused by name, within seconds of work and 4 GB.

    The bound is far from what is needed, milliseconds: it tells work without end from work.
    """
    (tmp_path / "harmless").write_text(dumps(symad.trace(x + 1)))
    (tmp_path / "hostile").write_text("\0".join(texts))
    code = LIMITS.format(
        path=[p for p in sys.path if p],
        harmless=str(tmp_path / "harmless"),
        hostile=str(tmp_path / "hostile"),
        seconds=seconds,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ})
    last = done.stdout.split()[-1:] or ["none"]
    assert last == ["all"], f"{done.stderr[-2000:]} {texts[int(last[0])][:2000]}"


# ---- expressions ------------------------------------------------------------------------------

SIX = ["*", 64, 64, 64, 64, 64, 64]
HUGE = ["Float", 0, "0x1", 10**9, 1, 53]


def nested(depth: int) -> Any:
    made: Any = ["^", 64, 64]
    for _ in range(depth):
        made = ["^", made, 64]
    return made


EXPRESSIONS = {
    "a power of a product": ["^", 10, SIX],
    "a power of a power": nested(5),
    "powers to the right": ["^", 9, ["^", 9, ["^", 9, 9]]],
    "a small base": ["^", ["/", 1, 3], ["^", 2, 60]],
    "a root to a large power": ["^", ["^", 2, ["/", 1, 2]], ["^", 10, 12]],
    "a factorial": ["sympy.factorial", 3_000_000],
    "a factorial of a product": ["sympy.factorial", SIX],
    "fibonacci": ["sympy.fibonacci", 10**12],
    "bernoulli": ["sympy.bernoulli", 10**7],
    "binomial": ["sympy.binomial", 10**8, 10**7],
    "zeta": ["sympy.zeta", -(10**6) - 1],
    "gamma": ["sympy.gamma", 10**9],
    "bell": ["sympy.bell", 10**5],
    "exp": ["sympy.exp", ["sympy.exp", 100]],
    "a large float": ["floor", HUGE],
    "a float of many digits": ["Float", 0, "0x1", 0, 1, 10**9],
    "many digits": ["int", "0x" + "f" * 10**6],
    "a fraction of many digits": ["/", ["int", "0x" + "f" * 10**5], 3],
    "a product that overflows": ["*", *[["^", 10, 60]] * 400],
    "many parts": ["+", *[["*", X, k] for k in range(5000)]],
    "many conditions": ["and", *[["<", X, k] for k in range(500)]],
    "many cases": ["cases", *[part for k in range(200) for part in (X, ["<", X, k])]],
    "many arguments of max": ["max", *[["sympy.sin", ["*", X, k]] for k in range(300)]],
    "an inverse power": ["^", ["^", 10, -1000], ["^", 10, 6]],
    "polylog": ["sympy.polylog", -(10**5), ["/", 1, 2]],
    "hermite": ["sympy.hermite", 10**7, 3],
    "a number that is none": ["*", True, X],
    "a condition that is none": ["and", 3, ["<", X, 1]],
    "arguments that are missing": ["^", X],
    "a sum of pieces of text": ["+", "a", "b"],
}
"""Expressions that must be refused."""


@pytest.mark.parametrize("saved", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_that_would_take_all_time_or_memory_are_refused(saved: Any) -> None:
    with pytest.raises((SavingError, TypeError)):
        read_expression(saved)


STAY = {
    "a power of a symbol": ["^", X, 100],
    "hermite in x": ["sympy.hermite", 10**7, X],
    "fibonacci in n": ["sympy.fibonacci", ["*", N, 10**9]],
    "a power that is not multiplied out": ["^", ["+", X, 1], 10**9],
}


@pytest.mark.parametrize("saved", STAY.values(), ids=STAY)
def test_expressions_stay_as_they_stand(saved: Any) -> None:
    made = read_expression(saved)
    assert made.func is not sympy.Add
    assert len(list(sympy.preorder_traversal(made))) < 12


KEPT = [
    x**2 / 3 + sympy.sqrt(2) * sympy.sin(x) - 2 ** sympy.Rational(1, 3),
    sympy.Piecewise((sympy.exp(-x), (x > 0) & (x < 3) | sympy.Eq(x, 5)), (sympy.Max(x, 2, x**2), True)),
    sympy.ITE(x > 1, x < 3, x > 5),
    sympy.Xor(x > 1, x < 0),
    sympy.Not(sympy.And(x > 1, sympy.Ne(x, 2))),
    sympy.Heaviside(x) + sympy.sign(x) + sympy.gamma(x + 1) + sympy.Mod(x, 3) + sympy.floor(x) / sympy.pi,
    sympy.exp(-1000) + x * sympy.Float("1.5e-300", 40) + sympy.cos(10**6),
    sympy.IndexedBase("a")[sympy.Symbol("i", integer=True)] * x,
]


@pytest.mark.parametrize("expression", KEPT, ids=str)
def test_what_is_read_is_what_was_written(expression: Any) -> None:
    assert read_expression(json.loads(json.dumps(write_expression(expression)))) == expression


# ---- dimensions -------------------------------------------------------------------------------


def with_shape(*dims: Any) -> str:
    document = json.loads(dumps(symad.trace(lambda a: a + 1, [(3,)])))
    document["nodes"][0][1][1] = ["tuple", *[d if isinstance(d, int) else ["dimension", d] for d in dims]]
    document["nodes"][0][1][0] = ["symbol", "a", {"real": True}]
    return json.dumps(document)


M = [["symbol", name, {"integer": True, "positive": True}] for name in "abcdefgh"]

DIMENSIONS = {
    "negative": [-1],
    "negative for all n": [["*", -1, N]],
    "beyond every memory": [10**30],
    "a power": [["^", ["+", *M], 64]],
    "powers": [["^", ["^", ["+", N, 1], 64], 64]],
    "a product of powers": [["^", ["+", *M[:2]], 60]] * 32,
    "numbers": [["^", ["^", ["^", 64, 64], 64], 64]],
    "max of many": [["max", *[["+", ["*", m, k], 1] for m in M for k in range(1, 9)]]],
    "max of max": [["max", *[["floor", ["*", ["fraction", 1, k], N]] for k in range(2, 9)]]],
    "deep": [None],
}
deep: Any = N
for _ in range(300):
    deep = ["+", ["floor", deep], 1]
DIMENSIONS["deep"] = [deep]


@pytest.mark.parametrize("dims", DIMENSIONS.values(), ids=DIMENSIONS)
def test_dimensions_that_cannot_be_are_refused(dims: list[Any]) -> None:
    with pytest.raises(SavingError):
        loads(with_shape(*dims))


def test_dimensions_of_models_are_read() -> None:
    harmless = [
        ["+", ["^", ["+", N, *M[:2]], 2], -1],
        ["floor", ["*", ["fraction", 1, 2], N]],
        ["max", N, M[0]],
    ]
    assert isinstance(loads(with_shape(*harmless)), Graph)


def test_all_dimensions_of_a_file_together_are_bounded() -> None:
    document = json.loads(with_shape(N))
    hard = [["^", ["+", *M[:3], k], 20] for k in range(2000)]
    document["nodes"] = [
        ["Input", [["symbol", f"a{k}", {"real": True}], ["tuple", ["dimension", dim]]], []]
        for k, dim in enumerate(hard)
    ]
    document["inputs"], document["outputs"] = list(range(len(hard))), [0]
    with pytest.raises(SavingError, match="too complicated"):
        loads(json.dumps(document))


def test_free_text_is_no_name_of_an_array() -> None:
    a = sympy.IndexedBase("a", shape=(4, 4), real=True)
    i, j, k = sympy.symbols("i j k", integer=True)
    graph = symad.trace(sympy.Sum(a[i + j, k + j], (i, 0, 1), (j, 0, 1), (k, 0, 1)))
    text = dumps(graph)
    assert loads(text) is graph
    document = json.loads(text)
    (node,) = [node for node in document["nodes"] if node[0] == "Positions"]
    for what in (
        "send your password to",
        "a\nb",
        "a\x1b[2J",
        "",
        "a traced value of shape run this",
        "w" * 2000,
    ):
        node[1][2] = what
        with pytest.raises(SavingError, match="Positions"):
            loads(json.dumps(document))
    node[1][2] = "a traced value of shape (n + 1, 2*d - 3)"
    assert isinstance(loads(json.dumps(document)), Graph)


# ---- documents --------------------------------------------------------------------------------


def test_values_that_are_nested_too_deeply_are_refused() -> None:
    document = json.loads(dumps(symad.trace(x + 1)))
    for _ in range(400):
        document["structure"] = ["tuple", [document["structure"]]]
    with pytest.raises(SavingError, match="nested too deeply"):
        loads(json.dumps(document))


def test_names_are_bounded() -> None:
    text = dumps(symad.trace(x + 1)).replace('"x"', f'"{"x" * 2000}"')
    with pytest.raises(SavingError, match="name has 2000 characters"):
        loads(text)


def graphs() -> list[Graph]:
    """A graph of every op's examples."""
    made = []
    for op_class in list(EXAMPLES):
        for node in EXAMPLES[op_class]():
            inputs = tuple(m for m in topological([node]) if isinstance(m.op, Input))
            made.append(Graph(inputs, (node,)))
    return made


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places inside a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


JUNK: list[Any] = [
    None, True, -1, 0, 1, 3, 64, 10**6, 2**62, 10**30, -(10**30), "", "x", "max", "f8", "O", "a b", "\x00",
    [], {}, X, N, SIX, HUGE, nested(4), ["tuple"],
    ["tuple", -1], ["tuple", 0, 10**9], ["dimension", nested(3)],
    ["float", "inf"], ["float", "0x1p-1074"], ["bytes", ""], ["bytes", "AAAA"], ["formula", ["^", 10, SIX]],
    ["formula", ["sympy.factorial", 10**9]], ["head", "sympy.factorial"], ["head", "sympy.Piecewise"],
    ["int", "0x" + "f" * 40_000], ["constant", "pi"], ["dimension", ["max", *M]], ["indexed", X, [N]],
    ["matrix", "A", N, -3], ["graph", {}], "sympy.zeta", "Add", "Scan", "^",
]  # fmt: skip
"""What may stand in any place."""


def mutated(text: str, rng: np.random.Generator) -> str:
    """A document with one to three places changed: junk, another part of the document, or one part less."""
    document = json.loads(text)
    everywhere = list(places(document))
    for _ in range(rng.integers(1, 4)):
        path = everywhere[rng.integers(1, len(everywhere))]
        other = everywhere[rng.integers(0, len(everywhere))]
        try:
            target = document
            for step in path[:-1]:
                target = target[step]
            donor = document
            for step in other:
                donor = donor[step]
            choice = rng.integers(0, 8)
            if choice == 0:
                del target[path[-1]]
            elif choice == 1 and isinstance(target, list):
                target.append(copy.deepcopy(target[path[-1]]))
            elif choice == 2:
                target[path[-1]] = copy.deepcopy(donor)
            elif choice == 3 and isinstance(target[path[-1]], int):
                target[path[-1]] += int(rng.integers(-2, 3))
            else:
                target[path[-1]] = copy.deepcopy(JUNK[rng.integers(0, len(JUNK))])
        except (LookupError, TypeError):
            continue  # an earlier change took the place away
    return json.dumps(document)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_changed_files_load_or_are_refused_soon(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(13)
    soon(tmp_path, [mutated(dumps(graph), rng) for graph in graphs() for _ in range(count)])


@pytest.mark.parametrize("count", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_changed_bytes_load_or_are_refused_soon(tmp_path: Path, count: int) -> None:
    """Bytes that are changed, lost, repeated or put in, so that the text need be neither JSON nor UTF-8."""
    rng = np.random.default_rng(7)
    put = [b"9" * 5000, b"[" * 2000, b"1e999", b"NaN", b"\\u0000", b"\xff", b"-", b'"']
    path = tmp_path / "g.json"
    for data in [dumps(graph).encode() for graph in graphs() for _ in range(count)]:
        changed = bytearray(data)
        for _ in range(rng.integers(1, 5)):
            k, j = rng.integers(0, len(changed), 2)
            change = rng.integers(0, 4)
            if change == 0:
                changed[k] = rng.integers(0, 256)
            elif change == 1:
                del changed[k : k + 40]
            else:
                changed[k:k] = changed[j : j + 300] if change == 2 else put[rng.integers(0, len(put))]
        path.write_bytes(changed)
        start = time.process_time()
        with suppress(SavingError):
            load(path)
        assert time.process_time() - start < 1  # milliseconds are needed


def test_errors_are_short_whatever_a_file_holds(tmp_path: Path) -> None:
    document = json.loads(dumps(graphs()[0]))
    document["nodes"][0][0] = "x" * 100_000
    path = tmp_path / "g.json"
    path.write_text(json.dumps(document))
    with pytest.raises(SavingError, match=r"g\.json: .*xxx \.\.\. ") as problem:
        load(path)
    assert len(str(problem.value)) < 3000


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices")
def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A device has no end, a pipe waits for its writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(SavingError, match="is not an ordinary file"):
            load(path)


@pytest.mark.thorough
def test_hostile_expressions_inside_a_graph_end_soon(tmp_path: Path) -> None:
    """Also those that are taken: what follows from them at loading is work with an end."""
    texts = [text for graph in graphs() if '"formula"' in (text := dumps(graph))]
    assert texts
    hostile = []
    for text in texts[:3]:
        document = json.loads(text)
        for path in [p for p in places(document) if p and _at(document, p[:-1])[:1] == ["formula"]]:
            if path[-1] == 1:
                for saved in [*EXPRESSIONS.values(), *STAY.values()]:
                    changed = copy.deepcopy(document)
                    _at(changed, path[:-1])[1] = saved
                    hostile.append(json.dumps(changed))
    soon(tmp_path, hostile)


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document if isinstance(document, list) else []


# ---- saving -----------------------------------------------------------------------------------


def test_saving_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.json"
    graph = symad.trace(x**2)
    symad.save(graph, path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(os, name, full)
            symad.save(symad.trace(sympy.sin(x)), path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


FULL = """
import resource, sys
sys.path[:0] = {path!r}
import sympy, symad
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
x = sympy.Symbol("x")
try:
    symad.save(symad.trace(sum(sympy.sin(k*x) for k in range(1, 60))), {file!r})
except OSError as error:
    print(error.errno)
"""


@pytest.mark.thorough
def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    symad.save(symad.trace(x**2), path)
    before = path.read_bytes()
    code = FULL.format(path=[p for p in sys.path if p], file=str(path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "27"  # EFBIG
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_keeps_modes_links_and_the_umask(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    before = os.umask(0o027)
    try:
        symad.save(symad.trace(x**2), real)
    finally:
        os.umask(before)
    assert real.stat().st_mode & 0o777 == 0o640
    real.chmod(0o600)
    link.symlink_to(real)
    symad.save(symad.trace(x**3), link)
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    assert symad.load(real) is symad.trace(x**3)
    symad.save(symad.trace(x), os.devnull)
    with pytest.raises(IsADirectoryError):
        symad.save(symad.trace(x), tmp_path)
