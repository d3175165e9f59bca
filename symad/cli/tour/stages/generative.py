"""Stages of kernels and generative models: proofs, training, and the distance of samples from data."""

from __future__ import annotations

import numpy as np
import sympy

import symad
from symad.cli.tour.stage import Finding, Made, Skip, TourModel, stage
from symad.models.generative import diffusion, divergences, gan, kernels, measures
from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.models.layers import scalar_products

Array = np.ndarray


def digits() -> tuple[Array, Array]:
    """Pixels (1797, 64) in [0, 1], and classes, in random order."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise Skip("scikit-learn is not installed (extra 'data')") from None
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.data))
    return table.data[order] / 16, table.target[order]


@stage(
    "kernels", "the discrepancy of two samples under a Matérn kernel; features, rotations, digits", quick=True
)
def kernel_stage() -> TourModel:
    """MMD² by the points of one sample and the kernel's length."""
    shapes = [(3, 2), (2, 2), sympy.Symbol("length", positive=True)]
    graph = symad.trace(discrepancy, shapes)
    small = symad.trace(
        lambda x, y: measures.mmd2(x, y, kernels.polynomial(2), biased=True), [(2, 1), (1, 1)]
    )
    rng = np.random.default_rng(0)
    point = (rng.normal(size=(3, 2)), rng.normal(size=(2, 2)) + 1, 1.3)
    return TourModel(graph, point, wrt=["x", "length"], use=kernels_on_digits, check=small)


def discrepancy(x: Array, y: Array, length: Array) -> Array:
    """MMD² of x (N, D) and y (M, D) under the Matérn kernel of smoothness 5/2."""
    return measures.mmd2(x, y, kernels.matern(sympy.Rational(5, 2)), {kernels.length: length})


def kernels_on_digits(made: Made) -> list[Finding]:
    """A feature map proved, a reconstruction, and kernel ridge regression."""
    x, y = sympy.symbols("x1:4", real=True), sympy.symbols("y1:4", real=True)
    phi = [kernels.polynomial_features(list(v), 3) for v in (x, y)]
    power = sum(a * b for a, b in zip(x, y, strict=True)) ** 3
    proof = symad.equal(phi[0].dot(phi[1]), power)
    a, b, c, s = sympy.symbols("a b c s", real=True)
    q = sympy.Matrix([[1 - s**2, -2 * s], [2 * s, 1 - s**2]]) / (1 + s**2)
    k = sympy.Matrix([[a, b], [b, c]])
    same = (q * k).T * (q * k.inv() * q.T) * (q * k)
    rotated = [symad.equal(m, n).status for m, n in zip(same, k, strict=True)]
    pixels, labels = digits()
    train, held = pixels[:800], pixels[800:]
    shares = {}
    for name, kernel in (("linear", kernels.inner), ("RBF", kernels.rbf())):
        values = {kernels.length: 1.4} if name == "RBF" else {}
        gram = kernels.gram(kernel, train, None, values) + 0.05 * np.eye(len(train))
        upper = scalar_products.coordinates(gram)
        weights = np.linalg.solve(upper, np.linalg.solve(upper.T, 2.0 * np.eye(10)[labels[:800]] - 1))
        told = (kernels.gram(kernel, held, train, values) @ weights).argmax(axis=1)
        shares[name] = float((told == labels[800:]).mean())
    return [
        Finding(
            f"⟨φ(x), φ(y)⟩ = ⟨x, y⟩³ for the {len(phi[0])} features in three dimensions is {proof.status}",
            proof.status == "proved",
        ),
        Finding(
            f"QK with the product of QK⁻¹Qᵀ gives K back for every rotation Q: {rotated[0]}",
            set(rotated) == {"proved"},
        ),
        Finding(
            f"ridge regression classifies {shares['RBF']:.1%} of held-out digits correctly by an RBF kernel, "
            f"{shares['linear']:.1%} by the linear one",
            shares["RBF"] > shares["linear"],
        ),
    ]


