"""Kernels, distributions, diffusion, sampling: wrong input is named, with what to do."""

import re

import numpy as np
import pytest

from symad.errors import ShapeError, SymadError
from symad.models.generative import diffusion, kernels
from symad.models.generative import divergences as dv
from symad.models.generative import gaussian_process as gp
from symad.models.generative.vae import VAE
from symad.numeric.eager.pairwise import pairwise

POINTS = np.random.default_rng(0).normal(size=(6, 2))
RBF, LENGTH = kernels.rbf(), {kernels.length: 1.0}
MODEL = diffusion.Diffusion(2, (8,))
BETA, ALPHA_BAR = diffusion.schedule(5)


def process(noise=0.1, points=POINTS, targets=None, kernel=RBF, values=LENGTH):
    return gp.condition(kernel, values, noise, points, np.zeros(len(points)) if targets is None else targets)


def test_a_kernel_matrix_that_is_not_positive_definite():
    """The error names the smallest eigenvalue and a jitter; with that jitter it works."""
    twice = np.concatenate([POINTS, POINTS])
    with pytest.raises(SymadError, match=r"smallest eigenvalue is .*raise the noise \(jitter\) above"):
        process(0.0, twice)
    lowest = np.linalg.eigvalsh(kernels.gram(RBF, twice, None, LENGTH))[0]
    assert np.isfinite(process(10 * abs(lowest) + 1e-12, twice).log_likelihood)
    indefinite = kernels.gram(RBF, POINTS, None, LENGTH) - 2 * np.eye(6)
    with pytest.raises(SymadError, match=re.escape(f"{np.linalg.eigvalsh(indefinite)[0]:.3e}")):
        process(-2.0)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_a_kernel_without_variance(bad):
    with pytest.raises(SymadError, match=r"variance of the kernel .* is positive"):
        process(kernel=kernels.variance * RBF, values=LENGTH | {kernels.variance: bad})


def test_zero_deviation_of_pixels():
    with pytest.raises(SymadError, match="deviation of the pixels is positive, not 0"):
        VAE(6, 4, 2, deviation=0.0)


def test_data_that_are_not_finite():
    for points, targets in ((POINTS * np.nan, None), (POINTS, np.full(6, np.inf))):
        with pytest.raises(SymadError, match="not finite"):
            process(points=points, targets=targets)


@pytest.mark.parametrize("p", [[-0.5, 1.5], [0.5, 0.6], [0.2, 0.2], [np.nan, 1.0]])
@pytest.mark.parametrize("of", [dv.kl, dv.jensen_shannon, dv.best_discriminator])
def test_probabilities_out_of_range(p, of):
    for arguments in ((p, [0.5, 0.5]), ([0.5, 0.5], np.array(p))):
        with pytest.raises(SymadError, match="not a probability vector"):
            of(*arguments)


def test_good_probabilities_as_lists():
    expected = 0.25 * np.log(0.5) + 0.75 * np.log(1.5)
    assert dv.kl([0.25, 0.75], [0.5, 0.5]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "arguments", [(0,), (10, 0.1, 1.5), (10, 0.0, 0.1), (10, 0.2, 0.1), (10, -0.1, 0.1), (10, np.nan, 0.1)]
)
def test_schedules_out_of_range(arguments):
    with pytest.raises(SymadError, match="diffusion schedule needs"):
        diffusion.schedule(*arguments)


def test_steps_out_of_range():
    p = MODEL.init(0)
    for t in (0, -1, 6):
        with pytest.raises(SymadError, match=rf"steps of this schedule are 1..5, not {t}"):
            MODEL.score(p, POINTS, t, ALPHA_BAR)
    for steps in (0, 6):
        with pytest.raises(SymadError, match=rf"1..5 steps with this schedule, not {steps}"):
            MODEL.sample_ddim(p, 3, BETA, steps)
    with pytest.raises(SymadError, match="pairs of a sine and a cosine, not 3"):
        diffusion.time_features([1], 3, 10)


def test_dimensions_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"need targets \(N,\)"):
        process(targets=np.zeros(5))
    with pytest.raises(ShapeError, match=r"\(6, 2\) and \(3, 3\)"):
        process().predict(np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="axis 0 of y gives N = 5, but axis 0 of xs gives N = 6"):
        gp.fit(RBF, POINTS, np.zeros(5))
    with pytest.raises(ShapeError, match="live on the same points"):
        dv.kl([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(ShapeError, match="axis 1 of x must have size 2"):
        MODEL.graph(4)(
            *MODEL.init(0).values(), np.zeros((4, 3)), np.zeros((4, 2)), np.ones(4), np.zeros((4, 16))
        )
    vae = VAE(6, 4, 2)
    with pytest.raises(ShapeError, match="axis 0 of noise must have size 3"):
        vae.graph(3)(*vae.init(0).values(), np.zeros((3, 6)), np.zeros((2, 2)))
    with pytest.raises(ShapeError):
        pairwise(lambda x, y: (x - y).dot(x - y), POINTS, np.zeros((4, 3)))
