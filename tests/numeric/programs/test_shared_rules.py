"""Rules of plain and fast code: contractions compute einsum, and a name stands for one helper."""

import numpy as np
import pytest
import scipy.special
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2}
SPECS = [
    *("a,a->", "ab,ab->", "ab,ba->", "ab->ba", "abc->cab", "abc->ac", "abc->b", "aa->", "aa->a"),
    *("ab,b->a", "b,ab->a", "ab,bc->ac", "ab,cb->ac", "ba,bc->ac", "ab,bc->ca", "a,b->ab", "a,b->ba"),
    *("abc,cd->abd", "cd,abc->abd", "abc,dc->adb", "dc,abc->adb", "dc,acb->adb", "abc,cd->dab"),
    *("abc,abd->acd", "abc,abd->cd", "abc,abd->dc", "abc,adc->abd", "abc,acd->adb", "abc,acd->abd"),
    *("abc,bcd->ad", "abc,cbd->ad", "abcd,cde->abe", "abcd,bce->aed", "ab,cd->acbd", "ab,bc,cd->ad"),
    *("abc,c->ab", "eab,ebc->eac", "ab,b,b->a"),
    *("ab,ab->a", "ab,ab->b", "ab,ac->abc", "ab,b->ab", "abc,b->abc", "ab,cb->", "abc,c->a"),
]


@pytest.mark.parametrize("style", ["plain", "fast", "c"])
@pytest.mark.parametrize("spec", SPECS)
def test_every_way_to_write_a_contraction(spec, style):
    given = spec.split("->")[0].split(",")
    shapes = [tuple(SIZES[x] for x in part) for part in given]
    if any(len(set(part)) < len(part) for part in given):
        shapes = [(3, 3)]
    rng = np.random.default_rng(3)
    values = [rng.normal(size=shape) for shape in shapes]
    graph = symad.trace(lambda *arrays: np.einsum(spec, *arrays), shapes)
    kernel = lower(graph, "c") if style == "c" else lower(graph, style=style)
    found, expected = kernel(*values), np.einsum(spec, *values)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_helpers_of_one_name_are_one_function(style):
    """A softmax in place, and a softmax of a broadcast array."""

    def both(y, w):
        return functions.softmax(np.exp(y)), functions.softmax(np.broadcast_to(w, (3, 4)))

    y, w = np.linspace(-1, 1, 12).reshape(3, 4), np.arange(4.0)
    found = lower(symad.trace(both, [(3, 4), (4,)]), style=style)(y, w)
    np.testing.assert_allclose(found[0], scipy.special.softmax(np.exp(y), axis=1), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.tile(scipy.special.softmax(w), (3, 1)), rtol=1e-14)


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_stacked_integers_are_floats(style):
    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda x: np.stack([2 * n, n]), [sp.IndexedBase("x", shape=(n,))])
    found = lower(graph, style=style)(np.ones(3))
    assert found.dtype == np.float64 and found.tolist() == [6.0, 3.0]
