"""The C text of a pair function for pair_sum.cu, and the shape of its thread groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from symad.gpu.device_formulas import Device, DeviceVariable
from symad.numeric.pairs.pair_functions import PairFunction, X, Y

THREADS = 128
_REDUCTIONS = {"sum": 0, "logsumexp": 1, "softmax": 2}
# Registers of 32 bits that a thread may use for its points; they limit the number of points per thread.
_FORWARD_REGISTERS, _BACKWARD_REGISTERS = 136, 100


@dataclass(frozen=True)
class ThreadShape:
    """The distribution of a pass over threads.

    Attributes:
        rows: the points that a group of ``lanes`` threads owns.
        lanes: the threads that share a point; each has a part of its components.
    """

    rows: int
    lanes: int

    @property
    def points(self) -> int:
        """The points that one block owns."""
        return self.rows * THREADS // self.lanes


@dataclass(frozen=True)
class PairPlan:
    """Sizes that are fixed when the kernels are compiled."""

    columns: int
    tile: int
    forward: ThreadShape
    backward: ThreadShape

    def shared_bytes(self, dimension: int, itemsize: int) -> int:
        """Dynamic shared memory of every kernel, in bytes."""
        lanes = (self.forward.lanes, self.backward.lanes)
        record = max(_record(dimension, self.columns, count, itemsize) for count in lanes)
        return max(self.tile * record, THREADS * itemsize)


def _record(dimension: int, columns: int, lanes: int, itemsize: int) -> int:
    """The bytes of a record of the shared tile, with level and delta (Record in pair_sum.cu)."""
    quad = 16 // itemsize
    part = dimension if lanes == 1 else -(-dimension // (lanes * quad)) * quad
    used = part * lanes + -(-columns // lanes) * lanes + 2
    return -(-used // quad) * 16


def plan(function: PairFunction, columns: int, real: str) -> PairPlan:
    """The payload columns per launch, the tile, the points per thread and the lanes per point.

    Several points per thread share each read of shared memory; several lanes per point keep long
    points in registers. Functions of single components need whole points in each thread.
    """
    words = 1 if real == "float" else 2
    dimension = function.dimension
    chunk = min(columns, 32 // words)

    def shape(per_component: int, limit: int, budget: int) -> ThreadShape:
        lanes = 1
        while not function.loose and dimension > limit // words * lanes and lanes < 8:
            lanes *= 2
        held = per_component * -(-dimension // lanes) + 2 * -(-chunk // lanes)
        rows = next((r for r in (4, 2) if r * held * words <= budget), 1)
        return ThreadShape(rows, lanes)

    forward = shape(1, 64, _FORWARD_REGISTERS)
    backward = shape(3, 32, _BACKWARD_REGISTERS)
    record = max(
        _record(dimension, chunk, lanes, 4 * words) for lanes in (forward.lanes, backward.lanes)
    )
    tile = 128
    while tile > 16 and tile * record > 40 * 1024:
        tile //= 2
    return PairPlan(chunk, tile, forward, backward)


def pair_text(function: PairFunction, sizes: PairPlan, reduce: str, device: Device) -> str:
    """The macros and device functions that pair_sum.cu needs."""
    small = function.dimension * sizes.forward.rows <= 16
    macros = {
        "PAIR_D": function.dimension,
        "PAIR_SUMS": len(function.sums),
        "PAIR_ENTRIES": max(len(function.entries), 1),
        "PAIR_PARAMETERS": int(bool(function.entries)),
        "PAIR_COLUMNS": sizes.columns,
        "PAIR_REDUCE": _REDUCTIONS[reduce],
        "PAIR_THREADS": THREADS,
        "PAIR_TILE": sizes.tile,
        "FORWARD_R": sizes.forward.rows,
        "FORWARD_LANES": sizes.forward.lanes,
        "FORWARD_UNROLL": 4 if small else 1,
        "BACKWARD_R": sizes.backward.rows,
        "BACKWARD_LANES": sizes.backward.lanes,
    }
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    functions = [*_term_functions(function, device), *_outer_functions(function, device)]
    return "\n".join([*lines, device.preamble(), *functions, ""])


_SUMS, _OWN = "const Real* sigma, ", "const Real* x, const Real* y, const Real* p"
_TERM = "Real x, Real y, const Real* p, int k, "


def _term_functions(function: PairFunction, device: Device) -> list[str]:
    """The functions pair_terms and pair_term_partials."""
    variables = {s: DeviceVariable(f"p[{at}]") for at, s in enumerate(function.entries)}
    variables |= {X: DeviceVariable("x", level=1), Y: DeviceVariable("y", level=1)}
    components = []
    start = 0
    for parameter in function.parameters:
        if parameter.size == function.dimension:
            variables[parameter.component] = DeviceVariable(f"p[{start} + k]")
            components.append((parameter.component, f"{start} + k"))
        start += len(parameter.symbols)
    cotangents = [sp.Dummy(f"e{r}", real=True) for r in range(len(function.sums))]
    variables |= {s: DeviceVariable(f"e[{r}]", level=1) for r, s in enumerate(cotangents)}
    terms = [(f"const Real t{r}", part.term) for r, part in enumerate(function.sums)]
    body = device.statements(terms, variables)
    body += [f"sigma[{r}] += t{r};" for r in range(len(terms))]

    def total(symbol: sp.Symbol) -> sp.Expr:
        partials = [function.term_partial(r, symbol) for r in range(len(cotangents))]
        return sp.Add(*[e * d for e, d in zip(cotangents, partials, strict=True)])

    entries = [(s, str(at)) for at, s in enumerate(function.entries)] + components
    wanted = [(place, total(symbol)) for symbol, place in entries]
    wanted = [(place, expr) for place, expr in wanted if expr != 0]
    targets = [("dx", total(X)), ("dy", total(Y))]
    targets += [(f"const Real q{at}", expr) for at, (_, expr) in enumerate(wanted)]
    partial_body = device.statements(targets, variables)
    partial_body += [f"dp[{place}] += q{at};" for at, (place, _) in enumerate(wanted)]
    return [
        _function(f"void pair_terms({_TERM}Real* sigma)", body),
        _function(
            f"void pair_term_partials({_TERM}const Real* e, Real& dx, Real& dy, Real* dp)",
            partial_body,
        ),
    ]


def _outer_functions(function: PairFunction, device: Device) -> list[str]:
    """The functions pair_value and pair_partials."""
    variables = {s: DeviceVariable(f"p[{at}]") for at, s in enumerate(function.entries)}
    variables |= {part.symbol: DeviceVariable(f"sigma[{r}]", level=1)
                  for r, part in enumerate(function.sums)}  # fmt: skip
    for name, symbols in (("x", function.x), ("y", function.y)):
        variables |= {s: DeviceVariable(f"{name}[{k}]", level=1) for k, s in enumerate(symbols)}
    wanted = [(f"ds[{r}]", part.symbol) for r, part in enumerate(function.sums)]
    wanted += [(f"dx[{k}]", function.x[k]) for k in function.loose]
    wanted += [(f"dy[{k}]", function.y[k]) for k in function.loose]
    wanted += [(f"dp[{at}]", s) for at, s in enumerate(function.entries)]
    partials = [(place, function.outer_partial(symbol)) for place, symbol in wanted]
    partials = [(place, expr) for place, expr in partials if expr != 0]
    value = device.statements([("const Real f", function.outer)], variables)
    targets = [("f", function.outer), *partials]
    return [
        _function(f"Real pair_value({_SUMS}{_OWN})", [*value, "return f;"]),
        _function(
            f"void pair_partials({_SUMS}{_OWN}, Real& f, Real* ds, Real* dx, Real* dy, Real* dp)",
            device.statements(targets, variables),
        ),
    ]


def _function(signature: str, body: Sequence[str]) -> str:
    return "\n".join([f"DEVICE {signature} {{", *(f"  {line}" for line in body), "}"])
