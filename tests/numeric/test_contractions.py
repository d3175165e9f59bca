"""Contractions, however they are written, are NumPy's einsum: plain and fast text, and compiled kernels."""

import numpy as np
import pytest

import symad
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
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
