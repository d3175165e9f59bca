"""Stages of convolutions, state spaces, alignment losses, encoders, and attention as dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

import symad
from symad import functions
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.cli.tour.stages.sequences import numbers, of
from symad.functions import sigmoid
from symad.models.layers import convolution, soft, two_layer
from symad.models.layers.convolutional import Adversaries
from symad.models.layers.losses import masked_cross_entropy
from symad.models.layers.parameters import trace_model
from symad.models.layers.two_layer import TwoLayer
from symad.models.sequences import alignment, state_space
from symad.models.sequences.dynamics import AttentionDynamics, clusters, energy
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from symad.models.sequences.state_space import StateSpace
from symad.models.sequences.tcn import TCN
from symad.models.transformers import tasks
from symad.models.transformers.attention import attention
from symad.models.transformers.encoder_decoder_transformer import EncoderDecoderTransformer
from symad.models.transformers.encoder_only import Encoder
from symad.models.transformers.transformer import Transformer

Array = np.ndarray
SAME = ("proved", "tested")


@stage("convolution", "windows times weights; the transposed convolution is its pullback")
def convolve() -> TourModel:
    """The squared loss of a filter with three taps on a signal of five numbers."""
    sizes = {convolution.T: 5, convolution.K: 3, convolution.d_in: 1, convolution.d_out: 1}
    inputs = [convolution.x, convolution.W, convolution.y]
    graph = symad.trace(convolution.loss(), inputs).at(sizes)
    small = symad.trace(convolution.loss(), inputs).at({**sizes, convolution.T: 3, convolution.K: 2})
    return TourModel(graph, (numbers(5, 1), numbers(3, 1, 1), numbers(3, 1)), use=transpose, check=small)


def transpose(made: Made) -> list[Finding]:
    """The definition against im2col, and ⟨C x, y⟩ = ⟨x, Cᵀ y⟩."""
    shapes = [(5, 1), (3, 1, 1), (3, 1)]
    fast = symad.trace(lambda x, W, y: np.mean((convolution.convolve(x, W) - y) ** 2), shapes)
    status = symad.equal(made.graph, fast).status
    geometry = 2, 1  # stride and padding
    left = symad.trace(lambda x, W, y: np.sum(convolution.convolve(x, W, *geometry) * y), shapes)
    right = symad.trace(lambda x, W, y: np.sum(x * convolution.convolve_transposed(y, W, *geometry)), shapes)
    adjoint = symad.equal(left, right).status
    return [
        Finding(f"the sums of the definition and windows times weights are equal: {status}", status in SAME),
        Finding(f"⟨C x, y⟩ = ⟨x, Cᵀ y⟩ with stride 2 and padding 1: {adjoint}", adjoint in SAME),
    ]


@stage("images", "a convolutional generator of images, and the discriminator it must deceive")
def images() -> TourModel:
    """The generator's loss on two codes, images of 4 × 4 pixels."""
    pair = Adversaries(4, 1, 1, 2)
    p, q, z = pair.init_generator(0), pair.init_discriminator(1), numbers(2, 2)
    graph = trace_model(lambda p, z: pair.generator_loss(p, q, z), pair.generator_shapes, z.shape)
    kept = {name: value for name, value in p.items() if name != "G1"}
    small = symad.trace(lambda G1: np.sum(pair.generate(kept | {"G1": G1}, z[:1]) ** 2), [p["G1"].shape])
    return TourModel(graph, (*p.values(), z), wrt=list(p), check=small, use=play)


def play(made: Made) -> list[Finding]:
    """A round of the game on one picture."""
    from symad.numeric.training.loop import train
    from symad.numeric.training.optimizers import Adam

    pair, z = Adversaries(4, 1, 2, 2), numbers(16, 2)
    p, q = pair.init_generator(0), pair.init_discriminator(1)
    real = np.repeat(np.eye(4)[None, :, :, None], 16, axis=0)
    fake = pair.generate(p, z)
    judge = trace_model(pair.discriminator_loss, pair.discriminator_shapes, real.shape, fake.shape)
    taught = train(judge, q, ((real, fake) for _ in range(40)), Adam(0.01), 40)
    before, after = taught.losses[0], taught.losses[-1]
    text = f"40 steps teach the discriminator one picture: loss {before:.2f} to {after:.3f}"
    return [Finding(text, after < 0.5 * before)]


