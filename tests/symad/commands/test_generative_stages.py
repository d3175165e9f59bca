"""The quick stages about kernels and generative models report the expected findings."""

import pytest

from symad.cli.tour.runner import run_stage
from symad.cli.tour.stages import all_stages

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("name", ["kernels", "divergences", "autoencoder"])
def test_stage(name):
    pytest.importorskip("sklearn")
    found = run_stage(all_stages()[name], None, lambda step: None)
    assert found.ok, (found.failures, [f.text for f in found.findings if not f.ok])
    assert found.status == "proved"
    assert found.modes == 8
    assert len(found.findings) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vae", "gan", "diffusion"])
def test_stage_that_trains(name):
    pytest.importorskip("sklearn")
    found = run_stage(all_stages()[name], None, lambda step: None)
    assert found.ok, (found.failures, [f.text for f in found.findings if not f.ok])
    assert found.status in ("proved", "tested")
