"""Printed code releases a value's memory after the last statement that reads it, also under another name."""

import ast
import tracemalloc

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower


def lines_of(source):
    """The statements of the last function."""
    return [ast.unparse(s) for s in ast.parse(source).body[-1].body]


def test_values_end_after_their_last_reader_and_before_other_memory_is_taken():
    def steps(x, y):
        a = np.sin(x) @ y
        b = a.T @ a
        return np.exp(x @ y), b @ b

    lines = lines_of(lower(symad.trace(steps, [(200, 200)] * 2)).source)
    freed = [k for k, line in enumerate(lines) if line.startswith("del ")]
    assert len(freed) >= 2
    for k in freed:
        names = [target.id for target in ast.parse(lines[k]).body[0].targets]
        later = {n.id for s in lines[k + 1 :] for n in ast.walk(ast.parse(s)) if isinstance(n, ast.Name)}
        assert names and not later & {*names}
        assert "_product" in lines[k + 1] or "_new" in lines[k + 1]


def test_what_is_written_over_under_another_name_is_freed_by_both():
    """In the Hessian of a softmax, a helper computes −p pᵀ + diag p in the array of −p pᵀ."""
    def loss(W, x):
        return functions.logsumexp(x @ W, 1).sum()

    graph = symad.hessian(symad.trace(loss, [(20, 10), (1000, 20)]), "W")
    tree = ast.parse(lower(graph).source).body[-1]
    calls = [s for s in tree.body if isinstance(s, ast.Assign) and "_plus_diagonal" in ast.unparse(s.value)]
    pairs = [(s.value.args[0].id, s.targets[0].id) for s in calls if isinstance(s.value.args[0], ast.Name)]
    freed = [{t.id for t in s.targets} for s in tree.body if isinstance(s, ast.Delete)]
    large = [names for names in freed if any({*pair} <= names for pair in pairs)]
    assert pairs and large


def test_names_of_a_loop_are_given_up_after_it():
    def states(x, w):
        h = functions.scan(lambda h, r: np.tanh(w @ h + r), np.zeros(200), x)
        return (h @ w) @ (w @ w)

    lines = lines_of(lower(symad.trace(states, [(300, 200), (200, 200)])).source)
    (loop,) = (k for k, line in enumerate(lines) if line.startswith("for "))
    variables = {n.id for n in ast.walk(ast.parse(lines[loop]).body[0].target) if isinstance(n, ast.Name)}
    (given_up,) = (line for line in lines[loop + 1 :] if line.endswith("= None"))
    assert variables <= {target.id for target in ast.parse(given_up).body[0].targets}


@pytest.mark.parametrize("count", [3, 9])
def test_the_peak_of_a_long_chain_of_large_arrays_does_not_grow(count):
    n = sp.Symbol("n", integer=True, positive=True)

    def steps(x):
        total = x
        for k in range(count):  # arrays that cannot be overwritten, since both are read again
            total = functions.concatenate([np.sin(total[: n // 2]), np.cos(total[n // 2 :]) + k])
        return total.sum()

    x = sp.IndexedBase("x", shape=(n,))
    kernel = lower(symad.trace(steps, [x]))
    values = np.zeros(2**18)
    kernel(values)
    tracemalloc.start()
    kernel(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * values.nbytes
