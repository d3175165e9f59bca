"""Arrays of thousands of elements: work and certificate grow with their size, not faster."""

from __future__ import annotations

import time

import numpy as np
import pytest

import symad

MANY = 20_000


def equal(left, right, size):
    return symad.equal(symad.trace(left, [(size,)]), symad.trace(right, [(size,)]))


@pytest.mark.thorough
def test_one_element_for_all_is_refuted_with_one_point():
    start = time.process_time()
    certificate = equal(lambda v: v + 0 * v[0], lambda v: v[MANY // 2] + 0 * v, MANY)
    assert certificate.status == "refuted"
    assert time.process_time() - start < 60  # 6 s on a quiet machine, 145 before
    told = str(certificate)
    assert len(told) < 3000 and f"({MANY:,} in all)" in " ".join(told.split())
    (wrong,) = [e for e in certificate.entries if e.status == "refuted"]
    assert len(wrong.witness.point["v"]) == MANY and wrong.witness.left != wrong.witness.right


def test_elements_that_differ_at_one_point_share_its_description():
    certificate = equal(lambda v: v, lambda v: v + np.sum(v), 30)
    points = {id(e.witness.point) for e in certificate.entries}
    assert certificate.status == "refuted" and len(points) < 30


@pytest.mark.slow
@pytest.mark.parametrize("size", [501, 3000])
def test_extremes_of_many_elements_are_compared_at_points(size):
    claim = equal(lambda v: np.max(np.exp(v)) + v, lambda v: np.exp(np.max(v)) + v, size)
    assert claim.status == "undecided"
    assert any("more than 500 elements" in e.reason for e in claim.entries)
    assert equal(lambda v: np.max(v) + v, lambda v: np.max(v) + v + v[0] ** 2, size).status == "refuted"


@pytest.mark.thorough
def test_long_chains_under_a_sign_are_not_followed_to_their_end():
    def chain(v):
        b = v[0]
        for k in range(600):
            b = b + v[k % 7] * b
        return abs(b)

    assert equal(lambda v: chain(v) * 2, lambda v: chain(v) * 3, 7).status == "refuted"
