"""Graphs, kernels and certificates in other processes: pickled, copied, and called by workers."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, topological
from symad.errors import SavingError
from symad.numeric import lower
from symad.numeric.kernel import Kernel, compile_source
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from symad.verification.certificate.certificate import RefutedError

x, y = sp.symbols("x y")
f = sp.exp(x * y) + sp.sin(x) / (1 + y**2)


def ways() -> dict[str, Callable[[Any], Any]]:
    """How an object may be carried over."""
    cloudpickle = pytest.importorskip("cloudpickle")
    found: dict[str, Callable[[Any], Any]] = {
        f"pickle {p}": lambda value, p=p: pickle.loads(pickle.dumps(value, p))
        for p in range(2, pickle.HIGHEST_PROTOCOL + 1)
    }
    return {
        **found,
        "cloudpickle": lambda value: cloudpickle.loads(cloudpickle.dumps(value)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }


@pytest.mark.parametrize("op_class", list(EXAMPLES), ids=lambda c: c.__name__)
def test_a_graph_of_every_op_is_itself_again(op_class: Any) -> None:
    for node in EXAMPLES[op_class]():
        graph = Graph(tuple(m for m in topological([node]) if isinstance(m.op, Input)), (node,))
        assert pickle.loads(pickle.dumps(graph)) is graph


@pytest.mark.thorough
def test_every_way_gives_the_graph_the_kernel_and_the_certificate() -> None:
    graph = symad.value_and_gradient(f)
    kernels = [lower(graph, b, packed=p) for b in ("numpy", "c", "runs") for p in (False, True)]
    kernels.append(lower(graph, "numpy", "float32"))
    kernels.append(lower(graph, style="plain"))
    certificate = symad.check(x**2 * y)
    for way in ways().values():
        assert way(graph) is graph
        assert way([graph, {"g": graph}]) == [graph, {"g": graph}]
        for kernel in kernels:
            again = way(kernel)
            point = (np.array([0.3, 1.2]),) if kernel.packed else (0.3, 1.2)
            for one, other in zip(again(*point), kernel(*point), strict=True):
                assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype
            assert repr(again) == repr(kernel) and again.source == kernel.source
        assert str(way(certificate)) == str(certificate)
        assert way(certificate).recheck().status == "proved"


def test_kernels_with_arrays() -> None:
    kernel = lower(symad.gradient(symad.trace(lambda a: np.sum(np.tanh(a) ** 2), [(5,)])), "c")
    values = np.linspace(-1, 1, 5)
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(values), kernel(values))


def test_an_error_keeps_its_certificate() -> None:
    certificate = symad.verify(x**3, x, gradient=2 * x**2)
    with pytest.raises(RefutedError) as caught:
        certificate.raise_if_refuted()
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.certificate.status == "refuted"


def test_what_cannot_be_saved_is_named() -> None:
    class mine(sp.Function):
        def fdiff(self, argindex: int = 1) -> Any:
            return sp.S.One

    graph = symad.trace(mine(x))
    with pytest.raises(SavingError, match=r"function mine.*register_function"):
        pickle.dumps(graph)
    assert copy.deepcopy(graph) is graph
    kernel = compile_source("g", "def g(x):\n    return x\n")
    with pytest.raises(TypeError, match="kernel g was not made by lower"):
        pickle.dumps(kernel)
    assert repr(kernel) == "<Kernel g>"


def test_a_kernel_is_shown_in_one_line() -> None:
    kernel = lower(f, "c")
    assert repr(kernel) == f"<Kernel {kernel.name}(x, y), backend='c', dtype='float64'>"
    assert repr(lower(f, packed=True)).endswith("backend='numpy', dtype='float64', packed=True>")
    strange = sp.Symbol("a\nb\x1b[2J", real=True)
    assert "\n" not in repr(lower(strange**2)) and "\x1b" not in repr(lower(strange**2))
    assert "return" in kernel.source


# ---- workers ----------------------------------------------------------------------------------

POINTS = [(0.1 * k, 1 - 0.1 * k) for k in range(6)]
CONTEXTS = [c for c in ("fork", "spawn", "forkserver") if c in multiprocessing.get_all_start_methods()]


def same(found: list[Any], kernel: Kernel | Graph) -> None:
    expected = [kernel(*point) for point in POINTS]
    assert [[float(v) for v in value] for value in found] == [[float(v) for v in value] for value in expected]


@pytest.mark.thorough
@pytest.mark.parametrize("method", CONTEXTS)
def test_processes_call_kernels_and_graphs(method: str) -> None:
    graph = symad.gradient(f)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        same(pool.starmap(lower(graph, "c"), POINTS), lower(graph, "c"))
        same(pool.starmap(graph, POINTS), graph)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        same(list(executor.map(lower(graph), *zip(*POINTS, strict=True))), lower(graph))


def test_threads_share_a_kernel() -> None:
    kernel = lower(symad.gradient(f), "c")
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        for _ in range(20):
            same(list(executor.map(kernel, *zip(*POINTS, strict=True))), kernel)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(backend: str) -> None:
    joblib = pytest.importorskip("joblib")
    kernel = lower(symad.gradient(f), "c")
    same(joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(kernel)(*p) for p in POINTS), kernel)


FORKS = """
import faulthandler, os, sys, threading
sys.path[:0] = {path!r}
import numpy as np, sympy, symad
from symad.numeric import lower

x = sympy.Symbol("x")
stop = threading.Event()

def trace():
    k = 0
    while not stop.is_set():
        k += 1
        symad.gradient(symad.trace(lambda a: np.sum(np.sin(a)*k), [(k % 7 + 1,)]))
        symad.trace(sympy.sin(k*x) + x**k)

thread = threading.Thread(target=trace)
thread.start()
failed = 0
for k in range(1, 26):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(30, exit=True)  # ends a child that hangs
        g = symad.gradient(symad.trace(lambda a: np.sum(np.cos(a)*k), [(3,)]))
        right = np.allclose(g(np.ones(3)), -np.sin(1)*k)
        right = right and abs(symad.gradient(sympy.cos(k*x))(0.5) + k*np.sin(k*0.5)) < 1e-12
        os._exit(0 if right else 1)
    failed += os.waitpid(child, 0)[1] != 0
stop.set()
thread.join()
print(failed)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_while_another_thread_traces() -> None:
    code = FORKS.format(path=[p for p in sys.path if p])
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr[-2000:]
