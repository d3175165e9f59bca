"""Softmax and its relatives at scores beyond the range of exp, for sizes on both sides of every form."""

import mpmath
import numpy as np
import pytest

import symad
from symad.numeric import lower


def shares(scores):
    with mpmath.workdps(40):
        powers = [mpmath.exp(mpmath.mpf(s)) for s in scores.tolist()]
        return [p / mpmath.fsum(powers) for p in powers], mpmath.log(mpmath.fsum(powers))


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["c", "numpy"])
@pytest.mark.parametrize("count", [9, 1, 2, 4, 5, 8, 16, 33, 64, 65, 100])
def test_scores_beyond_the_range_of_exp(count, backend):
    def every(z):
        return symad.functions.softmax(z), symad.functions.log_softmax(z), symad.functions.logsumexp(z)

    scores = np.linspace(1000.0, 1030.0, count)[::-1] * np.where(np.arange(count) % 3 == 2, -1, 1)
    p, log_p, total = lower(symad.trace(every, [(count,)]), backend=backend)(scores)
    exact, log_total = shares(scores)
    assert np.allclose(p, [float(e) for e in exact], rtol=1e-12, atol=1e-300)
    assert np.allclose(log_p, [float(s - log_total) for s in scores.tolist()], rtol=1e-13)
    assert total == pytest.approx(float(log_total), rel=1e-15)
