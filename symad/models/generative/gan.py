"""Generative adversarial networks: a critic that distinguishes samples from data, and a generator against it.

With samples g(z), z ~ N(0, I), scores v(x) of the critic and a `Contest` (a, b) of increasing functions,

    the critic maximizes E a(v(x)) − E b(v(g(z))),
    the generator minimizes −E b(v(g(z)))  (saturating)  or  −E a(v(g(z)))  (non-saturating).

A divergence D_f gives the contest a = T, b = f*(T), so that the critic's maximum is D_f (f-GAN). For that
of the GAN, a = log σ(v) and b = −log(1 − σ(v)): the maximum is reached at the discriminator
D* = σ(v) = p/(p + q) and is −log 4 + 2 JS. Every such loss is one line: least squares and hinge are
further examples, and `contest` makes one from each f-divergence. a = b = v is Wasserstein's; its critic must
be Lipschitz, by clipped weights or by

    penalty λ E (|∇_x v(x̂)| − 1)²,   x̂ = s x + (1 − s) g(z),   s ~ U(0, 1),

a loss that contains a gradient, which training differentiates once more. Conditional: a one-hot class c (N,
C) is appended to the inputs of both networks.

Sources: Goodfellow et al., "Generative adversarial nets" (2014), equation 1 and theorem 1; Nowozin, Cseke,
Tomioka, "f-GAN" (2016), equation 6; Arjovsky, Chintala, Bottou, "Wasserstein GAN" (2017), equation 2;
Gulrajani et al., "Improved training of Wasserstein GANs" (2017), equation 3; Mirza and Osindero (2014) for
the condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad import functions
from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.graph import Graph
from symad.derivatives.jacobian import gradient
from symad.errors import SymadError
from symad.models.generative import divergences
from symad.models.generative.conditional import class_shapes, with_class
from symad.models.generative.divergences import v
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, part, prefixed, trace_model
from symad.tracing import trace

N = sympy.Symbol("N", integer=True, positive=True)


@dataclass(frozen=True)
class Contest:
    """The gain of a score v on data, a(v), and its cost on samples, b(v), as SymPy expressions.

    ``aim`` is the generator's objective for v(g(z)) if it is neither a nor −b.
    """

    name: str
    real: sympy.Expr
    fake: sympy.Expr
    aim: sympy.Expr | None = None


def contest(divergence: divergences.Divergence) -> Contest:
    """The contest whose value is the variational bound of a divergence."""
    return Contest(divergence.name, divergence.output, divergence.penalty)


JENSEN_SHANNON = contest(divergences.GAN)
"""Goodfellow's: E log D(x) + E log(1 − D(g(z))) with D = σ(v)."""
WASSERSTEIN = Contest("Wasserstein", v, v)
LEAST_SQUARES = Contest("least squares", -((v - 1) ** 2) / 2, v**2 / 2)
"""The target scores are 1 for data and 0 for samples (Mao et al. 2017, equation 2)."""
HINGE = Contest("hinge", -functions.relu(1 - v), functions.relu(1 + v), aim=v)
"""Scores beyond ±1 have no effect; the generator maximizes its scores (Lim & Ye 2017; Miyato et al. 2018)."""


