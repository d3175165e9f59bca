"""The optimizer step for all parameters at once: norm, update and counters, with one kernel each.

Values and moments are flat arrays of float32 or float64. With half precisions the values are the master
weights, and the loss reads a copy in the shorter type. No part of a step is computed on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from symad.errors import EvaluationError
from symad.gpu.compile import Machine, kernel_text
from symad.gpu.cupy_library import real_type
from symad.gpu.recurrences.kernel_text import BITS, ELEMENT
from symad.numeric.training.optimizers import SGD, Adam, Optimizer

Array = Any
THREADS, CHUNK = 256, 1024
TOGETHER = 120
"""The most parameters of one launch; a kernel has 4096 bytes of arguments."""

ALIGNED = 8
"""Each parameter begins at a multiple of this many elements, which are 16 bytes in half precision."""

PIECE = np.dtype(
    [("gradient", "u8"), ("begin", "i8"), ("count", "i8"), ("first", "i4"), ("decays", "i4")]
)  # fmt: skip
PIECES = np.dtype([("at", PIECE, TOGETHER)])
STATE = ("number", "updates", "since", "scale", "norm", "skipped")


@dataclass(frozen=True)
class LossScale:
    """The factor of the loss that keeps float16 gradients above the range that is rounded to 0.

    A step with gradients that are not finite is skipped and multiplies the factor by ``backoff``;
    ``interval`` steps without such gradients multiply it by ``growth``. The rule and the numbers are those of
    PyTorch's GradScaler, except the start, which is the largest power of 2 in float16. Source: Micikevicius
    et al., "Mixed precision training" (2018), section 3.2.
    """

    start: float = 2.0**15
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000

    def __post_init__(self) -> None:
        good = self.start > 0 and self.growth > 1 and 0 < self.backoff < 1 and self.interval >= 1
        if not good:
            raise EvaluationError(
                f"{self}: start > 0, growth > 1, 0 < backoff < 1 and interval ≥ 1 are needed"
            )


def optimizer_source(optimizer: Optimizer, dtype: str, clip: float | None, scale: LossScale | None) -> str:
    """The kernels, with the numbers of an optimizer's rule.

    Raises:
        EvaluationError: the optimizer has no kernel.
    """
    if isinstance(optimizer, Adam):
        rule = {
            "RATE": optimizer.rate, "BETA1": optimizer.beta1, "BETA2": optimizer.beta2,
            "EPSILON": optimizer.epsilon, "DECAY": optimizer.decay, "PENALTY": optimizer.penalty,
        }  # fmt: skip
    elif isinstance(optimizer, SGD):
        rule = {"RATE": optimizer.rate, "MOMENTUM": optimizer.momentum, "PENALTY": optimizer.penalty}
        rule["NESTEROV"] = float(optimizer.nesterov)
    else:
        raise EvaluationError(f"steps on a GPU have kernels for SGD and Adam, not for {optimizer}")
    known = {"BETA1": 0.0, "BETA2": 0.0} | rule | {"CLIP": clip or 0.0, "DYNAMIC": float(scale is not None)}
    used = scale or LossScale()
    largest = 2.0**15 if dtype == "float16" else 2.0**100
    known |= {"GROWTH": used.growth, "BACKOFF": used.backoff, "INTERVAL": float(used.interval)}
    known["LARGEST"] = largest
    lines = [
        f"#define SYMAD_REAL {real_type(dtype)}",
        f"#define SYMAD_ELEMENT_BITS {BITS[dtype]}",
        f"#define RULE_ADAM {int(isinstance(optimizer, Adam))}",
        kernel_text("prims.h"),
        f"typedef {ELEMENT[dtype]} E;",
        f"constexpr int PIECES = {TOGETHER};",
        *(f"constexpr double {name} = {float(value)!r};" for name, value in known.items()),
        kernel_text("optimizer.cu"),
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class ParameterLayout:
    """The place of each parameter in the flat arrays."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of elements of each parameter."""
        return tuple(int(np.prod(shape, dtype=np.int64)) for shape in self.shapes)

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The beginning of each parameter, and the total length at the end."""
        padded = [-(-count // ALIGNED) * ALIGNED for count in self.counts]
        return tuple(int(k) for k in np.cumsum([0, *padded]))

    def views(self, flat: Array) -> list[Array]:
        """The parts of a flat array, in their shapes."""
        rows = zip(self.begins, self.counts, self.shapes, strict=False)
        return [flat[begin : begin + count].reshape(shape) for begin, count, shape in rows]


class DeviceOptimizer:
    """Values, moments and counters on the device, and the launches of a step."""

    def __init__(
        self,
        machine: Machine,
        optimizer: Optimizer,
        parameters: Mapping[str, Array],
        dtype: str,
        clip: float | None,
        scale: LossScale | None,
        factors: Sequence[float] | None,
    ) -> None:
        xp = self.xp = machine.xp
        self.module = machine.load(optimizer_source(optimizer, dtype, clip, scale))
        self.layout = ParameterLayout(tuple(parameters), tuple(np.shape(v) for v in parameters.values()))
        self.decays = [_decays(optimizer, shape) for shape in self.layout.shapes]
        self.real = np.float64 if dtype == "float64" else np.float32
        flat = np.zeros(max(self.layout.begins[-1], 1), self.real)
        for view, value in zip(self.layout.views(flat), parameters.values(), strict=True):
            view[...] = value
        self.values = xp.asarray(flat)
        self.first, self.second = xp.zeros(flat.shape, self.real), xp.zeros(flat.shape, self.real)
        self.copy = None if dtype in ("float32", "float64") else xp.asarray(flat.astype(dtype))
        self.seed = xp.asarray(np.asarray(scale.start if scale else 1.0).astype(dtype).reshape(1))
        start = {"scale": scale.start if scale else 1.0}
        self.state = xp.asarray(np.array([start.get(name, 0.0) for name in STATE]))
        self.factors = None if factors is None else xp.asarray(np.asarray(factors, np.float64))
        blocks = [max(1, -(-count // CHUNK)) for count in self.layout.counts]
        self.firsts = [int(k) for k in np.cumsum([0, *blocks])]
        self.parts = xp.zeros(max(self.firsts[-1], 1), self.real)

    @property
    def read(self) -> Array:
        """The flat array that the loss reads."""
        return self.values if self.copy is None else self.copy

    def step(self, gradients: Sequence[Array]) -> None:
        """Launch one step: the norm of the gradients, the update of all parameters, the counters."""
        gradients = [self.xp.ascontiguousarray(g) for g in gradients]
        null = np.uint64(0)
        blocks = np.int32(self.firsts[-1])
        shared = THREADS * np.dtype(self.real).itemsize
        groups = [self._pieces(gradients, start) for start in range(0, len(gradients), TOGETHER)]
        for pieces, count, grid, offset in groups:
            read = pieces, count, self.state, self.parts, np.int32(offset)
            self.module.get_function("gradient_squares")((grid,), (THREADS,), read, shared_mem=shared)
        for pieces, count, grid, _ in groups:
            more = (null if self.factors is None else self.factors, self.values, self.first, self.second)
            args = (
                pieces,
                count,
                self.state,
                self.parts,
                blocks,
                *more,
                null if self.copy is None else self.copy,
            )
            self.module.get_function("update_parameters")((grid,), (THREADS,), args, shared_mem=shared)
        counted = self.state, self.parts, blocks, self.seed
        self.module.get_function("count_step")((1,), (THREADS,), counted, shared_mem=shared)

    def _pieces(self, gradients: Sequence[Array], start: int) -> tuple[Any, Any, int, int]:
        """Some gradients in the kernels' format, their number, the blocks, and the first block of all."""
        table = np.zeros(1, PIECES)
        stop = min(start + TOGETHER, len(gradients))
        for row, k in enumerate(range(start, stop)):
            place = self.firsts[k] - self.firsts[start]
            pointer = gradients[k].data.ptr
            table["at"][0, row] = (
                pointer, self.layout.begins[k], self.layout.counts[k], place, self.decays[k],
            )  # fmt: skip
        grid = self.firsts[stop] - self.firsts[start]
        return table, np.int32(stop - start), grid, self.firsts[start]


def _decays(optimizer: Optimizer, shape: tuple[int, ...]) -> bool:
    return isinstance(optimizer, Adam) and bool(
        optimizer.decay and (optimizer.decays == "all" or len(shape) > 1)
    )
