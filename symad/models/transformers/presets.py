"""Published transformers: their sizes and numbers of parameters.

A layer with H·d_k = d and d_ff = 4d has 4d² parameters in attention and 8d² in the feed-forward block, so
that L layers have 12 L d². Sources: Brown et al. (2020), table 2.1, for GPT-3; Zhang et al. (2022) for OPT;
Zeng et al. (2021) for PanGu-α; BigScience (2022) for BLOOM; Smith et al. (2022) for MT-NLG; Taylor et
al. (2022) for Galactica; Touvron et al. (2023), table 2, for LLaMA, whose SwiGLU has d_ff near 8d/3 to
keep the count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.core.dims import Dim
from symad.models.layers.parameters import count
from symad.models.transformers.transformer import Transformer


@dataclass(frozen=True)
class Preset:
    """A published model: its layers L, width d, heads, its published parameters in 10⁹, and switches."""

    layers: int
    width: int
    heads: int
    published: float
    order: str = "pre"
    norm: str = "layer"
    position: str = "learned"
    block: str = "gelu"
    bias: bool = True

    @property
    def estimate(self) -> int:
        """12 L d²."""
        return 12 * self.layers * self.width**2

    def model(self, vocabulary: Dim, context: Dim, **changes: Any) -> Transformer:
        """The transformer with these switches; ``changes`` replace fields, such as smaller sizes."""
        fields: dict[str, Any] = {
            "width": self.width,
            "layers": self.layers,
            "heads": self.heads,
            "order": self.order,
            "norm": self.norm,
            "position": self.position,
            "block": self.block,
            "bias": self.bias,
        }
        return Transformer(vocabulary, context, **(fields | changes))


PRESETS = {
    "GPT-3": Preset(96, 12288, 96, 175),
    "OPT": Preset(96, 12288, 96, 175, block="relu"),
    "PanGu-α": Preset(64, 16384, 128, 207),
    "BLOOM": Preset(70, 14336, 112, 176, position="alibi"),
    "MT-NLG": Preset(105, 20480, 128, 530),
    "Galactica": Preset(96, 10240, 80, 120, bias=False),
    "LLaMA": Preset(80, 8192, 64, 65.2, norm="rms", position="rotary", block="swiglu", bias=False),
}


def parameter_counts(model: Transformer | str) -> dict[str, Dim]:
    """Numbers of matrix parameters: embedding, attention, block, total; without biases and norms.

    Raises:
        TypeError: it is a name of `PRESETS`, which lacks the vocabulary and the context.
    """
    if isinstance(model, str):
        made = f"PRESETS[{model!r}].model(vocabulary, context)"
        raise TypeError(f"parameter_counts takes a model, not {model!r}; a preset gives one by {made}")
    groups: dict[str, Dim] = {"embedding": 0, "attention": 0, "block": 0, "others": 0}
    for name, shape in model.shapes.items():
        kind = name.split("_", 1)[-1]
        if name in ("E", "U"):
            group = "embedding"
        elif kind in ("W_Q", "W_K", "W_V", "W_O"):
            group = "attention"
        else:
            group = "block" if kind in ("W_1", "W_2", "W_3") else "others"
        groups[group] += count({name: shape})
    return groups | {"total": groups["embedding"] + groups["attention"] + groups["block"]}
