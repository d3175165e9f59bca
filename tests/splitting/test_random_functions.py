"""Random functions of data: what is proved holds in numbers, what is refuted is wrong there."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from tests.splitting.whole_and_parts import agree, is_wrong_at_its_witness

n, d = sp.symbols("n d", integer=True, positive=True)
INPUTS = [sp.IndexedBase(name, shape=s) for name, s in (("X", (n, d)), ("y", (n,)), ("w", (d,)), ("k", (3,)))]

STEPS = [
    lambda a, b, x: a + b,
    lambda a, b, x: a * b,
    lambda a, b, x: a / (1 + b * b),
    lambda a, b, x: np.tanh(a),
    lambda a, b, x: a.sum(axis=-1),
    lambda a, b, x: a.mean(axis=0),
    lambda a, b, x: np.max(a, axis=0),
    lambda a, b, x: a @ b,
    lambda a, b, x: functions.softmax(a, axis=0),
    lambda a, b, x: functions.softmax(a, axis=-1),
    lambda a, b, x: functions.logsumexp(a, axis=0),
    lambda a, b, x: a.T,
    lambda a, b, x: a[:, None],
    lambda a, b, x: a.reshape(-1),
    lambda a, b, x: a / x.shape[0],
    lambda a, b, x: a * x.shape[0],
    lambda a, b, x: np.where(a > 0.4, b, 0),
    lambda a, b, x: a - a.mean(axis=0),
    lambda a, b, x: functions.log_softmax(a, axis=-1),
    lambda a, b, x: np.concatenate([a, b]),
    lambda a, b, x: np.stack([a, b]),
    lambda a, b, x: np.exp(-a * a),
    lambda a, b, x: np.minimum(a, b),
    lambda a, b, x: np.prod(a, axis=0),
    lambda a, b, x: np.cumsum(a, axis=-1),
    lambda a, b, x: a[1:],
]


def random_function(seed):
    """A few random steps from the inputs; steps whose shapes do not fit are left out."""

    def f(x, y, w, k):
        rng = np.random.default_rng(seed)
        pool = [x, y, w, k]
        for _ in range(int(rng.integers(3, 9))):
            step, i, j = (int(rng.integers(length)) for length in (len(STEPS), len(pool), len(pool)))
            try:
                pool.append(STEPS[step](pool[i], pool[j], x))
            except (symad.errors.SymadError, ValueError, TypeError, IndexError):
                continue
        return tuple(pool[4:]) or (x.sum(),)

    return symad.trace(f, INPUTS)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_of_a_random_function_holds_in_numbers(seed):
    graph = random_function(seed)
    for output in graph.outputs:
        one = graph.with_outputs((output,), None)
        for function in (one, symad.gradient(one, "w")) if output.shape == () else (one,):
            found = symad.splits(function, {"X": 0, "y": 0})
            if found.status == "proved":
                agree(found, 1e-9)
            elif found.status == "refuted":
                assert is_wrong_at_its_witness(found)
