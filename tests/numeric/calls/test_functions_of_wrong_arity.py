"""Functions of a wrong number of arguments: the error says what is called with what."""

import operator

import numpy as np
import pytest

import symad
from symad import functions
from symad.errors import TraceError
from symad.gpu import attention, pairwise

Q, X = np.ones((1, 1, 3, 2)), np.ones((3, 2))

TOO_FEW = r"f is <lambda>\(a\): too many positional arguments; give a function of \(x, y\)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": lambda: 1}, r"score is <lambda>\(\): too many .* function of \(s, b, h, i, j\)"),
        (
            {"score": lambda s, b, h, i: s},
            r"score is <lambda>\(s, b, h, i\): too many .*params holds nothing",
        ),
        ({"score": lambda s, b, h, i, j, w: s + w}, "score asks for parameter w; params holds nothing"),
        ({"score": lambda s, b, h, i, j, *, w: s + w}, "score asks for parameter w; params holds nothing"),
        ({"score": lambda s, /, b, h, i, j, w=0: s, "mask": lambda i, j: i < j}, r"mask is <lambda>\(i, j\)"),
        ({"score": max}, "score is <built-in function max>, which does not say what it takes"),
        ({"mask": 3}, r"mask is 3; give a function of \(b, h, i, j\)"),
    ],
)
def test_scores_and_masks(options, message):
    with pytest.raises(TraceError, match=message):
        attention(Q, Q, Q, **options)
    with pytest.raises(TraceError, match=message):
        symad.trace(lambda q: functions.attention(q, q, q, **options), [(3, 2)])


@pytest.mark.parametrize(
    ("f", "params", "message"),
    [
        (lambda a: a[0], {}, TOO_FEW),
        (lambda a, b, w: w, {}, "f asks for parameter w; params holds nothing"),
        (lambda a, b: a[0], {"w": 1.0}, "params holds w, but .*f takes only a, b"),
        (operator.itemgetter, {}, "give a function of"),
    ],
)
def test_functions_of_pairs(f, params, message):
    with pytest.raises(TraceError, match=message):
        pairwise(f, X, X, params=params)
    with pytest.raises(TraceError, match=message):
        symad.trace(lambda x: functions.pairwise(f, x, x, params=params), [(3, 2)])


def test_functions_that_take_everything_get_everything():
    expected = np.full(3, 3 * 2.5)
    f = lambda *points, **params: params["w"] + points[0][0] * points[1][1]  # noqa: E731
    found = pairwise(f, X, X, params={"w": 1.5})
    np.testing.assert_allclose(np.ravel(found), expected)


def test_steps_of_loops():
    with pytest.raises(
        TraceError, match=r"scan: step is <lambda>\(c\): too many .* of \(state, inputs of the step\)"
    ):
        symad.trace(lambda x: functions.scan(lambda c: c, 0.0, x), [(3,)])
    with pytest.raises(
        TraceError, match=r"fold: step is <lambda>\(c, x, y\): missing a required argument: 'y'"
    ):
        symad.trace(lambda x: functions.fold(lambda c, x, y: c, 0.0, (x, x)), [(3,)])
    with pytest.raises(TraceError, match=r"associative_scan: combine is <lambda>\(e\)"):
        symad.trace(lambda x: functions.associative_scan(lambda e: e, x), [(3,)])