@stage("divergences", "f-divergences, their conjugates proved, and the bound that a critic reaches")
def divergence_stage() -> TourModel:
    """The variational bound of the GAN's divergence by the scores of a critic on three points."""
    p, q = np.array([0.36, 0.48, 0.16]), np.full(3, 1 / 3)
    game = gan.JENSEN_SHANNON

    def bound(v: Array) -> Array:
        return (p * symad.trace(game.real)(v)).sum() - (q * symad.trace(game.fake)(v)).sum()

    return TourModel(symad.trace(bound, [(3,)]), (np.zeros(3),), use=reach_the_divergence)


def reach_the_divergence(made: Made) -> list[Finding]:
    """Newton's method on the critic; Fenchel's equality for every f."""
    p, q = np.array([0.36, 0.48, 0.16]), np.full(3, 1 / 3)
    slope, curve, scores = symad.gradient(made.graph, "v"), symad.hessian(made.graph, "v"), np.zeros(3)
    for _ in range(8):
        scores = scores - np.linalg.solve(curve(scores), slope(scores))
    value, js = float(made.graph(scores)), divergences.jensen_shannon(p, q)
    best = 1 / (1 + np.exp(-scores))
    named = [d for d in divergences.DIVERGENCES if d is not divergences.JEFFREYS]
    verdicts = []
    for d in named:
        t = sympy.simplify(d.slope)
        left = d.conjugate.subs(divergences.t, t)
        verdicts.append(symad.equal(left, divergences.u * t - d.f).status)
    return [
        Finding(
            f"Newton's method ends at {value:.6f} = −log 4 + 2 JS, with D* = {best.round(6).tolist()}",
            abs(value + np.log(4) - 2 * js) < 1e-12 and np.allclose(best, p / (p + q), atol=1e-12),
        ),
        Finding(
            f"f*(f'(u)) = u f'(u) − f(u) holds for {len(named)} divergences: "
            f"{verdicts.count('proved')} proved, {verdicts.count('tested')} tested",
            set(verdicts) <= {"proved", "tested"},
        ),
    ]


@stage("autoencoder", "the linear one is PCA; a deep one loses less with the same code")
def autoencoder_stage() -> TourModel:
    """The worked example: x = (2, 0), W_e = (0.5, −1), W_d = (1, 0.5) has the loss 0.625."""
    graph = LinearAutoencoder(2, 1).graph(1)
    point = (np.array([[0.5, -1.0]]), np.array([[1.0], [0.5]]), np.array([[2.0, 0.0]]))
    return TourModel(graph, point, wrt=["W_e", "W_d"], use=autoencoders_on_digits)


def autoencoders_on_digits(made: Made) -> list[Finding]:
    """The worked gradients, and codes of two numbers for held-out digits."""
    from symad.numeric.training.loop import batches, train, warmup_cosine
    from symad.numeric.training.optimizers import Adam

    inputs = (np.array([[0.5, -1.0]]), np.array([[1.0], [0.5]]), np.array([[2.0, 0.0]]))
    value, encoder, decoder = symad.value_and_gradient(made.graph, ["W_e", "W_d"])(*inputs)
    right = value == 0.625 and decoder.ravel().tolist() == [-1, 0.5] and encoder.ravel().tolist() == [-1.5, 0]
    pixels, _ = digits()
    x, held = (part - pixels[:1300].mean(axis=0) for part in (pixels[:1300], pixels[1300:]))
    axes = np.linalg.svd(x, full_matrices=False)[2][:2]
    pca = {"W_e": axes, "W_d": axes.T}
    linear, deep = LinearAutoencoder(64, 2), Autoencoder((64, 64, 32, 2))
    slopes = symad.gradient(linear.graph(1300), ["W_e", "W_d"])(axes, axes.T, x)
    flat = max(float(np.abs(s).max()) for s in slopes)
    data, rate = batches(x, size=100), warmup_cosine(50, 600)
    p = train(deep.graph(100), deep.init(0), data, Adam(8e-3), 600, schedule=rate).parameters
    ours, theirs = float(deep.loss(p, held)), float(linear.loss(pca, held))
    return [
        Finding(f"worked example: loss {value}, ∂W_d = (−1, ½), ∂W_e = (−1.5, 0)", right),
        Finding(f"at the principal axes of the digits the largest slope is {flat:.0e}", flat < 1e-10),
        Finding(
            f"held-out error with a code of two: deep {ours:.3f}, principal components {theirs:.3f}",
            ours < theirs,
        ),
    ]