@stage("temporal convolution", "dilated causal convolutions: the inputs of each output, from the pattern")
def temporal() -> TourModel:
    """One block on four steps."""
    small = TCN(1, 1, 1, levels=1, taps=2)
    x, y = np.array([[1.0], [2.0]]), np.array([[1.0], [0.0]])
    certified = trace_model(lambda p: small.loss(p, x, y), small.shapes)
    return of(TCN(1, 2, 1, levels=1, taps=2), numbers(4, 1), numbers(4, 1), small=certified, use=field)


def field(made: Made) -> list[Finding]:
    """The length r = 1 + 2 (K − 1)(2^L − 1)."""
    model, n = TCN(1, 1, 1, levels=2, taps=2), 12
    p = {name: np.ones(shape) for name, shape in model.shapes.items()}
    graph = symad.trace(lambda x: model.apply(p, x), [(n, 1)])
    counts = symad.jacobian_sparsity(graph, [0]).toarray().sum(axis=1)
    reach = model.receptive_field
    expected = np.minimum(np.arange(n) + 1, reach)
    return [Finding(f"two levels see the last {reach} inputs, none later", bool((counts == expected).all()))]


@stage("state space", "a selective linear recurrence: as a loop, and in O(log T) rounds")
def selective() -> TourModel:
    """One block of width 1 on three steps."""
    shapes = [(2, 1), (2, 1), (1, 1), (2, 1), (2, 1)]
    small = symad.trace(
        lambda x, delta, A, B, C: np.sum(state_space.selective_scan(x, delta, A, B, C) ** 2), shapes
    )
    model = StateSpace(1, 1, 1, state=2, expand=1, taps=2)
    return of(model, numbers(3, 1), numbers(3, 1), small=small, use=both_recurrences)


def both_recurrences(made: Made) -> list[Finding]:
    """The prefix sum is the loop; long sequences cost no more nodes."""
    shapes = [(6, 1), (6, 1)]
    loop = symad.trace(lambda a, b: state_space.linear_recurrence(a, b), shapes)
    rounds = symad.trace(lambda a, b: functions.affine_scan(a, b), shapes)
    status = symad.equal(loop, rounds).status
    model = StateSpace(1, 4, 1)
    sizes = [len(trace_model(model.loss, model.shapes, (T, 1), (T, 1)).nodes) for T in (10, 10_000)]
    return [
        Finding(f"the recurrence as a prefix sum equals 6 steps: {status}", status in SAME),
        Finding(
            f"the graph of 10 steps has {sizes[0]} nodes, of 10,000 {sizes[1]}", abs(sizes[1] - sizes[0]) < 5
        ),
    ]


@stage("two layers", "a mean over n neurons: the error falls with the root of n")
def shallow() -> TourModel:
    """Three neurons, four points."""
    small = TwoLayer(1, 2, "tanh")
    certified = trace_model(small.loss, small.shapes, (1, 1), (1,))
    return of(TwoLayer(2, 3, "tanh"), numbers(4, 2), numbers(4), small=certified, use=widths)


def widths(made: Made) -> list[Finding]:
    """Neurons drawn for 1 + cos πx on [−1, 1]."""

    def target(x: Array) -> Array:
        return np.asarray(1 + np.cos(np.pi * x))

    def curvature(x: Array) -> Array:
        return np.asarray(-(np.pi**2) * np.cos(np.pi * x))

    sizes = [16, 64, 256, 1024]
    found = two_layer.errors(target, curvature, sizes, draws=200)
    slope = float(np.polyfit(np.log(sizes), np.log(found), 1)[0])
    text = ", ".join(f"{e:.3f} with {n}" for n, e in zip(sizes, found, strict=True))
    return [Finding(f"errors {text} neurons: like n^{slope:.2f}", abs(slope + 0.5) < 0.05)]


@stage("smooth maximum", "log-sum-exp with a temperature: its slope is the softmax")
def smooth() -> TourModel:
    """The softmax of three numbers, with the temperature as a variable."""
    return TourModel(soft.maximum, (np.array([0.3, 1.1, -0.4]), 0.7), inputs=[(3,), ()], use=cool)


def cool(made: Made) -> list[Finding]:
    """The identity, and the limit of temperature 0."""
    slope = symad.gradient(made.graph, 0)
    status = symad.equal(slope, symad.trace(soft.weights, [(3,), ()])).status
    cold = soft.weights(np.array([0.3, 1.1, -0.4]), 1e-3)
    return [
        Finding(f"∂ (α log Σ e^(z/α)) / ∂z = softmax(z/α): {status}", status in SAME),
        Finding(f"at temperature 0.001 the weights are {np.round(cold, 6).tolist()}", bool(cold[1] == 1)),
    ]