@model
class GAN:
    """A feed-forward generator from codes to data, and a feed-forward critic from data to scores.

    Args:
        data: d, the width of data and samples.
        code: k, the width of the codes.
        generator: widths of the generator's hidden layers.
        critic: widths of the critic's hidden layers.
        game: the contest.
        saturating: true if the generator minimizes the function that the critic maximizes.
        penalty: λ of the gradient penalty; 0 for none.
        classes: C to condition on; 0 for none.
        activation: of both networks; see `symad.models.activations`.
        pixels: true if data lie in [0, 1]; samples then end in a sigmoid.

    Raises:
        SymadError: a negative penalty.
    """

    data: Dim
    code: Dim
    generator: tuple[Dim, ...]
    critic: tuple[Dim, ...]
    game: Contest = JENSEN_SHANNON
    saturating: bool = False
    penalty: float = 0.0
    classes: int = 0
    activation: str = "silu"
    pixels: bool = False

    def __post_init__(self) -> None:
        if self.penalty < 0:
            raise SymadError(f"the penalty of a GAN is at least 0, not {self.penalty}")

    @property
    def generator_network(self) -> FeedForward:
        """Maps (z, c) to x, before the bias."""
        return FeedForward((self.code + self.classes, *self.generator, self.data), self.activation)

    @property
    def critic_network(self) -> FeedForward:
        """Maps (x, c) to the score, before the bias."""
        return FeedForward((self.data + self.classes, *self.critic, 1), self.activation)

    @property
    def shapes(self) -> Shapes:
        """Both networks' parameters, with the prefixes g_ and c_, and the biases of their last layers."""
        generator = self.generator_network.shapes | {"bias": (self.data,)}
        critic = self.critic_network.shapes | {"bias": (1,)}
        return prefixed("g_", generator) | prefixed("c_", critic)

    @property
    def generator_names(self) -> list[str]:
        """The parameters that the generator chooses."""
        return [name for name in self.shapes if name.startswith("g_")]

    @property
    def critic_names(self) -> list[str]:
        """The parameters that the critic chooses."""
        return [name for name in self.shapes if name.startswith("c_")]

    def init(self, seed: int = 0) -> Parameters:
        """The networks' own initial values, last biases 0."""
        start = prefixed("g_", self.generator_network.init(seed))
        start |= prefixed("c_", self.critic_network.init(seed + 1))
        return {name: start.get(name, np.zeros(shape)) for name, shape in self.shapes.items()}

    def generate(self, p: Mapping[str, Array], z: Array, c: Array | None = None) -> Array:
        """Samples (N, d) of codes z (N, k)."""
        raw = self.generator_network.apply(part(p, "g_"), with_class(z, c, self.classes)) + p["g_bias"]
        return functions.sigmoid(raw) if self.pixels else raw

    def score(self, p: Mapping[str, Array], x: Array, c: Array | None = None) -> Array:
        """v(x), (N,)."""
        inputs = with_class(x, c, self.classes)
        return (self.critic_network.apply(part(p, "c_"), inputs) + p["c_bias"])[:, 0]

    def slopes(self, p: Mapping[str, Array], x: Array, c: Any = None) -> Array:
        """∇_x v(x), (N, d): the rows of the gradient of Σ v, as each row has its own score."""

        def total(q: Mapping[str, Array], x: Array, c: Array | None = None) -> Array:
            return self.score(q, x, c).sum()

        given = [x, c] if self.classes else [x]
        shapes = {name: self.shapes[name] for name in self.critic_names}
        graph = trace_model(total, shapes, *((N, a.shape[1]) for a in given))
        return gradient(graph, "x")(*(p[name] for name in shapes), *given)

    def critic_loss(
        self, p: Mapping[str, Array], x: Array, z: Array, s: Array, c: Array | None = None
    ) -> Array:
        """Minus the critic's gain, plus the penalty, which alone uses s (N,)."""
        fake = self.generate(p, z, c)
        worth, cost = trace(self.game.real), trace(self.game.fake)
        loss = cost(self.score(p, fake, c)).mean() - worth(self.score(p, x, c)).mean()
        if self.penalty:
            slope = self.slopes(p, s[:, None] * x + (1 - s)[:, None] * fake, c)
            loss = loss + self.penalty * ((np.sqrt((slope * slope).sum(axis=1)) - 1) ** 2).mean()
        return loss

    def generator_loss(self, p: Mapping[str, Array], z: Array, c: Array | None = None) -> Array:
        """The generator's objective, which it minimizes."""
        aim = self.game.aim or (self.game.fake if self.saturating else self.game.real)
        return -trace(aim)(self.score(p, self.generate(p, z, c), c)).mean()

    def critic_graph(self, samples: Dim) -> Graph:
        """The critic's loss as a graph of all parameters, x, z, s, and c with classes."""
        data = [(samples, self.data), (samples, self.code), (samples,)]
        return trace_model(self.critic_loss, self.shapes, *data, *class_shapes(samples, self.classes))

    def generator_graph(self, samples: Dim) -> Graph:
        """The generator's loss as a graph of all parameters, z, and c with classes."""
        data = [(samples, self.code), *class_shapes(samples, self.classes)]
        return trace_model(self.generator_loss, self.shapes, *data)

    def draw(self, x: Array, rng: np.random.Generator, c: Array | None = None) -> tuple[Array, ...]:
        """Random inputs of the critic's loss for data x: (x, z, s[, c])."""
        z, *given = self.draw_codes(len(x), rng, c)
        return (x, z, rng.uniform(size=len(x)), *given)

    def draw_codes(self, count: int, rng: np.random.Generator, c: Any = None) -> tuple[Array, ...]:
        """Random inputs of the generator's loss: (z[, c])."""
        return (rng.standard_normal((count, int(self.code))), *([c] if self.classes else []))

    def sample(self, p: Parameters, count: int, seed: int = 0, c: Array | None = None) -> Array:
        """Samples (count, d) of codes drawn from N(0, I)."""
        return self.generate(p, self.draw_codes(count, np.random.default_rng(seed))[0], c)
