"""Limits of the generators: functions of 1 to 5,000 inputs, outputs, terms, calls, ... on every backend."""

from __future__ import annotations

import pytest

from tests.numeric.limits.size_cases import CASES, LARGE, WAYS, compare, mixed_outputs, sizes_of


@pytest.mark.parametrize("name", CASES)
def test_a_few_hundred_on_the_default_backend(name) -> None:
    compare(CASES[name](258), "numpy", packed=name in ("slopes", "nested"))


@pytest.mark.parametrize("way", ["plain", "runs", "cupy"])
@pytest.mark.parametrize("name", ["first_factor", "slopes", "nested", "conditions"])
def test_a_few_hundred_on_other_backends(name, way) -> None:
    compare(CASES[name](202), way, batched=name == "nested")


def test_many_arrays_on_a_gpu() -> None:
    compare(CASES["arrays"](400), "cupy")


@pytest.mark.thorough
@pytest.mark.parametrize("inputs", [2, 60])
def test_many_outputs_on_a_gpu(inputs) -> None:
    """More outputs than a kernel has parameters, of several types and shapes, lie in one array of a type."""
    compare(mixed_outputs(17, inputs), "cupy", batched=True)


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_sizes(name, way) -> None:
    for n in sizes_of(CASES[name](2), way):
        case = CASES[name](n)
        compare(case, way)
        compare(case, way, packed=True)
        if case.scalar:
            compare(case, way, batched=True)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_thousands(name, way, n) -> None:
    case = CASES[name](n)
    if case.scalar or way not in ("c", "runs"):
        compare(case, way)
        compare(case, way, packed=True)
        if case.scalar:
            compare(case, way, batched=True)
