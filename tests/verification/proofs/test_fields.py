"""Extensions of prime fields by tables of products, against the definition by pairs of coefficients."""

from random import Random

import numpy as np
import pytest

from symad.verification.fields.prime_fields import Field
from symad.verification.fields.primes import random_primes


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("bits", [31, 61])
def test_products_contractions_inverses_and_roots(levels, bits):
    rng = Random(levels)
    field = Field(tuple(random_primes(rng, 5, bits, ())), levels)

    def drawn(*shape):
        parts = [field.random(rng, shape)[..., 0] for _ in range(1 << levels)]
        return np.stack(parts, axis=-1)

    def product(a, b):  # (a0 + a1 t)(b0 + b1 t), level by level
        return field._bilinear(lambda x, y: x * y % field.modulus(x.ndim), a, b, levels)

    a, b, c = drawn(3, 2), drawn(3, 2), drawn(2, 4)
    assert np.array_equal(field.mul(a, b), product(a, b))
    inverse, zero = field.inverse(a)
    assert not zero.any()
    assert np.array_equal(product(a, inverse), np.broadcast_to(field.unit(a.ndim), a.shape))
    root, missing = field.square_root(product(a, a))
    assert not missing.any()
    assert np.array_equal(product(root, root), product(a, a))
    terms = [
        product(np.repeat(a[:, :, None, k], 4, axis=2), np.repeat(c[:, None, k], 3, axis=1)) for k in (0, 1)
    ]
    assert np.array_equal(field.einsum("ij,jk->ik", a, c), field.add(*terms))
