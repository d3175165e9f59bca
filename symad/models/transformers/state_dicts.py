"""Models with the architecture of GPT-2 and Llama, from a state dict with the names of published weights.

GPT-2: layer norms before the blocks, learned positions, gelu by tanh, biases, tied embedding; linear maps
are stored (in, out), with Q, K, V side by side. Llama: RMS norms, rotary positions of half-split pairs,
SwiGLU, no biases, optionally fewer key heads; linear maps are stored (out, in). Sources: Radford et al.
(2019); Touvron et al. (2023); the names are those of the transformers library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError
from symad.models.layers.parameters import Parameters, check_shapes
from symad.models.transformers.transformer import Transformer


class NamedArrays:
    """The arrays of a state dict by name; records which were read."""

    def __init__(self, asked: str, state: Mapping[str, Array], ends: str) -> None:
        """``ends`` is the end of the first name, which determines the prefix of all names."""
        self.asked, self.state = asked, state
        first = [name for name in state if name.endswith(ends)]
        if len(first) != 1:
            raise ShapeError(f"{asked}: the state dict has {len(first)} entries *{ends}; it needs one")
        self.prefix = first[0].removesuffix(ends)
        self.read: set[str] = set()

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        """The array of a name, which must have the shape given, as float64."""
        full = self.prefix + name if self.prefix + name in self.state else name
        if full not in self.state:
            raise ShapeError(f"{self.asked}: the state dict has no {self.prefix}{name}")
        value, self.read = self.state[full], self.read | {full}
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = value.numpy() if value.is_complex() else value.double().numpy()
        if np.asarray(value).dtype.kind not in "fiu":
            raise ShapeError(f"{self.asked}: {full} contains {np.asarray(value).dtype}, not real numbers")
        found = np.asarray(value, dtype=np.float64)
        if shape and found.shape != shape:
            raise ShapeError(f"{self.asked}: {full} has the shape {found.shape}, not {shape}")
        return found

    def layers(self, before: str, after: str) -> int:
        """The number of layers, from the names before0after, before1after, ..."""
        count = 0
        while f"{self.prefix}{before}{count}{after}" in self.state:
            count += 1
        if not count:
            raise ShapeError(f"{self.asked}: the state dict has no {self.prefix}{before}0{after}")
        return count

    def done(self, *others: str) -> None:
        """Refuse unread entries, except for names with these ends."""
        rest = [n for n in self.state if n not in self.read and not n.endswith(others)]
        if rest:
            raise ShapeError(f"{self.asked}: no place for {', '.join(rest)}")


def gpt2(state: Mapping[str, Array], heads: int) -> tuple[Transformer, Parameters]:
    """A model with GPT-2's architecture and its parameters; sizes come from the arrays.

    Args:
        state: ``wte.weight``, ``h.0.attn.c_attn.weight``, ... with any prefix, as arrays or tensors.
        heads: H, which the shapes do not determine.

    Raises:
        ShapeError: names or shapes that do not fit, or heads that do not divide the width.
    """
    at = NamedArrays("gpt2", state, "wte.weight")
    E = at("wte.weight")
    d = E.shape[1]
    if d % heads:
        raise ShapeError(f"gpt2: {heads} heads do not divide the width {d}")
    P = at("wpe.weight")
    layers = at.layers("h.", ".ln_1.weight")
    hidden = at("h.0.mlp.c_fc.weight").shape[1]
    model = Transformer(
        len(E), len(P), d, layers, heads, hidden=hidden, block="gelu_tanh", tied=True, bias=True
    )
    p: Parameters = {"E": E, "P": P, "norm_gamma": at("ln_f.weight", d), "norm_beta": at("ln_f.bias", d)}
    for k in range(layers):
        own, ours = f"h.{k}.", f"layer{k + 1}_"
        parts = np.split(at(own + "attn.c_attn.weight", d, 3 * d), 3, axis=1)
        biases = np.split(at(own + "attn.c_attn.bias", 3 * d), 3)
        for name, W, b in zip("QKV", parts, biases, strict=True):
            p[f"{ours}W_{name}"] = W.reshape(d, heads, -1).transpose(1, 0, 2)
            p[f"{ours}b_{name}"] = b.reshape(heads, -1)
        p[f"{ours}W_O"] = at(own + "attn.c_proj.weight", d, d).reshape(heads, -1, d)
        p[f"{ours}b_O"] = at(own + "attn.c_proj.bias", d)
        p[f"{ours}W_1"], p[f"{ours}b_1"] = at(own + "mlp.c_fc.weight", d, hidden), at(own + "mlp.c_fc.bias")
        p[f"{ours}W_2"] = at(own + "mlp.c_proj.weight", hidden, d)
        p[f"{ours}b_2"] = at(own + "mlp.c_proj.bias")
        for j in (1, 2):
            p[f"{ours}norm{j}_gamma"], p[f"{ours}norm{j}_beta"] = (
                at(f"{own}ln_{j}.{end}", d) for end in ("weight", "bias")
            )
    at.done("attn.bias", "attn.masked_bias", "lm_head.weight")
    check_shapes("gpt2", p, model.shapes)
    return model, p


def llama(
    state: Mapping[str, Array],
    heads: int,
    base: float = 10000.0,
    epsilon: float = 1e-5,
    rotary: str = "half",
    **switches: Any,
) -> tuple[Transformer, Parameters]:
    """A model with Llama's architecture and its parameters; sizes and key heads come from the arrays.

    Args:
        state: ``model.embed_tokens.weight``, ``model.layers.0.self_attn.q_proj.weight``, ..., and
            ``lm_head.weight`` unless it is tied, as arrays or tensors.
        heads: H, which the shapes do not determine.
        base: the base of the rotary frequencies.
        epsilon: the ε of the norms.
        rotary: "half", or "interleaved" for weights in the order of the paper.
        switches: others of `Transformer`, such as ``window``.

    Raises:
        ShapeError: names or shapes that do not fit.
    """
    at = NamedArrays("llama", state, "embed_tokens.weight")
    E = at("embed_tokens.weight")
    d, first = E.shape[1], "layers.0."
    queries, keys = (len(at(f"{first}self_attn.{k}_proj.weight")) for k in "qk")
    if queries % heads:
        raise ShapeError(f"llama: heads={heads} do not divide the {queries} rows of q_proj")
    key, hidden = queries // heads, len(at(first + "mlp.gate_proj.weight"))
    if keys % key:
        raise ShapeError(f"llama: heads of {key} features do not divide the {keys} rows of k_proj")
    layers = at.layers("layers.", ".input_layernorm.weight")
    tied = "lm_head.weight" not in state
    options: dict[str, Any] = {"norm": "rms", "position": "rotary", "block": "swiglu", "bias": False}
    options |= {"key_heads": keys // key, "base": base, "epsilon": epsilon, "rotary": rotary, "tied": tied}
    model = Transformer(len(E), 1, d, layers, heads, key, hidden, **(options | switches))
    p: Parameters = {"E": E, "norm_gamma": at("norm.weight", d)}
    if not tied:
        p["U"] = at("lm_head.weight", len(E), d)
    for k in range(layers):
        own, ours = f"layers.{k}.", f"layer{k + 1}_"
        for name, rows in (("q", queries), ("k", keys), ("v", keys)):
            W = at(f"{own}self_attn.{name}_proj.weight", rows, d)
            p[f"{ours}W_{name.upper()}"] = W.reshape(-1, key, d).transpose(0, 2, 1)
        p[f"{ours}W_O"] = at(own + "self_attn.o_proj.weight", d, queries).T.reshape(heads, key, d)
        for name, j, shape in (("gate", 1, (hidden, d)), ("down", 2, (d, hidden)), ("up", 3, (hidden, d))):
            p[f"{ours}W_{j}"] = at(f"{own}mlp.{name}_proj.weight", *shape).T
        p[f"{ours}norm1_gamma"] = at(own + "input_layernorm.weight", d)
        p[f"{ours}norm2_gamma"] = at(own + "post_attention_layernorm.weight", d)
    at.done("rotary_emb.inv_freq")
    check_shapes("llama", p, model.shapes)
    return model, p
