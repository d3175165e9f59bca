"""Small convolutional networks on images: a classifier, and a generator with its discriminator.

    classifier      [3×3 convolution, relu, 2×2 maximum] twice, then a matrix to the classes
    discriminator   [4×4 convolution with stride 2, leaky relu] twice, then a matrix to one score D
    generator       a matrix to a small image, relu, [4×4 transposed convolution with stride 2] twice, sigmoid

The generator's layers invert the shapes of the discriminator's. With σ the logistic function and samples
g(z), the discriminator minimizes −mean log σ(D(x)) − mean log(1 − σ(D(g(z)))), and the generator −mean log
σ(D(g(z))). Shapes: images (N, side, side, channels), side divisible by 4; codes z (N, k); classes (N,).
Sources: LeCun et al. (1998) for the classifier; Radford, Metz & Chintala, "DCGAN" (2016), section 3, without
batch norm; Goodfellow et al. (2014), the non-saturating loss of section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim, Shape
from symad.errors import ShapeError
from symad.functions import relu, sigmoid, softplus
from symad.models.layers.activations import leaky_relu
from symad.models.layers.convolution import convolve, convolve_transposed, max_pool
from symad.models.layers.losses import cross_entropy
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, he, numbers

SLOPE = 0.2
"""The slope of the leaky relu for negative numbers."""


@model
class Classifier:
    """Images to classes; ``width`` is the number of features of the first layer, half that of the second."""

    side: int
    channels: Dim
    width: Dim
    classes: Dim

    def __post_init__(self) -> None:
        _check_side(self.side)

    @property
    def shapes(self) -> Shapes:
        """W1, b1, W2, b2 and the readout W3, b3."""
        last = (self.side // 4) ** 2 * 2 * self.width
        return {
            "W1": (3, 3, self.channels, self.width),
            "b1": (self.width,),
            "W2": (3, 3, self.width, 2 * self.width),
            "b2": (2 * self.width,),
            "W3": (last, self.classes),
            "b3": (self.classes,),
        }

    def init(self, seed: int = 0) -> Parameters:
        """He's values, biases 0."""
        return _start(self.shapes, seed)

    def scores(self, p: Mapping[str, Array], x: Array) -> Array:
        """(N, side, side, channels) -> (N, classes)."""
        x = max_pool(relu(convolve(x, p["W1"], padding=1) + p["b1"]), 2)
        x = max_pool(relu(convolve(x, p["W2"], padding=1) + p["b2"]), 2)
        return x.reshape(x.shape[0], p["W3"].shape[0]) @ p["W3"] + p["b3"]

    def loss(self, p: Mapping[str, Array], x: Array, y: Array) -> Array | float:
        """The cross-entropy of the classes y (N,)."""
        return cross_entropy(self.scores(p, x), y)


@model
class Adversaries:
    """A generator from codes of size k to images, and a discriminator; ``width`` is a number of features."""

    side: int
    channels: Dim
    width: Dim
    code: Dim

    def __post_init__(self) -> None:
        _check_side(self.side)

    @property
    def discriminator_shapes(self) -> Shapes:
        """D1, d1, D2, d2, D3, d3."""
        small = (self.side // 4) ** 2 * 2 * self.width
        return {
            "D1": (4, 4, self.channels, self.width),
            "d1": (self.width,),
            "D2": (4, 4, self.width, 2 * self.width),
            "d2": (2 * self.width,),
            "D3": (small, 1),
            "d3": (1,),
        }

    @property
    def generator_shapes(self) -> Shapes:
        """G1, g1, G2, g2, G3, g3; filters in the layout of the convolutions that they transpose."""
        small = (self.side // 4) ** 2 * 2 * self.width
        return {
            "G1": (self.code, small),
            "g1": (small,),
            "G2": (4, 4, self.width, 2 * self.width),
            "g2": (self.width,),
            "G3": (4, 4, self.channels, self.width),
            "g3": (self.channels,),
        }

    @property
    def shapes(self) -> Shapes:
        """The shapes of both."""
        return self.generator_shapes | self.discriminator_shapes

    def init(self, seed: int = 0) -> Parameters:
        """Initial values of both."""
        return self.init_generator(seed) | self.init_discriminator(seed + 1)

    def init_discriminator(self, seed: int = 0) -> Parameters:
        """He's values, biases 0."""
        return _start(self.discriminator_shapes, seed)

    def init_generator(self, seed: int = 0) -> Parameters:
        """He's values, biases 0."""
        return _start(self.generator_shapes, seed)

    def discriminate(self, p: Mapping[str, Array], x: Array) -> Array:
        """D(x): (N, side, side, channels) -> (N,)."""
        x = leaky_relu(convolve(x, p["D1"], stride=2, padding=1) + p["d1"], SLOPE)
        x = leaky_relu(convolve(x, p["D2"], stride=2, padding=1) + p["d2"], SLOPE)
        return (x.reshape(x.shape[0], p["D3"].shape[0]) @ p["D3"] + p["d3"])[:, 0]

    def generate(self, p: Mapping[str, Array], z: Array) -> Array:
        """g(z): (N, k) -> (N, side, side, channels), numbers in (0, 1)."""
        small = self.side // 4
        x = relu(z @ p["G1"] + p["g1"]).reshape(z.shape[0], small, small, 2 * self.width)
        x = relu(convolve_transposed(x, p["G2"], stride=2, padding=1) + p["g2"])
        return sigmoid(convolve_transposed(x, p["G3"], stride=2, padding=1) + p["g3"])

    def discriminator_loss(self, p: Mapping[str, Array], real: Array, made: Array) -> Array:
        """−mean log σ(D(real)) − mean log(1 − σ(D(made))) for real and generated images."""
        return np.mean(softplus(-self.discriminate(p, real))) + np.mean(softplus(self.discriminate(p, made)))

    def generator_loss(self, p: Mapping[str, Array], q: Mapping[str, Array], z: Array) -> Array:
        """−mean log σ(D(g(z))): p of the generator, q of the discriminator."""
        return np.mean(softplus(-self.discriminate(q, self.generate(p, z))))


def _check_side(side: int) -> None:
    if side % 4 or side < 4:
        raise ShapeError(f"images of side {side}: two layers halve it, so it must be a multiple of 4")


def _start(shapes: Shapes, seed: int) -> Parameters:
    rng = np.random.default_rng(seed)

    def value(name: str, shape: Shape) -> np.ndarray:
        if len(shape) == 1:
            return np.zeros(numbers(shape))
        if name in ("G2", "G3"):  # with stride 2 a fourth of the 16 taps reaches each pixel
            return he(rng, shape, 4 * shape[-1])
        return he(rng, shape, int(np.prod(numbers(shape)[:-1])))

    return {name: value(name, shape) for name, shape in shapes.items()}
