"""When printed code gives memory back: after the last statement that reads a value, by whatever name."""

import tracemalloc

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.numpy_arrays.del_statements import Group, with_releases
from symad.numeric.numpy_arrays.texts import Name, Part, Turned, assigned, name_in
from symad.ops.arrays.shaping import slice_axis

X = sp.IndexedBase("x", shape=(3,))


def chain():
    """x, a = x[:2] and b = a[:1], of which each reads the one before."""
    (x,) = symad.trace(lambda x: x, [X]).input_nodes
    a = slice_axis(x, 0, 0, 2)
    return x, a, slice_axis(a, 0, 0, 1)


def test_names_parts_and_transposes_are_texts_that_know_what_they_are_made_of():
    name = Name("v3", 3)
    part = Part(Part(name, "0"), ":", "1:2")
    assert (part, Turned(name), name_in(part), name_in(Name("W"))) == ("v3[0][:, 1:2]", "v3.T", name, None)
    assert assigned(name, "x") == "v3[...] = x" and assigned(part, "x") == "v3[0][:, 1:2] = x"


def test_a_value_ends_after_its_last_reader():
    x, a, b = chain()
    c = slice_axis(b, 0, 0, 0)
    text = {x: Name("x"), a: Name("v1", 1), b: Name("v2", 2), c: Name("v3", 3)}
    groups = [Group([a], ["A"], [text[a]]), Group([b], ["B"], [text[b]]), Group([c], ["C"], [text[c]])]
    assert with_releases(groups, text, [c], lambda name: True) == ["A", "B", "del v1", "C"]
    assert with_releases(groups, text, [a, c], lambda name: True) == ["A", "B", "C"]
    assert with_releases(groups, text, [c], lambda name: False) == ["A", "B", "C"]


def test_memory_is_given_back_where_other_memory_is_taken():
    x, a, b = chain()
    c, d = slice_axis(b, 0, 0, 0), slice_axis(x, 0, 0, 0)
    text = {x: Name("x"), a: Name("v1", 1), b: Name("v2", 2), c: Name("v3", 3), d: Name("v4", 4)}
    loop = Group([b], ["B"], [text[b]], [Name("v5", 5)], allocates=False)
    view = Group([c], ["C"], [text[c]], allocates=False)
    first, last = Group([a], ["A"], [text[a]]), Group([d], ["D"], [text[d]])
    made = with_releases([first, loop, view, last], text, [c, d], lambda name: True)
    assert made == ["A", "B", "C", "v5 = None", "del v1, v2", "D"]
    assert with_releases([first, loop, view], text, [c], lambda name: True) == ["A", "B", "C"]


def test_a_value_is_read_through_what_is_written_where_it_is_used():
    x, a, b = chain()  # b has no statement
    c, d = slice_axis(b, 0, 0, 0), slice_axis(x, 0, 0, 0)
    text = {x: Name("x"), a: Name("v1", 1), c: Name("v3", 3), d: Name("v4", 4)}
    groups = [Group([a], ["A"]), Group([d], ["D"]), Group([c], ["C"]), Group([d], ["D"])]
    assert with_releases(groups, text, [c, d], lambda name: True) == ["A", "D", "C", "del v1", "D"]


def test_what_comes_with_another_statement_is_read_there():
    x, a, b = chain()  # b waits until c reads it, and has a name then
    c, d = slice_axis(b, 0, 0, 0), slice_axis(x, 0, 0, 0)
    text = {x: Name("x"), a: Name("v1", 1), b: Name("v2", 2), c: Name("v3", 3), d: Name("v4", 4)}
    groups = [Group([a], ["A"]), Group([d], ["D"]), Group([c, b], ["B", "C"]), Group([d], ["D"])]
    assert with_releases(groups, text, [c, d], lambda name: True) == ["A", "D", "B", "C", "del v1, v2", "D"]


def test_names_of_a_loop_are_given_up_after_it():
    x, a, b = chain()
    text = {x: Name("x"), a: Name("v1", 1), b: Name("v2", 2)}
    loop = Group([a], ["for v5 in v1:"], [text[a]], [Name("v5", 5), Name("v6", 6)])
    made = with_releases([loop, Group([b], ["B"])], text, [b], lambda name: True)
    assert made == ["for v5 in v1:", "v5 = v6 = None", "B"]


@pytest.mark.parametrize("count", [3, 9])
def test_the_peak_of_a_long_chain_of_large_arrays_does_not_grow(count):
    n = sp.Symbol("n", integer=True, positive=True)

    def steps(x):
        total = x
        for k in range(count):  # arrays that cannot be overwritten: both are read again
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