@stage("vae", "a variational autoencoder of digits, given the class: the bound on the likelihood")
def vae_stage() -> TourModel:
    """The bound of three pixels, by all parameters."""
    model = VAE(3, 2, 1, classes=2)
    rng, p = np.random.default_rng(0), model.init(0)
    data = (rng.uniform(size=(2, 3)), rng.normal(size=(2, 1)), np.eye(2))
    small = VAE(1, 1, 1).graph(1)
    return TourModel(model.graph(2), (*p.values(), *data), wrt=list(p), use=bound_of_digits, check=small)


def bound_of_digits(made: Made) -> list[Finding]:
    """The closed form of the divergence, and a short training."""
    from symad.numeric.training.loop import train, warmup_cosine
    from symad.numeric.training.optimizers import Adam

    proof = symad.equal(divergences.gaussian_kl(), divergences.gaussian_kl_by_moments())
    pixels, labels = digits()
    x, held, c = pixels[:1300], pixels[1300:], np.eye(10)[labels]
    model, rng, steps = VAE(64, 64, 8, classes=10), np.random.default_rng(0), 500
    rows = [rng.integers(0, 1300, 100) for _ in range(steps)]
    data = ((x[r], rng.standard_normal((100, 8)), c[r]) for r in rows)
    rate = warmup_cosine(50, steps)
    p = train(model.graph(100), model.init(0), data, Adam(6e-3), steps, schedule=rate).parameters
    bound = float(model.loss(p, held, rng.standard_normal((len(held), 8)), c[1300:]))
    mean = np.clip(x.mean(axis=0), 1e-3, 1 - 1e-3)
    plain = -float(np.mean(np.sum(held * np.log(mean) + (1 - held) * np.log(1 - mean), axis=1)))
    return [
        Finding(f"KL(N(μ, σ²)‖N(0, 1)) = ½(μ² + σ² − 1 − ln σ²) is {proof.status}", proof.status == "proved"),
        Finding(
            f"held-out bound {bound:.2f} nats a digit after {steps} steps; independent pixels {plain:.2f}",
            bound < plain,
        ),
    ]


@stage("gan", "a critic with a gradient in its loss, and a generator: eight modes on a ring")
def gan_stage() -> TourModel:
    """The critic's loss of Wasserstein's game, with a penalty on its gradient."""
    model = GAN(2, 1, (2,), (2,), gan.WASSERSTEIN, penalty=1.0, activation="tanh")
    rng, p = np.random.default_rng(0), model.init(3)
    data = (rng.normal(size=(2, 2)), rng.normal(size=(2, 1)), rng.uniform(size=2))
    small = GAN(1, 1, (), (1,), activation="tanh").critic_graph(1)
    names = model.critic_names
    return TourModel(model.critic_graph(2), (*p.values(), *data), wrt=names, use=modes_of_a_ring, check=small)


def modes_of_a_ring(made: Made) -> list[Finding]:
    """Play, count the modes, compare with a Gaussian of the same moments."""
    from symad.numeric.training.adversarial import Player, train_in_turn
    from symad.numeric.training.loop import warmup_cosine
    from symad.numeric.training.optimizers import Adam

    angles, rng, size, rounds = np.arange(8) * np.pi / 4, np.random.default_rng(0), 128, 500
    centers = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def ring(count: int) -> Array:
        made: Array = centers[rng.integers(0, 8, count)] + 0.1 * rng.standard_normal((count, 2))
        return made

    model = GAN(2, 8, (64, 64), (64, 64), gan.WASSERSTEIN, penalty=0.1, activation="tanh")
    critic = Player(model.critic_graph(size), model.critic_names, Adam(4e-3, 0.5), steps=2)
    generator = Player(model.generator_graph(size), model.generator_names, Adam(4e-3, 0.5))
    points = (model.draw(ring(size), rng) for _ in range(2 * rounds))
    codes = (model.draw_codes(size, rng) for _ in range(rounds))
    rate = warmup_cosine(50, rounds, floor=0.05)
    result = train_in_turn([critic, generator], model.init(0), [points, codes], rounds, rate, average=0.98)
    held, samples = ring(1000), model.sample(result.averages, 1000, seed=1)
    gaussian = rng.multivariate_normal(held.mean(axis=0), np.cov(held.T), 1000)
    modes, near = measures.mode_coverage(samples, centers, 0.3)
    ours, theirs = (measures.energy_distance(s, held) for s in (samples, gaussian))
    return [
        Finding(f"{modes} of 8 modes found, {near:.0%} of the samples near one", modes == 8),
        Finding(
            f"energy distance to held-out points {ours:.4f}; of a Gaussian {theirs:.4f}", ours < theirs / 2
        ),
    ]


