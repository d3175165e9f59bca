"""Names in a traced function; tracing leaves SymPy, NumPy and the function unchanged in all threads."""

import math
import threading

import numpy as np
import pytest
import sympy

import symad
from symad.errors import TraceError
from symad.ops.elementwise.apply import Apply, apply
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


def test_sympy_is_itself_while_a_function_is_traced():
    seen = []

    def f(x):
        seen.append(dict(vars(sympy.core.function.FunctionClass)))
        return sympy.sin(x) + square_of_sine(x)

    before = dict(vars(sympy.core.function.FunctionClass))
    assert symad.trace(f, [(2,)])(np.array([0.2, 0.3])) == pytest.approx(
        [np.sin(v) + np.sin(v) ** 2 for v in (0.2, 0.3)]
    )
    assert seen == [before]
    assert symad.trace(sympy.sin, [()])(0.2) == np.sin(0.2)


def square_of_sine(x):
    """Another function that the traced one names."""
    return by_name(x) * by_name(x)


by_name = sympy.sin


def countdown(x, steps):
    return sympy.tanh(x) if not steps else sympy.cos(countdown(x, steps - 1))


def test_functions_that_name_each_other_read_sympys():
    graph = symad.trace(lambda v: countdown(v, 2), [(2,)])
    assert graph(np.array([0.1, 0.4])) == pytest.approx(np.cos(np.cos(np.tanh([0.1, 0.4]))))
    assert countdown(sympy.Symbol("t"), 1) == sympy.cos(sympy.tanh(sympy.Symbol("t")))


def test_variables_of_enclosing_functions_are_shared():
    calls = []

    def make():
        count = 0

        def step(v):
            nonlocal count
            count += 1
            return sympy.exp(v) * count

        def counted():
            return count

        return step, counted

    step, counted = make()
    scale = sympy.erf
    graph = symad.trace(lambda v: calls.append(1) or step(v) + step(v) + scale(v), [()])
    assert counted() == 2
    assert len(calls) == 1
    assert graph(0.5) == pytest.approx(3 * np.exp(0.5) + float(sympy.erf(0.5)))


def test_a_name_that_changes_while_the_function_runs_is_read_anew(monkeypatch):
    monkeypatch.setitem(globals(), "by_name", sympy.cos)

    def f(v):
        first = by_name(v)
        globals()["by_name"] = sympy.sin
        return first - by_name(v)

    graph = symad.trace(lambda v: f(v) + 0, [(1,)])
    assert graph(np.array([0.3])) == pytest.approx(np.cos(0.3) - np.sin(0.3))


def test_stand_ins_are_classes_as_sympys_functions_are():
    told = []

    def f(v):
        t = sympy.Symbol("t")
        wave = sympy.sin(t) + sympy.sin(2 * t)
        told.append((isinstance(sympy.sin(t), sympy.sin), len(wave.atoms(sympy.sin)), wave.has(sympy.sin)))
        kind = type(sympy.sin(t))
        told.append((kind in {sympy.sin}, {kind: 1}[sympy.sin], sympy.sin.__name__))
        return sympy.sin(v)

    symad.trace(f, [(2,)])
    assert told == [(True, 2, True), (True, 1, "sin")]


class Wave:
    """A model with a method, whose names are read as they are."""

    def __call__(self, x):
        return self.inner(x)

    def inner(self, x):
        return sympy.sin(x) * 2


def test_a_method_makes_expressions_of_scalars_and_refuses_arrays():
    assert symad.trace(Wave(), [()])(0.4) == pytest.approx(2 * np.sin(0.4))
    with pytest.raises(TraceError, match=r"a SymPy expression of a traced value.*return sympy.sin\(x\) \* 2"):
        symad.trace(Wave(), [(3,)])


def test_other_threads_see_numpy_and_sympy_as_they_are():
    """While one thread traces, the results of another one are plain, and sizes of work do not matter."""
    traced, seen = threading.Event(), threading.Event()
    found = {}

    def other():
        traced.wait(30)
        found["zeros"] = np.zeros(3)
        found["array"] = np.array([1, 2])
        found["full"] = np.full(2, 1.5)
        found["sine"] = sympy.sin(sympy.Symbol("t"))
        found["vector"] = np.vectorize(lambda v: v + 1)(np.arange(3))
        seen.set()

    def f(x):
        filled = np.zeros(2)
        traced.set()
        assert seen.wait(30)
        filled[0] = sympy.sin(x)
        return np.sum(filled) + np.array([x, x])[1]

    thread = threading.Thread(target=other)
    thread.start()
    graph = symad.trace(f, [()])
    thread.join()
    assert graph(0.5) == pytest.approx(np.sin(0.5) + 0.5)
    assert [type(found[k]) for k in ("zeros", "array", "full", "vector")] == [np.ndarray] * 4
    assert found["array"].dtype == np.array(1).dtype
    assert found["sine"] == sympy.sin(sympy.Symbol("t"))
    found["zeros"][0] = 4.0  # an array like any other
    assert found["zeros"].tolist() == [4.0, 0.0, 0.0]


def test_ops_hold_the_function_and_not_its_stand_in():
    def f(x):
        return Proxy(apply(sympy.erf, number(x))) + np.vectorize(sympy.erf)(x)

    graph = symad.trace(f, [(2,)])
    heads = [node.op.head for node in graph.nodes if isinstance(node.op, Apply)]
    assert heads
    assert all(head is sympy.erf for head in heads)
    assert symad.loads(symad.dumps(graph))(np.array([0.1, 0.2])) == pytest.approx(
        [2 * math.erf(0.1), 2 * math.erf(0.2)]
    )
