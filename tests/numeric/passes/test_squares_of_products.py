"""u·u of a product u is the square of u, and not the product of the squares of its factors."""

import numpy as np
import pytest

import symad
from symad.numeric import lower

FUNCTIONS = {
    "square": lambda a, c: (c * a) * (c * a),
    "of a quotient": lambda a, c: (c / (1 / a)) * (c / (1 / a)),
    "in a root": lambda a, c: np.sqrt((c * a) * (c * a) + 1),
    "cube": lambda a, c: (c * a) * (c * a) * (c * a),
    "square of a square": lambda a, c: ((c * a) * (c * a)) * ((c * a) * (c * a)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", [{}, {"style": "plain"}, {"backend": "c"}])
def test_only_the_value_itself_overflows(name, form):
    f = FUNCTIONS[name]
    a = np.array([1e300, -2e-300, 3e200, 0.5])
    c = np.array([2e-300, 1e300, 1e-200, 3.0])
    kernel = lower(symad.trace(f, [(4,), (4,)]), **form)
    wanted = f(a, c)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(kernel(a, c), wanted, rtol=1e-14)


def test_a_square_costs_one_product_more():
    source = lower(symad.trace(FUNCTIONS["square"], [(4,), (4,)])).source
    body = source[source.rindex("_checked(") :]
    assert body.count("*") == 2
