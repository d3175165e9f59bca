"""Transformers: torch for every switch, causality, generation, cost, published sizes."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.models.costs import layer_cost, multiply_adds
from symad.models.layers.parameters import count, trace_model
from symad.models.transformers.generation import generate, sample
from symad.models.transformers.presets import PRESETS, parameter_counts
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
TOKENS, TARGETS = rng.integers(0, 7, (2, 5)), rng.integers(0, 7, (2, 5))


def small(**switches):
    return Transformer(7, 6, 8, 2, 2, **switches)


def torch_scores(torch, model, p, tokens):
    """The model once more, in torch, head by head."""
    F, (_, n) = torch.nn.functional, tokens.shape
    t = torch.arange(n)
    d_k = model.width // model.heads
    x = p["E"][tokens]
    rates = 10000.0 ** (-2 * torch.arange(model.width // 2, dtype=torch.float64) / model.width)
    if model.position == "learned":
        x = x + p["P"][:n]
    if model.position == "sinusoidal":
        angles = t[:, None] * rates
        x = x + torch.stack([torch.sin(angles), torch.cos(angles)], -1).reshape(n, -1)

    def norm(name, x):
        if model.norm == "rms":
            return F.rms_norm(x, x.shape[-1:], p[f"{name}_gamma"], 1e-5)
        beta = p.get(f"{name}_beta")
        return F.layer_norm(x, x.shape[-1:], p[f"{name}_gamma"], beta)

    def turn(x):
        pair = torch.complex(x[..., : d_k // 2], x[..., d_k // 2 :])
        speed = 10000.0 ** (-2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k)
        pair = pair * torch.exp(1j * t[:, None] * speed)
        return torch.cat([pair.real, pair.imag], -1)

    def linear(name, x, w):
        return x @ p[name.replace("*", f"W_{w}")] + p.get(name.replace("*", f"b_{w}"), 0)

    def mix(k, x):
        total = p.get(f"layer{k}_b_O", 0)
        for h in range(model.heads):
            q, key, v = (
                x @ p[f"layer{k}_W_{c}"][h] + (p[f"layer{k}_b_{c}"][h] if model.bias else 0) for c in "QKV"
            )
            if model.position == "rotary":
                q, key = turn(q), turn(key)
            s = q @ key.transpose(-1, -2) / d_k**0.5
            distance = t[:, None] - t[None, :]
            if model.position == "alibi":
                s = s - distance.abs() * 2.0 ** (-8 * (h + 1) / model.heads)
            if model.position == "relative":
                s = s + p["R"][h][distance + model.context - 1]
            hidden = distance < 0
            if model.mask == "prefix":
                hidden = hidden & (t[None, :] >= model.prefix)
            if model.mask != "none":
                s = s.masked_fill(hidden, -torch.inf)
            total = total + torch.softmax(s, -1) @ v @ p[f"layer{k}_W_O"][h]
        return total

    def feed(k, x):
        sigma = {"relu": F.relu, "gelu": F.gelu, "geglu": F.gelu, "swiglu": F.silu}[model.block]
        y = sigma(linear(f"layer{k}_*", x, 1))
        y = y * linear(f"layer{k}_*", x, 3) if model.block.endswith("glu") else y
        return linear(f"layer{k}_*", y, 2)

    for k in range(1, model.layers + 1):
        for number, part in ((1, mix), (2, feed)):
            name = f"layer{k}_norm{number}"
            if model.order == "pre":
                x = x + part(k, norm(name, x))
            elif model.order == "post":
                x = norm(name, x + part(k, x))
            else:
                x = norm(name, (2 * model.layers) ** 0.25 * x + part(k, x))
    x = norm("norm", x) if model.order == "pre" else x
    return x @ (p["E"] if model.tied else p["U"]).T


SWITCHES = [
    {},
    {"order": "post", "block": "relu", "position": "sinusoidal"},
    {"order": "deep", "norm": "rms", "position": "relative"},
    {"position": "rotary", "norm": "rms", "block": "swiglu", "bias": False, "tied": False},
    {"position": "alibi", "block": "geglu", "mask": "prefix", "prefix": 3},
    {"position": "none", "mask": "none", "tied": False},
]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(map(str, s.values())) or "default")
def test_value_and_gradients(switches):
    model = small(**switches)

    def reference(torch, p, tokens, targets):
        z = torch_scores(torch, model, p, tokens)
        return torch.nn.functional.cross_entropy(z.reshape(-1, 7), targets.reshape(-1))

    agrees_with_torch(model.loss, model.shapes, reference, TOKENS, TARGETS)


def test_sizes_may_be_symbols():
    B, n, d, v = sympy.symbols("B n d v", integer=True, positive=True)
    model = Transformer(v, 6, 2 * d, 1, 2)
    graph = trace_model(model.loss, model.shapes, (B, n), (B, n))
    concrete = Transformer(7, 6, 8, 1, 2)
    p = concrete.init(0, 0.5)
    expected = concrete.loss(p, TOKENS, TARGETS)
    np.testing.assert_allclose(graph(*p.values(), TOKENS, TARGETS), expected, rtol=1e-13)


@pytest.mark.parametrize("position", ["learned", "rotary", "alibi", "relative"])
def test_scores_do_not_depend_on_later_tokens(position):
    """∂scores_t/∂x_{t'} is exactly 0 for t' > t, where x are the embedded tokens."""
    model = small(position=position)
    p = {k: rng.normal(size=s) for k, s in model.shapes.items()}

    def of_table(E):
        return model.scores(p | {"E": E, "U": p["E"]}, np.arange(5))

    model = small(position=position, tied=False)
    jacobian = symad.jacobian(symad.trace(of_table, [(7, 8)]))(p["E"]).reshape(5, 7, 7, 8)
    seen = np.abs(jacobian).max(axis=(1, 3))[:, :5]
    np.testing.assert_array_equal(seen > 0, np.tril(np.ones((5, 5), dtype=bool)))


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "relative", "none"])
def test_the_cache_gives_the_same_scores(position):
    model = small(position=position)
    p, tokens = model.init(0, 0.5), rng.integers(0, 7, 6)
    expected = model.scores(p, tokens)
    T = sympy.Symbol("T", integer=True, positive=True)
    cache = (2, 2, T, 4)
    kernel = lower(trace_model(model.step, model.shapes, (), cache, cache))
    K, V = model.empty_cache()
    for t, token in enumerate(tokens):
        scores, new_K, new_V = model.step(p, token, K, V)
        np.testing.assert_allclose(scores, expected[t], rtol=1e-12, atol=1e-14)
        if t:
            lowered = kernel(*p.values(), token, K, V)[0]
            np.testing.assert_allclose(lowered, scores, rtol=1e-12, atol=1e-14)
        K, V = new_K, new_V
    assert K.shape == (2, 2, 6, 4)


def test_generation():
    model = small(position="rotary")
    p = model.init(3, 1.0)
    greedy = generate(model, p, [1, 2], 8, temperature=0)
    tokens = [1, 2]
    for _ in range(8):  # once more without a cache
        tokens.append(int(np.argmax(model.scores(p, np.array(tokens))[-1])))
    assert greedy == tokens[2:]
    drawn = generate(model, p, [1, 2], 8, seed=5, temperature=2.0)
    assert drawn == generate(model, p, [1, 2], 8, seed=5, temperature=2.0) != greedy
    assert generate(model, p, [1, 2], 8, seed=5, temperature=2.0, top=1) == greedy
    assert generate(model, p, [1], 0) == []


def test_sampling_frequencies():
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    generator = np.random.default_rng(0)

    def frequencies(**options):
        drawn = [sample(scores, generator, **options) for _ in range(4000)]
        return np.bincount(drawn, minlength=4) / 4000

    np.testing.assert_allclose(frequencies(), [0.5, 0.3, 0.15, 0.05], atol=0.03)
    np.testing.assert_allclose(frequencies(top=2), [0.625, 0.375, 0, 0], atol=0.03)
    squares = np.array([0.5, 0.3, 0.15, 0.05]) ** 2
    np.testing.assert_allclose(frequencies(temperature=0.5), squares / squares.sum(), atol=0.03)


def test_cost_of_a_layer_is_derived_from_the_graph():
    n, d, H, d_k, d_v, d_ff = sympy.symbols("n d H d_k d_v d_ff", integer=True, positive=True)
    cost = layer_cost()
    general = H * (d_k + d_v) * n**2 + 2 * H * (d_k + d_v) * d * n + 2 * d * d_ff * n
    assert sympy.expand(cost - general) == 0
    equal = cost.subs({d_k: d / H, d_v: d / H})
    assert sympy.expand(equal - (4 * d**2 * n + 2 * n**2 * d + 2 * d * d_ff * n)) == 0
    assert sympy.expand(equal.subs(d_ff, d) - 2 * n * d * (n + 3 * d)) == 0


@pytest.mark.parametrize("layers", [1, 3])
def test_cost_of_all_layers_is_that_of_one_times_their_number(layers):
    """N layers: N n d (12 d + 2 n) with d_ff = 4d, so O(N d n (n + d)).

    To this come |V| n d to read the tokens out, n d in each of the 2N + 1 norms for the sum of squares, and
    once n²/2, half of the n² additions that tell which rows of the mask see a key.
    """
    n, d, v = sympy.symbols("n d v", integer=True, positive=True)
    model = Transformer(v, 6, d, layers, 1, position="none")
    cost = multiply_adds(trace_model(model.scores, model.shapes, (n,)))
    rest = v * n * d + (2 * layers + 1) * n * d + n**2 / 2
    assert sympy.expand(cost - (layers * n * d * (12 * d + 2 * n) + rest)) == 0


def test_a_cached_step_costs_linearly_and_a_full_run_quadratically():
    T = sympy.Symbol("T", integer=True, positive=True)
    model = small(position="none")
    step = trace_model(model.step, model.shapes, (), (2, 2, T, 4), (2, 2, T, 4))
    full = trace_model(model.scores, model.shapes, (T,))
    assert sympy.degree(multiply_adds(step), T) == 1
    assert sympy.degree(multiply_adds(full), T) == 2
    # Per head and layer: T + 1 keys and as many values of d_k = 4 numbers.
    assert sympy.Poly(multiply_adds(step), T).coeff_monomial(T) == 2 * 2 * 2 * 4


def test_175_billion_parameters():
    model = Transformer(50257, 2048, 12288, 96, 96, tied=False, position="none", bias=False)
    counts = parameter_counts(model)
    assert counts["embedding"] == 1_235_116_032
    assert counts["attention"] == 57_982_058_496
    assert counts["block"] == 115_964_116_992
    assert counts["total"] == 175_181_291_520
    assert counts["total"] + counts["others"] == count(model.shapes)


def test_published_sizes():
    estimates = {name: round(preset.estimate / 1e9, 2) for name, preset in PRESETS.items()}
    assert estimates == {
        "GPT-3": 173.95, "OPT": 173.95, "PanGu-α": 206.16, "BLOOM": 172.64,
        "MT-NLG": 528.48, "Galactica": 120.80, "LLaMA": 64.42,
    }  # fmt: skip
    for preset in PRESETS.values():
        assert abs(preset.estimate / 1e9 / preset.published - 1) < 0.025


def test_a_layer_has_twelve_times_the_squared_width():
    d = sympy.Symbol("d", integer=True, positive=True)
    counts = parameter_counts(Transformer(1, 1, d, 3, 1))
    assert sympy.expand(counts["attention"] + counts["block"] - 3 * 12 * d**2) == 0


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets_run_at_small_size(name):
    model = PRESETS[name].model(7, 6, width=8, layers=1, heads=2)
    p = model.init(0)
    graph = symad.value_and_gradient(trace_model(model.loss, model.shapes, (2, 5), (2, 5)), ["E"])
    value, slope = graph(*p.values(), TOKENS, TARGETS)
    # Small random weights know nothing: the loss is near log |V|.
    assert abs(value - np.log(7)) < 0.3
    assert np.abs(slope).max() > 0


def test_bad_input():
    model = small()
    p = model.init(0)
    with pytest.raises(ShapeError, match=r"token 9 at \(1,\) is not one of the 7 tokens"):
        model.scores(p, np.array([0, 9]))
    kernel = lower(trace_model(model.loss, model.shapes, (2, 5), (2, 5)))
    with pytest.raises(IndexError, match=r"0\.\.6"):
        kernel(*p.values(), TOKENS + 5, TARGETS)
    for outside in (7, -1):
        with pytest.raises(IndexError, match=r"0\.\.6"):
            kernel(*p.values(), np.full((2, 5), outside), TARGETS)
        with pytest.raises(IndexError, match=r"0\.\.6"):
            kernel(*p.values(), TOKENS, np.full((2, 5), outside))
        with pytest.raises(ShapeError, match=r"not one of|not an integer in 0\.\.6"):
            model.loss(p, TOKENS, np.full((2, 5), outside))
    with pytest.raises(SymadError, match="order='sandwich' is not one of pre, post, deep"):
        small(order="sandwich")
    with pytest.raises(ShapeError, match="do not fit the 6 learned positions"):
        generate(model, p, [1], 7)
    with pytest.raises(ShapeError, match="at least one token"):
        generate(model, p, [], 2)
    with pytest.raises(SymadError, match="needs a causal model"):
        generate(small(mask="none"), p, [1], 2)
    with pytest.raises(SymadError, match="temperature=-1"):
        sample(np.zeros(3), rng, temperature=-1)


def test_the_name_of_a_preset_is_no_model():
    with pytest.raises(TypeError, match=r"PRESETS\['GPT-3'\]\.model\(vocabulary, context\)"):
        parameter_counts("GPT-3")
