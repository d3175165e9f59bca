"""The transformer with the switches of published architectures: alone, or as encoder or decoder.

    x_t = E[token_t] + P[t],
    each of L layers:  x ← residual(x, multi-head attention),
                       x ← residual(x, attention to the memory z), if there is one,
                       x ← residual(x, feed-forward block),
    scores = norm(x) Uᵀ,   p(token_{t+1} | tokens ≤ t) = softmax(scores_t),
    loss = −mean_t log p(token_{t+1} | tokens ≤ t).

Switches: the mask (causal, prefix, none), the order of norm and residual (pre, post, deep), layer or RMS
norm, positions (learned, sinusoidal, rotary, ALiBi, relative, none), the feed-forward block (ReLU, GELU,
GeGLU, SwiGLU), biases, tied embedding (U = E), shared key heads, a window, a cap of the scores, and
``memory``, which a decoder attends to. Shapes: tokens (n,) or a batch (B, n), integers 0..|V|−1; E and U
(|V|, d); memory z (m, d_z) or (B, m, d_z); scores (n, |V|) or (B, n, |V|). The cost of one layer in
multiply-adds, with H·d_k = d, is 4d²n + 2n²d + 2 d d_ff n.

Sources: Vaswani et al. (2017); Radford et al. (2018, 2019) for decoder-only models; Wang et al., "DeepNet"
(2022), equation 1; Phuong & Hutter, "Formal algorithms for transformers" (2022), algorithm 10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError, SymadError
from symad.functions import arange, concatenate, lookup
from symad.models.layers.gated import FeedForwardBlock
from symad.models.layers.losses import cross_entropy
from symad.models.layers.normalization import EPSILON, deep_scale, layer_norm, residual, rms_norm
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, initial, normal, numbers, part, prefixed
from symad.models.transformers import positions
from symad.models.transformers.attention import MultiHead, causal_mask, prefix_mask, window_mask

CHOICES = {
    "mask": ("causal", "prefix", "none"),
    "order": ("pre", "post", "deep"),
    "norm": ("layer", "rms"),
    "rotary": ("half", "interleaved"),
    "position": ("learned", "sinusoidal", "rotary", "alibi", "relative", "none"),
}


@model
class Transformer:
    """A transformer; sizes are ints or symbols, but the number of layers is an int.

    Args:
        vocabulary: |V|.
        context: the largest n (learned positions; also the clip of relative ones).
        width: d.
        layers: L.
        heads: H.
        key: d_k = d_v of a head; by default d / H.
        hidden: d_ff; by default 4d.
        mask: "causal", "prefix" (all positions see those before ``prefix``) or "none".
        order: "pre", "post" or "deep".
        norm: "layer" or "rms".
        position: "learned", "sinusoidal", "rotary", "alibi", "relative" or "none".
        block: "relu", "gelu", "gelu_tanh", "geglu" or "swiglu".
        bias: true if linear maps and layer norms have biases.
        tied: true if U = E.
        prefix: the length of the prefix.
        memory: d_z, the features of a memory that every layer attends to; None without one.
        key_heads: G heads of keys and values, a divisor of H; by default H.
        window: the number of positions that a position of a causal model sees, including itself; by default
            all.
        scale: the factor of the scores; by default 1/√d_k.
        cap: c, for scores c tanh(s/c).
        rotary: "half" or "interleaved": the pairs that rotary positions rotate.
        base: the base of the rotary frequencies.
        epsilon: the ε of the norms.

    Raises:
        SymadError: a switch has another value.
    """

    vocabulary: Dim
    context: Dim
    width: Dim
    layers: int
    heads: int
    key: Dim | None = None
    hidden: Dim | None = None
    mask: str = "causal"
    order: str = "pre"
    norm: str = "layer"
    position: str = "learned"
    block: str = "gelu"
    bias: bool = True
    tied: bool = True
    prefix: int = 0
    memory: Dim | None = None
    key_heads: Dim | None = None
    window: int | None = None
    scale: float | None = None
    cap: float | None = None
    rotary: str = "half"
    base: float = 10000.0
    epsilon: float = EPSILON

    def __post_init__(self) -> None:
        for switch, choices in CHOICES.items():
            if getattr(self, switch) not in choices:
                raise SymadError(f"{switch}={getattr(self, switch)!r} is not one of {', '.join(choices)}")
        if self.window is not None and (self.mask != "causal" or self.window < 1):
            raise SymadError(
                f"window={self.window} with mask={self.mask!r}: a window is 1 or more, of a causal model"
            )
        if not self.epsilon >= 0 or not self.base > 0:
            raise SymadError(f"epsilon={self.epsilon} must be at least 0, base={self.base} positive")
        _ = self.heads_of, self.block_of  # which refuse sizes and kinds that do not fit

    # ---- parts

    @property
    def heads_of(self) -> MultiHead:
        """The attention of a layer."""
        shared = {"key_heads": self.key_heads, "scale": self.scale, "cap": self.cap}
        return MultiHead(self.width, self.heads, self.key, bias=self.bias, **shared)

    @property
    def cross_of(self) -> MultiHead:
        """The attention of a layer to the memory."""
        return MultiHead(self.width, self.heads, self.key, context=self.memory, bias=self.bias)

    @property
    def block_of(self) -> FeedForwardBlock:
        """The feed-forward block of a layer."""
        hidden = 4 * self.width if self.hidden is None else self.hidden
        return FeedForwardBlock(self.width, hidden, self.block, self.bias)

    @property
    def norm_shapes(self) -> Shapes:
        """γ, and β if it exists."""
        found: Shapes = {"gamma": (self.width,)}
        return found | {"beta": (self.width,)} if self.norm == "layer" and self.bias else found

    @property
    def shapes(self) -> Shapes:
        """E, positions, the parts of each layer as ``layer1_W_Q``, the last norm, and U."""
        found: Shapes = {"E": (self.vocabulary, self.width)}
        if self.position == "learned":
            found["P"] = (self.context, self.width)
        if self.position == "relative":
            found["R"] = (self.heads, 2 * self.context - 1)
        for k in range(1, self.layers + 1):
            found |= prefixed(f"layer{k}_", self.heads_of.shapes | self.block_of.shapes)
            found |= prefixed(f"layer{k}_norm1_", self.norm_shapes)
            found |= prefixed(f"layer{k}_norm2_", self.norm_shapes)
            if self.memory is not None:
                found |= prefixed(f"layer{k}_cross_", self.cross_of.shapes)
                found |= prefixed(f"layer{k}_norm3_", self.norm_shapes)
        if self.order == "pre":
            found |= prefixed("norm_", self.norm_shapes)
        return found if self.tied else found | {"U": (self.vocabulary, self.width)}

    def init(self, seed: int = 0, scale: float = 0.02) -> Parameters:
        """Normal numbers with standard deviation ``scale``, γ = 1, biases 0.

        The last matrices before the residual stream (W_O, W_2) are divided by √(2L), as in GPT-2; with deep
        norm the values, W_O and the block are multiplied by β = (8L)^{−1/4}.
        """

        def start(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
            kind = name.split("_", 1)[-1].removeprefix("cross_")
            if "norm" in name or kind.startswith("b_") or name == "R":
                return np.full(numbers(shape), 1.0 if name.endswith("gamma") else 0.0)
            return normal(rng, shape, scale * self._gain(kind))

        return initial(self.shapes, seed, start)

    def _gain(self, kind: str) -> float:
        if self.order == "deep" and kind in ("W_V", "W_O", "W_1", "W_2", "W_3"):
            return float((8 * self.layers) ** -0.25)
        return float((2 * self.layers) ** -0.5) if kind in ("W_O", "W_2") else 1.0

    # ---- the function

    def scores(self, p: Mapping[str, Array], tokens: Array, memory: Array | None = None) -> Array:
        """Scores of the next token: tokens (n,) or (B, n) -> (n, |V|) or (B, n, |V|)."""
        return self.unembed(p, self.features(p, tokens, memory))

    def features(
        self, p: Mapping[str, Array], tokens: Array, memory: Array | None = None, seen: Array | None = None
    ) -> Array:
        """The features after the layers: (n,) or (B, n) -> (n, d) or (B, n, d).

        Args:
            p: parameters.
            tokens: (n,) or (B, n).
            memory: z (m, d_z) or (B, m, d_z), for a decoder.
            seen: conditions in the shape of the tokens, False for padding, which no position sees.
        """
        self._check_memory(memory)
        n = tokens.shape[-1]
        t = arange(n)
        x = self.embed(p, tokens, t)
        mask, bias = self.visible(n), self.bias_at(p, t, t)
        if seen is not None:
            keys = seen[..., None, None, :]  # (..., heads, queries, keys)
            mask = keys if mask is None else np.logical_and(mask, keys)
        turn = partial(self._turn, t=t) if self.position == "rotary" else None

        def mix(k: int, layer: Mapping[str, Array], value: Array) -> Array:
            return self.heads_of.apply(layer, value, mask=mask, bias=bias, rotate=turn)

        return self._layers(p, x, mix, memory)

    def loss(self, p: Mapping[str, Array], tokens: Array, targets: Array) -> Array | float:
        """The mean of −log p(target) over all positions: tokens and targets (n,) or (B, n)."""
        return cross_entropy(self.scores(p, tokens), targets)

    def embed(self, p: Mapping[str, Array], tokens: Array, t: Array) -> Array:
        """E[tokens] + P[t] for tokens (..., n) at the positions t (n,)."""
        check_tokens(tokens, self.vocabulary)
        x = lookup(p["E"], tokens)
        if self.position == "learned":
            return x + lookup(p["P"], t)
        if self.position == "sinusoidal":
            return x + positions.sinusoidal(t, int(self.width))
        return x

    def unembed(self, p: Mapping[str, Array], x: Array) -> Array:
        """The scores of the vocabulary, from features (..., d)."""
        return x @ (p["E"] if self.tied else p["U"]).T

    def normed(self, p: Mapping[str, Array], x: Array) -> Array:
        """Layer or RMS norm with the parameters gamma and beta."""
        if self.norm == "rms":
            return rms_norm(x, p["gamma"], self.epsilon)
        return layer_norm(x, p["gamma"], p.get("beta"), self.epsilon)

    def visible(self, n: Dim) -> Array | None:
        """The mask (n, n), or None if all is visible."""
        if self.mask == "none":
            return None
        if self.window is not None:
            return window_mask(n, self.window)
        return causal_mask(n) if self.mask == "causal" else prefix_mask(n, self.prefix)

    def bias_at(self, p: Mapping[str, Array], t: Array, s: Array) -> Array | None:
        """The bias of the scores for queries at t (n,) and keys at s (m,): (H, n, m) or None."""
        if self.position == "alibi":
            return positions.alibi(self.heads, t, s)
        return positions.relative(p["R"], t, s) if self.position == "relative" else None

    def _turn(self, x: Array, t: Array) -> Array:
        """Queries or keys with rotary positions."""
        return positions.rotate(x, t, self.base, self.rotary == "interleaved")

    def _layers(
        self,
        p: Mapping[str, Array],
        x: Array,
        mix: Callable[[int, Mapping[str, Array], Array], Array],
        memory: Array | None,
    ) -> Array:
        """All layers, and the last norm: ``mix`` attends, given the layer's number, its parameters and x."""
        for k in range(self.layers):
            layer = part(p, f"layer{k + 1}_")
            x = self._residuals(layer, x, partial(mix, k, layer), memory)
        return self.normed(part(p, "norm_"), x) if self.order == "pre" else x

    def _residuals(
        self, layer: Mapping[str, Array], x: Array, mix: Callable[[Array], Array], memory: Array | None
    ) -> Array:
        """The two or three residual blocks of a layer."""
        alpha = deep_scale(self.layers) if self.order == "deep" else 1.0
        first, second = (partial(self.normed, part(layer, f"norm{k}_")) for k in (1, 2))
        x = residual(self.order, x, mix, first, alpha)
        if memory is not None:
            read = partial(self.cross_of.apply, part(layer, "cross_"), Z=memory)
            x = residual(self.order, x, read, partial(self.normed, part(layer, "norm3_")), alpha)
        return residual(self.order, x, partial(self.block_of.apply, layer), second, alpha)

    def _check_memory(self, memory: Array | None) -> None:
        if (memory is None) != (self.memory is None):
            raise SymadError(
                f"the model has memory={self.memory}, but {'no' if memory is None else 'a'} memory is given"
            )
        if memory is not None and memory.shape[-1] != self.memory:
            raise ShapeError(f"the memory has shape {memory.shape}; its features must be {self.memory}")

    # ---- generation

    def step(
        self, p: Mapping[str, Array], token: Array, K: Array, V: Array, memory: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Scores after one more token, from the keys and values of the tokens before it.

        Args:
            p: parameters.
            token: () an integer.
            K: (L, G, t, d_k), the keys of the t tokens before; V the values.
            V: (L, G, t, d_k).
            memory: (m, d_z), for a decoder.

        Returns:
            Scores (|V|,), and K and V with one more position. The work is O(t), whereas running all
            tokens again is O(t²).

        Raises:
            SymadError: the model is not causal: earlier keys would change.
        """
        if self.mask != "causal":
            raise SymadError(f"step needs a causal model, but mask={self.mask!r}")
        self._check_memory(memory)
        before = K.shape[2]
        s = arange(before + 1)
        t = s[before:]
        x = self.embed(p, token[None], t)
        bias, caches = self.bias_at(p, t, s), []
        mask = None if self.window is None else (t[:, None] - s[None, :] < self.window)

        def mix(k: int, layer: Mapping[str, Array], value: Array) -> Array:
            Q, fresh_K, fresh_V = (self.heads_of.project(layer, c, value) for c in "QKV")
            if self.position == "rotary":
                Q, fresh_K = self._turn(Q, t), self._turn(fresh_K, t)
            joined = [concatenate(pair, axis=1) for pair in ((K[k], fresh_K), (V[k], fresh_V))]
            caches.append(joined)
            return self.heads_of.merge(layer, self.heads_of.attend(Q, joined[0], joined[1], mask, bias))

        scores = self.unembed(p, self._layers(p, x, mix, memory))[0]
        return scores, *(np.stack(c) for c in zip(*caches, strict=True))

    def empty_cache(self) -> tuple[Array, Array]:
        """K and V before the first token: (L, G, 0, d_k)."""
        shape = numbers((self.layers, self.heads_of.groups, 0, self.heads_of.d_k))
        return np.zeros(shape), np.zeros(shape)


def check_tokens(tokens: Array, vocabulary: Dim) -> None:
    """Refuse tokens outside of the vocabulary; traced ones are checked when they are looked up.

    Raises:
        ShapeError: a token is negative, too large or not an integer.
    """
    if not isinstance(tokens, np.ndarray) or not isinstance(vocabulary, int):
        return
    bad = (tokens < 0) | (tokens >= vocabulary) | (tokens != np.floor(tokens))
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ShapeError(
            f"token {tokens[place]} at {place} is not one of the {vocabulary} tokens 0..{vocabulary - 1}"
        )
