"""The passes that depend on the type of a module's numbers."""

from __future__ import annotations

from functools import partial

from symad.numeric.passes.algebra.single_range import in_single_range
from symad.numeric.stages import GraphPass
from symad.transforms.scaled_norms import norms_in_range


def norms(dtype: str) -> tuple[GraphPass, ...]:
    """The pass for norms, on every backend; blocks of rows are made after it."""
    told = "no norm overflows unless its value does"
    return (GraphPass("norms", partial(norms_in_range, dtype=dtype), "stabilize", told),)


def in_range(dtype: str) -> tuple[GraphPass, ...]:
    """The last graph passes for numbers of this type, on every backend: other passes join numbers."""
    told = "every number in a product is normal in single precision"
    return () if dtype == "float64" else (GraphPass("single range", in_single_range, "", told),)
