"""Contractions typeset as matrix products: the products have the values of einsum."""

import re
from itertools import product

import numpy as np
import pytest

from symad.core.graph import Node
from symad.display.typesetting import contractions  # noqa: F401  (register answers)
from symad.display.typesetting.pieces import LatexAtom, write
from symad.display.typesetting.rules import typeset
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Input

SIZES = {0: 2, 1: 3, 2: 4, 3: 5}
RANK_ONE = [(k,) for k in range(3)]
RANK_TWO = [(j, k) for j, k in product(range(3), repeat=2) if j != k]
rng = np.random.default_rng(0)


def specs():
    """Pairs of vectors and matrices, and chains of three, with every output of at most two axes."""
    made = []
    for a, b in product(RANK_ONE + RANK_TWO, repeat=2):
        every = sorted({*a, *b})
        outputs = [(), *((k,) for k in every), *((j, k) for j, k in product(every, repeat=2) if j != k)]
        made += [((a, b), out) for out in outputs]
    for out in ((0,), (3,), (0, 3), (3, 0)):
        made.append((((0, 1), (1, 2), (2, 3)), out))
        made.append((((1, 0), (2, 1), (2, 3)), out))
    made += [(((0,), (0, 1), (1,)), ()), (((0,), (1, 0), (1,)), ()), (((0, 1), (1, 2), (2,)), (0,))]
    return made


FACTOR = re.compile(
    r"\\operatorname\{diag\}\\left\((?P<diag>\w)\\right\)|(?P<name>[A-C])(?P<T>\^\{\\mathsf\{T\}\})?"
    r"|(?P<ones>\\mathbf\{1\})"
)


def product_of(text, arrays):
    """The product that a text shows, of columns and matrices; None where it shows no plain product."""
    if re.search(r"\\sum|\\odot|\\lVert|\\operatorname\{tr\}|\\left\[", text):
        return None
    made = None
    place = 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        found = FACTOR.match(text, place)
        assert found, text[place:]
        place = found.end()
        if found["ones"]:
            factor = np.ones((made.shape[1], 1))
        elif found["diag"]:
            factor = np.diag(arrays[found["diag"]])
        else:
            factor = arrays[found["name"]]
            factor = factor[:, None] if factor.ndim == 1 else factor
            factor = factor.T if found["T"] else factor
        made = factor if made is None else made @ factor
    return made


@pytest.mark.parametrize(("inputs", "output"), specs(), ids=str)
def test_products_have_the_values_of_the_contraction(inputs, output):
    arrays = {
        name: rng.normal(size=[SIZES[k] for k in labels]) for name, labels in zip("ABC", inputs, strict=False)
    }
    nodes = tuple(Node.of(Input(name, array.shape)) for name, array in arrays.items())
    op = Einsum(inputs, output)
    node = Node.of(op, nodes)
    text = write(typeset(op, node, tuple(LatexAtom(name) for name in arrays)))
    shown = product_of(text, arrays)
    expected = np.einsum(
        *(part for pair in zip(arrays.values(), inputs, strict=True) for part in pair), output
    )
    if shown is not None:
        np.testing.assert_allclose(shown.ravel(), np.asarray(expected).ravel(), rtol=1e-13)
        assert np.squeeze(shown).shape == np.shape(expected), text


def test_most_contractions_of_two_matrices_are_products():
    plain = 0
    for inputs, output in specs():
        arrays = {
            name: np.ones([SIZES[k] for k in labels]) for name, labels in zip("ABC", inputs, strict=False)
        }
        node = Node.of(Einsum(inputs, output), tuple(Node.of(Input(n, a.shape)) for n, a in arrays.items()))
        text = write(typeset(node.op, node, tuple(LatexAtom(name) for name in arrays)))
        plain += product_of(text, arrays) is not None
    assert plain > 60
