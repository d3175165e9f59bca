"""The tour's stages about sparsity report the expected findings."""

import pytest

from symad.cli.tour.runner import run_stage
from symad.cli.tour.stages import all_stages

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("name", ["grid energy", "brusselator"])
def test_stage(name, tmp_path):
    outcome = run_stage(all_stages()[name], tmp_path, lambda step: None)
    assert outcome.ok, (outcome.failures, outcome.findings)
    assert len(outcome.findings) == 3
