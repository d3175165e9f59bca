"""Generating text: tokens sampled one after the other, with a cache of keys and values.

    token_{t+1} ~ softmax(scores_t / τ),   restricted to the k most likely tokens,

τ is the temperature; for τ → 0 the most likely token is chosen. Shapes: scores (|V|,). Source: Fan, Lewis &
Dauphin, "Hierarchical neural story generation" (2018), section 5.3, for the restriction to k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError, SymadError
from symad.models.layers.parameters import Parameters
from symad.models.transformers.transformer import Transformer


def sample(scores: Array, rng: np.random.Generator, temperature: float = 1.0, top: int | None = None) -> int:
    """A token sampled from softmax(scores / temperature), among the ``top`` most likely ones.

    Temperature 0 chooses the most likely token.

    Raises:
        SymadError: a negative temperature, or top < 1.
    """
    if temperature < 0 or (top is not None and top < 1):
        raise SymadError(
            f"sampling with temperature={temperature} and top={top}: the temperature must be ≥ 0, top ≥ 1"
        )
    if temperature == 0:
        return int(np.argmax(scores))
    order = np.argsort(scores)[::-1][:top]
    z = (scores[order] - scores[order[0]]) / temperature
    w = np.exp(z)
    return int(rng.choice(order, p=w / w.sum()))


def generate(
    model: Transformer,
    p: Parameters,
    prompt: Sequence[int] | Array,
    count: int,
    seed: int = 0,
    temperature: float = 1.0,
    top: int | None = None,
    step: Callable[..., tuple[Array, Array, Array]] | None = None,
) -> list[int]:
    """``count`` tokens after a prompt, with a cache of keys and values.

    Args:
        model: a causal model.
        p: its parameters.
        prompt: at least one token.
        count: the number of tokens to sample.
        seed: the seed of the samples.
        temperature: see `sample`.
        top: see `sample`.
        step: computes ``model.step(p, token, K, V)``, such as a lowered kernel; by default
            NumPy runs the model's own function.

    Raises:
        ShapeError: an empty prompt, or more tokens than learned positions.
    """
    tokens = [int(v) for v in prompt]
    if not tokens:
        raise ShapeError("generate needs a prompt with at least one token")
    if model.position == "learned" and len(tokens) + count > int(model.context) + 1:
        raise ShapeError(f"{len(tokens)} + {count} tokens do not fit the {model.context} learned positions")
    rng, (K, V) = np.random.default_rng(seed), model.empty_cache()
    run = model.step if step is None else step
    for k in range(len(tokens) + count - 1):
        scores, K, V = run(p, np.asarray(tokens[k]), K, V)
        if k + 1 == len(tokens):
            tokens.append(sample(np.asarray(scores), rng, temperature, top))
    return tokens[-count:] if count else []