@stage("alignment", "preferences and rewards: the slopes of DPO, reward models and clipped ratios")
def align() -> TourModel:
    """DPO on two pairs, β a variable too."""
    data = (*(numbers(4, 2)), 0.3)
    small = symad.trace(alignment.dpo_loss, [()] * 5)
    return TourModel(alignment.dpo_loss, data, inputs=[(2,)] * 4 + [()], check=small, use=slopes)


def slopes(made: Made) -> list[Finding]:
    """Gradient identities, and the best policy."""
    names = sympy.symbols("chosen rejected ref_chosen ref_rejected beta", real=True)
    w, v, ref_w, ref_v, beta = names
    dpo = symad.gradient(symad.trace(alignment.dpo_loss, list(names)), [w])
    expected = -beta * sigmoid(-beta * (w - ref_w - v + ref_v))
    status = symad.equal(dpo, symad.trace([expected], list(names))).status
    step = symad.gradient(symad.trace(alignment.clipped_objective, [(3,)] * 3), 0)
    A = alignment.group_advantages(np.array([1.0, 0.0, 5.0]))
    same = np.abs(step(np.zeros(3), np.zeros(3), A) - A / 3).max()
    return [
        Finding(f"∂DPO/∂log π(w) = −β σ(−Δ): {status}", status in SAME),
        Finding(
            f"at π = π_old the slope of the clipped objective is A/N = {np.round(A / 3, 3).tolist()}",
            same < 1e-15,
        ),
    ]


@stage("masked tokens", "an encoder reads both ways; learned from hidden tokens, pooled to one answer")
def hidden_tokens() -> TourModel:
    """A sequence of three tokens, one of them hidden."""
    model = Encoder(Transformer(3, 3, 2, 1, 1, hidden=2, mask="none", order="post", bias=False))
    tokens, chosen = np.array([[2, 0, 1]]), np.array([[0.0, 1, 0]])
    targets = np.array([[2, 1, 1]])
    p = model.init(0, 0.5)
    graph = trace_model(model.masked_loss, model.shapes, tokens, targets, chosen)
    fixed = np.array([0, 1]), np.array([1.0, 0.0])
    small = symad.trace(lambda z: masked_cross_entropy(z, *fixed), [(2, 2)])
    return TourModel(graph, (*p.values(), tokens, targets, chosen), wrt=list(p), check=small, use=both_ways)


def both_ways(made: Made) -> list[Finding]:
    """Every position sees every other; a pooled answer without positions forgets the order."""
    body = Transformer(5, 5, 4, 1, 2, mask="none", position="none", tied=False)
    p = body.init(0)
    graph = symad.trace(lambda E: body.scores(p | {"E": E}, np.arange(5)), [(5, 4)])
    seen = symad.jacobian_sparsity(graph, [0]).toarray().reshape(5, 5, 5, 4).any(axis=(1, 3))
    reader = Encoder(Transformer(5, 5, 4, 1, 2, mask="none", position="none"), 2)
    q, tokens = reader.init(1, 0.5), np.array([[4, 0, 3, 1]])
    apart = np.abs(reader.classify(q, tokens) - reader.classify(q, tokens[:, ::-1])).max()
    return [
        Finding("every position sees every other", bool(seen.all())),
        Finding(f"without positions the pooled answer forgets the order: apart {apart:.0e}", apart < 1e-12),
    ]


@stage("translation", "a transformer reads, another writes and attends to what was read")
def translation() -> TourModel:
    """Two source tokens to two targets, width 2."""
    model = EncoderDecoderTransformer(3, 3, 2, 2, 1, 1, hidden=2, norm="rms", bias=False, position="none")
    data = np.array([[0, 2]]), np.array([[0, 1]]), np.array([[1, 2]])
    small = symad.trace(attention, [(1, 1), (2, 1), (2, 1)])
    return of(model, *data, small=small, use=reads_all)


