"""All attention and transformer modules of PyTorch, with all masks and options."""

import numpy as np
import pytest

import symad
from symad.errors import SymadError, TraceError
from symad.models.transformers import attention
from symad.numeric import lower

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from tests.torch.agreement import agrees, close  # noqa: E402

g = np.random.default_rng(0)
N, L, M, D, H = 2, 5, 4, 4, 2
X, Z = g.normal(size=(L, N, D)), g.normal(size=(M, N, D))
CAUSAL = torch.ones(L, L).triu(1).bool()
ADDED = torch.tensor(g.normal(size=(L, L)))
PER_HEAD = torch.tensor(g.normal(size=(N * H, L, L)))
LAST = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
NUMBERS = torch.where(LAST, -torch.inf, 0.0).double()
MASKS = {
    "none": {},
    "conditions": {"attn_mask": CAUSAL},
    "numbers": {"attn_mask": ADDED},
    "infinite numbers": {"attn_mask": ADDED.masked_fill(CAUSAL, -torch.inf)},
    "for each head": {"attn_mask": PER_HEAD},
    "keys": {"key_padding_mask": LAST},
    "keys as numbers": {"key_padding_mask": NUMBERS},
    "both": {"attn_mask": CAUSAL, "key_padding_mask": LAST},
    "both as numbers": {"attn_mask": PER_HEAD.masked_fill(CAUSAL, -torch.inf), "key_padding_mask": NUMBERS},
    "causal": {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False},
    "all weights": {"average_attn_weights": False, "attn_mask": CAUSAL},
}
OPTIONS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "without bias": {"bias": False},
    "more keys": {"add_bias_kv": True, "add_zero_attn": True},
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("options", OPTIONS)
def test_multi_head_attention(masks, options):
    if (masks, options) == ("causal", "more keys"):
        pytest.skip("PyTorch takes the hint for the mask, and hides the keys that it adds")
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(D, H, **OPTIONS[options]), X
    if module.batch_first:
        x = np.swapaxes(X, 0, 1).copy()
    backends = ("numpy", "c") if options == "plain" and masks == "both" else ()
    agrees(module, [x, x + 0.1, x - 0.1], backends=backends, **MASKS[masks])


@pytest.mark.parametrize("options", [{"kdim": 3, "vdim": 5}, {"kdim": 3, "vdim": 5, "add_bias_kv": True}])
def test_keys_and_values_of_other_sizes(options):
    torch.manual_seed(0)
    agrees(nn.MultiheadAttention(D, H, **options), [X, g.normal(size=(M, N, 3)), g.normal(size=(M, N, 5))])


def test_one_sequence_without_a_batch():
    torch.manual_seed(0)
    agrees(nn.MultiheadAttention(D, H), [X[:, 0]] * 3, attn_mask=CAUSAL)


LAYERS = [
    {"norm_first": first, "activation": activation, "bias": bias, "batch_first": batch_first}
    for first, activation, bias, batch_first in (
        (False, "relu", True, False), (True, "gelu", True, True), (True, F.relu, False, False),
        (False, F.gelu, True, True), (True, nn.SiLU(), True, False),
    )
]  # fmt: skip


def layer_of(kind, options):
    torch.manual_seed(0)
    module = kind(D, H, 6, **options)
    for p in module.parameters():
        p.data += 0.1 * torch.randn(p.shape)
    turn = (lambda v: np.swapaxes(v, 0, 1).copy()) if options["batch_first"] else (lambda v: v)
    return module, turn


@pytest.mark.parametrize("options", LAYERS, ids=range(len(LAYERS)))
@pytest.mark.parametrize(
    "masks", [{}, {"src_mask": CAUSAL}, {"src_mask": ADDED.float().double(), "src_key_padding_mask": NUMBERS}]
)
def test_encoder_layers(options, masks):
    module, turn = layer_of(nn.TransformerEncoderLayer, options)
    agrees(module, [turn(X)], backends=(), **masks)


