"""Random programs of nested derivatives, loops, batches and roots against JAX, see `tests.nested.programs`.

`benchmarks/verification/nested_programs.py` runs any number of them.
"""

import pytest

pytest.importorskip("jax")
programs = pytest.importorskip("tests.nested.programs")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [*range(10), *range(12, 24)])
def test_nested_programs(seed):
    programs.judge(seed, depth=2)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seed", "backends"),
    [
        (1080, ()),  # the cotangent of a batch of tangents of loops that compute again
        (1154, ("c",)),  # a condition kept with the numbers of a step, and read by code compiled
    ],
)
def test_programs_that_failed(seed, backends):
    programs.judge(seed, depth=3, backends=backends)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_programs_of_more_kinds(seed):
    programs.judge(seed, depth=2, backends=("given",), binders=programs.MORE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_more_nested_programs(seed):
    programs.judge(seed, depth=3, backends=("numpy", "c", "runs"))


def test_every_kind_of_function_is_drawn():
    trees = [programs.drawn(seed, 2, programs.MORE) for seed in range(300)]
    assert {kind for tree in trees for kind in programs.kinds(tree)} >= set(programs.MORE)


def test_a_wrong_number_is_seen(monkeypatch):
    monkeypatch.setattr(programs.Ours, "jvp", lambda name, way, f, at, other: f(at))
    seeds = [seed for seed in range(200) if programs.drawn(seed, 1)[0] == "jvp"]
    with pytest.raises(AssertionError, match="graph"):
        for seed in seeds:
            programs.judge(seed, 1, ())