def reads_all(made: Made) -> list[Finding]:
    """Causal in the targets, open to the whole source."""
    body = EncoderDecoderTransformer(4, 4, 4, 4, 1, 2).decoder
    p = body.init(0) | {"U": np.ones((4, 4))}
    untied = Transformer(**{**body.__dict__, "tied": False})
    graph = symad.trace(lambda E, z: untied.scores(p | {"E": E}, np.arange(4), z), [(4, 4), (3, 4)])
    pattern = symad.jacobian_sparsity(graph, [0]).toarray().reshape(4, 4, 4, 4).any(axis=(1, 3))
    causal = bool((pattern == np.tril(np.ones((4, 4), dtype=bool))).all())
    whole = bool(symad.jacobian_sparsity(graph, [1]).toarray().all())
    return [
        Finding("a target depends on targets up to it, by the pattern", causal),
        Finding("every target depends on the whole source", whole),
    ]


@stage("sequence tasks", "denoising, forecasting, classification, regression with four models")
def reading() -> TourModel:
    """A tanh network that forecasts."""
    model, x = RNN(1, 2, 1), numbers(4, 1)
    graph = trace_model(lambda p, x: tasks.forecasting_loss(model, p, x), model.shapes, x.shape)
    one, short = RNN(1, 1, 1), np.array([[1.0], [0.5], [2.0]])
    small = trace_model(lambda p: tasks.forecasting_loss(one, p, short), one.shapes)
    p = model.init(0)
    return TourModel(graph, (*p.values(), x), wrt=list(p), check=small, use=four_tasks)


def four_tasks(made: Made) -> list[Finding]:
    """Each task starts with a finite loss and a slope on every model."""
    x, clean, labels = numbers(5, 3, 1), numbers(5, 3, 2)[:, :, :1], np.array([0, 1, 1])
    runs: dict[str, tuple[Any, Any]] = {
        "denoising": (RNN(1, 3, 1), lambda m, p: tasks.denoising_loss(m, p, x, clean)),
        "forecasting": (LSTM(1, 3, 1), lambda m, p: tasks.forecasting_loss(m, p, x)),
        "classification": (TCN(1, 3, 2, 1), lambda m, p: tasks.classification_loss(m, p, x, labels, "mean")),
        "regression": (StateSpace(1, 3, 1), lambda m, p: tasks.regression_loss(m, p, x, clean[0])),
    }
    found = []
    for name, (model, loss) in runs.items():
        p = model.init(0)
        graph = trace_model(lambda p, m=model, loss=loss: loss(m, p), model.shapes)
        value, *parts = symad.value_and_gradient(graph, list(p))(*p.values())
        norm = float(np.sqrt(sum(np.sum(part**2) for part in parts)))
        text = f"{name} by {type(model).__name__}: loss {value:.3f}, slope of norm {norm:.3f}"
        found.append(Finding(text, bool(np.isfinite(norm) and norm > 0)))
    return found


@stage("attention dynamics", "tokens as particles on a sphere that attract each other: they cluster")
def particles() -> TourModel:
    """Three particles in the plane, two steps."""
    model = AttentionDynamics(2)
    p, x, y = model.init(0), numbers(3, 2), numbers(3, 2)
    graph = trace_model(lambda p, x, y: model.loss(p, x, y, 0.5, 2), model.shapes, x.shape, y.shape)
    one = AttentionDynamics(1, sphere=False)
    small = symad.trace(
        lambda x, Q, K, V: one.velocity({"Q": Q, "K": K, "V": V}, x), [(2, 1), (1, 1), (1, 1), (1, 1)]
    )
    return TourModel(graph, (*p.values(), x, y), wrt=list(p), check=small, use=cluster)


def cluster(made: Made) -> list[Finding]:
    """The motion climbs an energy; the number of groups falls to 1."""
    free = AttentionDynamics(2, beta=2, sphere=False, normalizer="count")
    one = {name: np.eye(2, dtype=int) for name in free.shapes}
    slope = symad.gradient(symad.trace(lambda x: energy(x, 2), [(3, 2)]), 0)
    motion = symad.trace(lambda x: free.velocity(one, x), [(3, 2)])
    status = symad.equal(motion, symad.trace(lambda x: 3 * slope(x), [(3, 2)])).status
    x = numbers(24, 3)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    sphere = AttentionDynamics(3)
    path = sphere.trajectory(sphere.identity(), x, 30.0, 300)
    groups = [clusters(x), *(clusters(path[k]) for k in (19, 59, 299))]
    return [
        Finding(f"the velocity is n times the slope of the energy: {status}", status in SAME),
        Finding(f"24 tokens on the sphere form {groups} groups at t = 0, 2, 6, 30", groups[-1] == 1),
    ]