@pytest.mark.parametrize("options", LAYERS, ids=range(len(LAYERS)))
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"tgt_mask": CAUSAL, "memory_key_padding_mask": LAST[:, 1:]},
        {"tgt_mask": CAUSAL, "memory_mask": ADDED[:, 1:] > 1, "tgt_key_padding_mask": LAST},
    ],
)
def test_decoder_layers(options, masks):
    module, turn = layer_of(nn.TransformerDecoderLayer, options)
    agrees(module, [turn(X), turn(Z)], backends=(), **masks)


@pytest.mark.thorough
@pytest.mark.parametrize("first", [True, False])
def test_stacks_and_the_whole_transformer(first):
    torch.manual_seed(0)
    own = nn.TransformerEncoderLayer(D, H, 6, norm_first=first)
    encoder = nn.TransformerEncoder(own, 2, nn.LayerNorm(D), enable_nested_tensor=False)
    agrees(encoder, [X], backends=(), mask=CAUSAL, src_key_padding_mask=LAST)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, H, 6, norm_first=first), 2)
    agrees(decoder, [X, Z], backends=(), tgt_mask=CAUSAL)
    whole = nn.Transformer(D, H, 1, 2, 6, norm_first=first)
    agrees(whole, [Z, X], backends=("numpy",), tgt_mask=CAUSAL, src_key_padding_mask=LAST[:, 1:])


PRODUCTS = {
    "plain": ({}, {}),
    "scale": ({"scale": 0.3}, {"scale": 0.3}),
    "causal": ({"is_causal": True}, {"mask": np.tril(np.ones((L, M), bool))}),
    "conditions": ({"attn_mask": ~CAUSAL[:, :M]}, {"mask": ~CAUSAL[:, :M].numpy()}),
    "numbers": ({"attn_mask": ADDED[:, :M]}, {"bias": ADDED[:, :M].numpy()}),
    "infinite numbers": (
        {"attn_mask": ADDED.masked_fill(CAUSAL, -torch.inf)[:, :M]},
        {"additive": ADDED.masked_fill(CAUSAL, -torch.inf)[:, :M].numpy()},
    ),
    "grouped": ({"enable_gqa": True, "is_causal": True}, {"mask": np.tril(np.ones((L, M), bool))}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PRODUCTS)
def test_scaled_dot_product_attention(name):
    theirs, ours = PRODUCTS[name]
    groups = 2 if name == "grouped" else 4
    data = [g.normal(size=s) for s in ((N, 4, L, 3), (N, groups, M, 3), (N, groups, M, 2))]
    tensors = [torch.tensor(v, requires_grad=True) for v in data]
    expected = F.scaled_dot_product_attention(*tensors, **theirs)
    graph = symad.trace(lambda Q, K, V: attention.attention(Q, K, V, **ours), [v.shape for v in data])
    seed = g.normal(size=expected.shape)
    (expected * torch.tensor(seed)).sum().backward()
    pulled = symad.pullback(graph)
    for f in (pulled, lower(pulled), lower(pulled, backend="c")):
        found = f(*data, seed)
        close(found, [expected.detach().numpy(), *(t.grad.numpy() for t in tensors)])


def test_no_attention_module_is_missing():
    found = {n for n in vars(nn) if "Attention" in n or n.startswith("Transformer")}
    assert found == {
        "MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder",
        "TransformerEncoderLayer", "TransformerDecoderLayer",
    }  # fmt: skip


def test_what_does_not_fit_is_refused():
    module = nn.MultiheadAttention(D, H).double().eval()
    model = symad.torch.from_torch(module)
    with pytest.raises(TraceError, match="is_causal=True"):
        model.trace(X.shape, X.shape, X.shape, is_causal=True)
    with pytest.raises(TraceError, match="mask"):
        model.trace(X.shape, X.shape, X.shape, mask=CAUSAL.numpy())
    for masks in ({"attn_mask": np.zeros((L, L + 1))}, {"key_padding_mask": np.zeros((N, L + 1), bool)}):
        with pytest.raises(SymadError, match=next(iter(masks))):
            model.trace(X.shape, X.shape, X.shape, **masks)
    with pytest.raises(TraceError, match="dropout"):
        symad.torch.from_torch(nn.MultiheadAttention(D, H, dropout=0.1).train()).trace(*[X.shape] * 3)
