"""The backend in CONTRIBUTING.md works if it is added as the page says: in one file, and by one line."""

import re
from pathlib import Path

import numpy as np
import pytest

import symad
from symad import functions
from symad.models.layers.convolution import convolve
from symad.numeric import lower
from symad.numeric.lowering import BACKENDS

jax = pytest.importorskip("jax")
ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def recipe():
    """The only code block of the page that defines a backend."""
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    (found,) = [b for b in blocks if b.startswith('"""A backend for JAX')]
    return found


@pytest.fixture
def backend(tmp_path, monkeypatch):
    (tmp_path / "jax_backend_of_a_stranger.py").write_text(recipe(), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(BACKENDS, "jax of a stranger", "jax_backend_of_a_stranger")
    with jax.enable_x64(True):
        yield "jax of a stranger"


def recurrent(np_, w, x):
    h = np_.zeros(3)
    for k in range(5):
        h = np_.tanh(w @ h + x[k])
    return np_.sum(h**2)


def recurrence(w, x):
    return np.sum(functions.fold(lambda h, u: np.tanh(w @ h + u), np.zeros(3), x) ** 2)


def states(w, x):
    return np.sum(functions.scan(lambda h, u: np.tanh(w @ h + u), np.zeros(3), x) ** 2)


def all_states(np_, w, x):
    h, total = np_.zeros(3), 0.0
    for k in range(5):
        h = np_.tanh(w @ h + x[k])
        total = total + np_.sum(h**2)
    return total


def heat(u):
    inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return (inner**2).sum()


def in_jax(call):
    """The same call with JAX's functions."""
    return lambda *args: call(jax.numpy, *args)


def image_convolution(x, w):
    dimensions = ("NHWC", "HWIO", "NHWC")
    padding = ((1, 1), (1, 1))
    made = jax.lax.conv_general_dilated(x, w, (2, 2), padding, dimension_numbers=dimensions)
    return (made**3).sum()


CASES = {
    "the last state of a loop": (recurrence, in_jax(recurrent), [(3, 3), (5, 3)]),
    "all states of a loop": (states, in_jax(all_states), [(3, 3), (5, 3)]),
    "a stencil": (heat, heat, [(6, 7)]),
    "a convolution of sequences": (
        lambda u, k: np.sum(np.convolve(u, k) ** 3),
        lambda u, k: (jax.numpy.convolve(u, k) ** 3).sum(),
        [(9,), (3,)],
    ),
    "a convolution of images": (
        lambda x, w: (convolve(x, w, stride=2, padding=1) ** 3).sum(),
        image_convolution,
        [(2, 9, 8, 2), (3, 3, 2, 4)],
    ),
}


def test_the_recipe_is_short():
    assert len(recipe().splitlines()) < 40


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_the_backend_of_the_recipe_runs(name, backend):
    ours, theirs, shapes = CASES[name]
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape) for shape in shapes]
    kernel = lower(symad.value_and_gradient(symad.trace(ours, shapes)), backend)
    places = tuple(range(len(shapes)))
    expected = jax.value_and_grad(theirs, places)(*args)
    for found in (kernel(*args), jax.jit(kernel.function)(*args)):  # as it is, and compiled
        leaves = jax.tree_util.tree_leaves(found)
        for one, other in zip(leaves, jax.tree_util.tree_leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert isinstance(jax.tree_util.tree_leaves(kernel(*args))[0], jax.Array)
