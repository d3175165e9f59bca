"""Grouped-query attention: its definition, its savings, and weights in the layout of published models.

1. Attention with G key heads is attention with H key heads, of which each H/G in a row are equal; a
   certificate shows it.
2. A state dict with the names and shapes of a Llama model, here with random weights, becomes a symad model:
   its scores, the gradient of its loss, and text token by token with a cache of keys and values.
3. The cache holds G heads: 1/8 of the numbers for G = 1 of 8. A window limits the positions that a position
   depends on, as the pattern of the derivative shows.
Run: python examples/sequences/44_grouped_queries.py
"""

import numpy as np
import sympy as sp

import symad
from symad.models.layers.parameters import trace_model
from symad.models.transformers.attention import attention, causal_mask, window_mask
from symad.models.transformers.state_dicts import llama
from symad.numeric import lower

VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, SIZE = 50, 32, 64, 2, 8, 4


def certificate():
    """Two query heads that share a key head."""

    def shared(Q, K, V):
        return attention(Q, K, V, causal_mask(2))

    def repeated(Q, K, V):
        return attention(Q, np.repeat(K, 2, axis=0), np.repeat(V, 2, axis=0), causal_mask(2))

    shapes = [(2, 2, 2), (1, 2, 2), (1, 2, 1)]
    found = symad.equal(*(symad.trace(f, shapes) for f in (shared, repeated)))
    print(f"one key head for two queries is two equal key heads: {found.status}")
    return found


def state_dict(groups, seed=0):
    """Random weights under Llama's names; linear maps are (out, in)."""
    rng = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, WIDTH), "model.norm.weight": (WIDTH,)}
    for k in range(LAYERS):
        layer = f"model.layers.{k}."
        for name, rows in (("q", HEADS), ("k", groups), ("v", groups)):
            shapes[f"{layer}self_attn.{name}_proj.weight"] = (rows * SIZE, WIDTH)
        shapes[f"{layer}self_attn.o_proj.weight"] = (WIDTH, HEADS * SIZE)
        shapes |= {f"{layer}mlp.{name}_proj.weight": (HIDDEN, WIDTH) for name in ("gate", "up")}
        shapes[f"{layer}mlp.down_proj.weight"] = (WIDTH, HIDDEN)
        shapes |= {f"{layer}{name}_layernorm.weight": (WIDTH,) for name in ("input", "post_attention")}
    return {
        name: np.ones(shape) if len(shape) == 1 else rng.normal(scale=0.3, size=shape)
        for name, shape in shapes.items()
    }


def written(groups, count=12):
    """Tokens by a cache, compared with the scores of the whole text; prints the size of the cache."""
    model, p = llama(state_dict(groups), HEADS)
    text, (K, V), apart = [7], model.empty_cache(), 0.0
    for _ in range(count):
        scores, K, V = model.step(p, np.array(text[-1]), K, V)
        apart = max(apart, np.abs(scores - model.scores(p, np.array(text))[-1]).max())
        text.append(int(scores.argmax()))
    print(f"G = {groups}: {K.size + V.size:5d} numbers in the cache of {count} tokens; text {text[:6]}...")
    return apart, K.size + V.size


def slope():
    """The gradient of the loss by compiled code, and one entry by a finite difference."""
    model, p = llama(state_dict(2), HEADS)
    tokens, targets = (sp.IndexedBase(sp.Symbol(n, integer=True), shape=(10,)) for n in ("tokens", "targets"))
    loss = trace_model(model.loss, model.shapes, tokens, targets)
    both = lower(symad.value_and_gradient(loss, ["layer1_W_K"]), backend="c")
    text = np.random.default_rng(1).integers(0, VOCABULARY, 11)

    def at(W):
        return both(*(W if name == "layer1_W_K" else p[name] for name in model.shapes), text[:-1], text[1:])

    moved = np.zeros_like(p["layer1_W_K"])
    moved[1, 3, 2] = 1e-5
    value, gradient = at(p["layer1_W_K"])
    slope = (at(p["layer1_W_K"] + moved)[0] - at(p["layer1_W_K"] - moved)[0]) / 2e-5
    found = np.reshape(gradient, moved.shape)[1, 3, 2]
    print(f"loss {value:.6f}; one slope in the shared keys {found:.9f}, by a finite difference {slope:.9f}")
    return abs(found - slope)


def seen(n=8, width=3):
    """The number of positions on which each position depends, with a window."""
    graph = symad.trace(lambda X: attention(X, X, X, window_mask(n, width)), [(n, 2)])
    pattern = symad.jacobian_sparsity(graph).toarray().reshape(n, -1, n, 2).any(axis=(1, 3))
    print(f"a window of {width}: positions seen {pattern.sum(axis=1).tolist()}")
    return pattern


def main() -> None:
    """Run all three parts."""
    assert certificate().status in ("proved", "tested")
    sizes = {}
    for groups in (8, 2, 1):
        apart, sizes[groups] = written(groups)
        assert apart < 1e-11
    assert sizes[8] == 8 * sizes[1]
    assert slope() < 1e-8
    assert (seen() == np.tri(8, dtype=bool) & ~np.tri(8, k=-3, dtype=bool)).all()


if __name__ == "__main__":
    main()
