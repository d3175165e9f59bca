"""Products with a number far from 1 are computed in the order in which they are written, in float32 too."""

import numpy as np
import pytest

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

KINDS = [{"style": "fast"}, {"style": "plain"}, {"backend": "c"}]
ON = [k for k in KINDS if "backend" not in k or compiler()]

ORDERS = {
    "(c v) w": lambda c, v, w: (c * v) * w,
    "c (v w)": lambda c, v, w: c * (v * w),
    "v (c w)": lambda c, v, w: v * (c * w),
    "(v c) w": lambda c, v, w: (v * c) * w,
    "(v w) c": lambda c, v, w: (v * w) * c,
    "(c v)(c w)": lambda c, v, w: (c * v) * (c * w),
    "v (w / c)": lambda c, v, w: v * (w / c),
    "v w / c": lambda c, v, w: v * w / c,
    "(c v + w) w": lambda c, v, w: (c * v + w) * w,
    "-(c v) w": lambda c, v, w: -(c * v) * w,
}

NUMBERS = [1e-25, 1e25, 1e-12]
POINTS = [(1e25, 1e20), (1e-25, 1e-20), (1e25, 1e-20), (1e-25, 1e20), (3.0, 7.0)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("options", ON, ids=str)
@pytest.mark.parametrize("name", ORDERS)
def test_values_are_those_of_numpy_in_the_written_order(name, options):
    for c in NUMBERS:
        for shape in ((5,),) if "backend" in options else ((), (5,)):
            graph = symad.trace(lambda v, w, c=c: ORDERS[name](c, v, w), [shape, shape])
            kernel = lower(graph, dtype="float32", **options)
            at = np.array(POINTS, np.float32).T
            with np.errstate(all="ignore"):
                expected = ORDERS[name](np.float32(c), *at)
                found = kernel(*at) if shape else [kernel(*point) for point in at.T]
            np.testing.assert_allclose(found, expected, rtol=1e-6)