@stage("diffusion", "noise and its prediction on two moons; the closed forms proved", quick=True)
def diffusion_stage() -> TourModel:
    """The loss of a small network in the plane, by all its parameters."""
    model = diffusion.Diffusion(2, (3,), 2)
    rng, p = np.random.default_rng(0), model.init(0)
    _, alpha_bar = diffusion.schedule(10)
    data = model.draw(rng.normal(size=(3, 2)), 10, alpha_bar, rng)
    small = diffusion.Diffusion(1, (1,), 2, activation="tanh").graph(1)
    return TourModel(model.graph(3), (*p.values(), *data), wrt=list(p), use=two_moons, check=small)


def two_moons(made: Made) -> list[Finding]:
    """Tweedie's formula and DDIM's step proved; samples measured."""
    from symad.numeric.training.loop import train, warmup_cosine
    from symad.numeric.training.optimizers import Adam

    try:
        from sklearn.datasets import make_moons
    except ImportError:
        raise Skip("scikit-learn is not installed (extra 'data')") from None
    points = (make_moons(3000, noise=0.06, random_state=0)[0] - [0.5, 0.25]) * 1.5
    model, levels, steps, rng = diffusion.Diffusion(2, (64, 64, 64)), 40, 1200, np.random.default_rng(0)
    beta, alpha_bar = diffusion.schedule(levels, 1e-3, 0.25)
    rows = [rng.integers(0, 2000, 128) for _ in range(steps)]
    data = (model.draw(points[r], levels, alpha_bar, rng) for r in rows)
    rate = warmup_cosine(50, steps)
    p = train(model.graph(128), model.init(0), data, Adam(6e-3), steps, schedule=rate).parameters
    held = points[2000:]
    gaussian = rng.multivariate_normal(held.mean(axis=0), np.cov(held.T), 1000)
    samples = model.sample(p, 1000, beta, seed=1), model.sample_ddim(p, 1000, beta, 20, seed=1)
    *ours, theirs = (measures.energy_distance(s, held) for s in (*samples, gaussian))
    tweedie, implicit = _closed_forms()
    return [
        Finding(f"E[x₀ | x] = (x + (1 − ᾱ) ∇ log q)/√ᾱ for two points is {tweedie}", tweedie == "proved"),
        Finding(f"a DDIM step keeps x₀ and ε: {implicit}", implicit == "proved"),
        Finding(
            f"energy distance to held-out points: DDPM {ours[0]:.4f}, DDIM {ours[1]:.4f}, "
            f"a Gaussian {theirs:.4f}",
            max(ours) < theirs / 2,
        ),
    ]


def _closed_forms() -> tuple[str, str]:
    """The verdicts on Tweedie's formula for a law of two points, and on the implicit step."""
    x, a, b, e = sympy.symbols("x a b e", real=True)
    w, r, s = sympy.symbols("w r s", positive=True)
    first, second = (sympy.exp(-((x - r * m) ** 2) / (2 * (1 - r**2))) for m in (a, b))
    density = w * first + (1 - w) * second
    score = symad.to_sympy(symad.gradient(sympy.log(density), x))
    mean = (w * a * first + (1 - w) * b * second) / density
    formula = symad.to_sympy(symad.trace(diffusion.tweedie, [x, e, s])).subs({e: score, s: r**2})
    tweedie = symad.equal(formula.subs(sympy.sqrt(r**2), r), mean)
    step = symad.to_sympy(symad.trace(diffusion.implicit_step, [x, e, r, s]))
    at = [sympy.sqrt(level) * a + sympy.sqrt(1 - level) * e for level in (r, s)]
    return tweedie.status, symad.equal(step.subs(x, at[0]), at[1]).status
