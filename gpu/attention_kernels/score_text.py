"""The C text of a score function: structs of values per level, and functions that fill them.

Levels, from the outside in: "head" changes with the block (b, h), "row" with the query, "column"
with the key, "pair" with both. `_Levels` splits the expressions so that each part is computed at
its own level; the names are those of gpu/kernels/README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symad.gpu.attention_kernels.mask_tiles import (
    HIGH,
    K0,
    K1,
    LOW,
    Q0,
    Q1,
    corners,
    tile_truth,
    visible_range,
)
from symad.gpu.attention_kernels.score_layout import (
    CHUNK,
    ScoreField,
    args_fields,
    args_struct,
    blockwise,
    extreme_key,
    tiled_axis,
)
from symad.gpu.device_formulas import Device, DeviceVariable, Variables, kind_of
from symad.numeric.pairs.intervals import ScoreInterval
from symad.numeric.pairs.scores import B, H, I, J, Load, S, Score
from symad.numeric.pairs.stable_sympy import children, rebuild, topological

HEAD, ROW, COLUMN, PAIR = 0, 1, 2, 3
_NAMES = ("head", "row", "column", "pair")
_STRUCTS = ("ScoreHead", "ScoreRow", "ScoreColumn")
_FILL = (
    "ScoreHead score_head(const ScoreArgs& args, int b, int h)",
    "ScoreRow score_row(const ScoreArgs& args, const ScoreHead& head, int b, int h, int q)",
    "ScoreColumn score_column(const ScoreArgs& args, const ScoreHead& head, int b, int h, int k)",
)
_TILE = "const ScoreArgs& args, const ScoreHead& head, int b, int h"
_CTYPES = {"real": "Real", "int": "int", "bool": "bool"}
Groups = dict[str, tuple[sp.Symbol, ...]]


def score_text(score: Score, groups: Groups, device: Device) -> tuple[str, tuple[ScoreField, ...]]:
    """The C text of a score and the fields of its arguments; ``groups`` are as in `CompiledScore`."""
    levels = _Levels(score, device)
    value = levels.hoisted(score.value)
    slope = levels.hoisted(score.slope)
    partials = [
        (f"out.{name}[{k}]", levels.hoisted(score.partial(symbol)))
        for name, symbols in groups.items()
        for k, symbol in enumerate(symbols)
    ]
    curvature = levels.hoisted(score.curvature)
    mask = levels.hoisted(score.mask)
    tile = _tile_functions(score, levels, device)  # before the structs, because it may add fields
    fields = args_fields(score)
    lines = [args_struct(fields)]
    lines += [_struct(_STRUCTS[level], levels.fields[level].values()) for level in range(3)]
    lines += [levels.fill(level) for level in range(3)]
    body = levels.pair_body([("const Real t", value)], "return t;")
    lines += [_function("Real score_mod(Real s, const ScorePair& at)", body)]
    body = levels.pair_body([("out.t", value), ("out.ds", slope), *partials], "")
    lines += [_function("void score_grad(Real s, const ScorePair& at, ScoreGrad& out)", body)]
    body = levels.pair_body([("t", value), ("ds", slope), ("dss", curvature)], "")
    signature = "void score_second(Real s, const ScorePair& at, Real& t, Real& ds, Real& dss)"
    lines += [_function(signature, body)]
    body = levels.pair_body([("const bool allowed", mask)], "return allowed;")
    lines += [_function("bool mask_mod(const ScorePair& at)", body)]
    return "\n".join([device.preamble(), *lines, *tile, ""]), fields


def macros(score: Score, groups: Groups) -> str:
    """The traits of a score that the kernels branch on, as #define lines; `pieces` adds SCORE_PLAIN."""
    values = {f"{kind.upper()}S": len(symbols) for kind, symbols in groups.items()}
    values["MASKED"] = int(score.mask != sp.true)
    return "".join(f"#define SCORE_{name} {value}\n" for name, value in values.items())


@dataclass
class _FieldText:
    """One value of a struct: its C type, and its content (an expression, or an array read)."""

    name: str
    ctype: str
    source: Any


@dataclass
class _Levels:
    """Splits expressions by how often their parts change, and writes the parts.

    Attributes:
        score: the traced functions.
        device: the precision, and the functions called so far.
        fields: the fields of the head, row and column structs, by symbol.
    """

    score: Score
    device: Device
    fields: tuple[dict[sp.Symbol, _FieldText], ...] = field(default_factory=lambda: ({}, {}, {}))
    names: dict[sp.Basic, sp.Symbol] = field(default_factory=dict)
    indices: dict[sp.Symbol, tuple[sp.Expr, ...]] = field(default_factory=dict)

    def level(self, expr: sp.Basic) -> int:
        """The outermost level at which ``expr`` is known."""
        loops = self.score.loops(expr)
        if S in expr.free_symbols or {I, J} <= loops:
            return PAIR
        found = ROW if I in loops else COLUMN if J in loops else HEAD
        inner = [lv for lv in (HEAD, ROW, COLUMN) for s in expr.free_symbols
                 if s in self.fields[lv]]  # fmt: skip
        return max([found, *inner]) if not {ROW, COLUMN} <= {found, *inner} else PAIR

    def hoisted(self, expr: sp.Basic, level: int = PAIR) -> sp.Basic:
        """``expr`` with every part of an outer level replaced by the symbol of a field."""
        for load in self.score.reads(expr):
            self._register(load)
        known: dict[sp.Basic, int] = {}
        new: dict[sp.Basic, sp.Basic] = {}
        for part in topological([expr]):
            known[part] = (
                self.level(part)
                if not part.args
                else max((known[c] for c in children(part)), default=HEAD)
            )
            inner = {known[c] for c in children(part)}
            if {ROW, COLUMN} <= inner:
                known[part] = PAIR
            operands = children(part)
            if not operands:
                new[part] = part
            elif known[part] < level:
                new[part] = rebuild(part, [new[c] for c in operands])
            else:
                new[part] = self._outer_parts(part, operands, known, new, level)
        return self._field(new[expr], known[expr]) if known[expr] < level else new[expr]

    def _outer_parts(
        self,
        part: sp.Basic,
        operands: Sequence[sp.Basic],
        known: Mapping[sp.Basic, int],
        new: Mapping[sp.Basic, sp.Basic],
        level: int,
    ) -> sp.Basic:
        """A node of the wanted level with operands some of which belong to outer levels."""
        if not isinstance(part, (sp.Add, sp.Mul)):
            return rebuild(
                part,
                [self._field(new[c], known[c]) if known[c] < level else new[c] for c in operands],
            )
        grouped = [new[c] for c in operands if known[c] >= level]
        for outer in range(level):
            members = [new[c] for c in operands if known[c] == outer]
            numbers = [m for m in members if m.is_Number]
            rest = [m for m in members if not m.is_Number]
            if rest:
                grouped.append(self._field(part.func(*numbers, *rest), outer))
            else:
                grouped.extend(numbers)
        return part.func(*grouped)

    def _field(self, expr: sp.Basic, level: int) -> sp.Basic:
        """A symbol for a part of an outer level; symbols and numbers are returned as they are."""
        if not expr.args:
            return expr
        expr = self.hoisted(expr, level)
        if not expr.args or _trivial(expr):
            return expr
        if expr not in self.names:
            kind = kind_of(expr, self.variables(level, inside=True))
            assumption = {"integer": True} if kind == "int" else {"real": True}
            symbol = sp.Dummy("f", **({} if kind == "bool" else assumption))
            name = f"f{len(self.fields[level])}"
            self.fields[level][symbol] = _FieldText(name, _CTYPES[kind], expr)
            self.names[expr] = symbol
        return self.names[expr]

    def _register(self, load: Load) -> None:
        """Add a field for an array read of an outer level; for a read per pair, split its index."""
        level = self.level(load.symbol)
        if load.symbol in self.indices:
            return
        self.indices[load.symbol] = load.index
        self.indices[load.symbol] = tuple(self.hoisted(index, level) for index in load.index)
        if level < PAIR:
            name = f"f{len(self.fields[level])}"
            ctype = "int" if load.symbol.is_integer else "Real"
            self.fields[level][load.symbol] = _FieldText(name, ctype, load)

    def variables(self, level: int, inside: bool = False) -> dict[sp.Symbol, DeviceVariable]:
        """The C text of every symbol known at a level.

        ``inside`` selects the text in the function that fills the level's own struct.
        """
        pair = level == PAIR
        at = "at." if pair else ""
        found = {
            s: DeviceVariable(f"{at}args.v_{n}", "int" if s.is_integer else "real")
            for n, s in self.score.scalars
        }
        found |= {s: DeviceVariable(f"{at}{s}", "int", HEAD) for s in (B, H)}
        if level in (ROW, PAIR):
            found[I] = DeviceVariable(f"{at}q", "int", ROW)
        if level in (COLUMN, PAIR):
            found[J] = DeviceVariable(f"{at}k", "int", COLUMN)
        if pair:
            found[S] = DeviceVariable("s", "real", PAIR)
        for outer in range(min(level + 1, 3)):
            if outer in (level, HEAD) or pair:
                owner = "out" if inside and outer == level else f"{at}{_NAMES[outer]}"
                for symbol, f in self.fields[outer].items():
                    kind = f.ctype.lower()
                    found[symbol] = DeviceVariable(f"{owner}.{f.name}", kind, outer)
        return found

    def read(self, load: Load, target: str, variables: Variables, args: str, tag: str) -> list[str]:
        """Statements that read one array entry, with its indices clamped to the array."""
        lines = []
        position = ""
        for axis, index in enumerate(self.indices[load.symbol]):
            name = f"{tag}_{axis}"
            lines += self.device.statements([(f"const int {name}", index)], variables, f"{name}w")
            size = f"{args}n_{axis}_{load.name}"
            clamped = f"symad_clamp({name}, {size})"
            position = f"({position}) * {size} + {clamped}" if position else f"(long long){clamped}"
        return [*lines, f"{target} = {args}p_{load.name}[{position}];"]

    def fill(self, level: int) -> str:
        """The function that fills one struct."""
        body = [f"{_STRUCTS[level]} out;"]
        variables = self.variables(level, inside=True)
        for f in self.fields[level].values():
            if isinstance(f.source, Load):
                body += self.read(f.source, f"out.{f.name}", variables, "args.", f"i{f.name}")
            else:
                target = (f"out.{f.name}", f.source)
                body += self.device.statements([target], variables, f"{f.name}w")
        if not self.fields[level]:
            body.append("out.unused = 0;")
        return _function(_FILL[level], [*body, "return out;"])

    def pair_body(self, targets: Sequence[tuple[str, sp.Basic]], end: str) -> list[str]:
        """The statements of a function of one pair."""
        variables = self.variables(PAIR)
        lines: list[str] = []
        exprs = [e for _, e in targets]
        for load in self.score.reads(*exprs):
            if self.level(load.symbol) == PAIR:
                name = f"a{len(lines)}"
                kind = "int" if load.symbol.is_integer else "Real"
                lines += self.read(load, f"const {kind} {name}", variables, "at.args.", f"i{name}")
                variables[load.symbol] = DeviceVariable(name, kind.lower(), PAIR)
        lines += self.device.statements(targets, variables)
        return [*lines, end] if end else lines


def _trivial(expr: sp.Basic) -> bool:
    """Whether ``expr`` is one integer operation on two atoms, which is cheaper than storing its value."""
    small = len(expr.args) == 2 and not any(a.args for a in expr.args)
    return small and isinstance(expr, (sp.Add, sp.Mul)) and bool(expr.is_integer)


def _tile_functions(score: Score, levels: _Levels, device: Device) -> list[str]:
    """The functions score_tile, score_k_range and score_q_range."""
    known = corners()
    preludes: dict[sp.Symbol, list[str]] = {}
    variables = levels.variables(HEAD)
    for number, load in enumerate(score.reads(score.mask)):
        if blockwise(load):
            known[load.symbol] = ScoreInterval(load.symbol, load.symbol)
            continue
        kind = "int" if load.symbol.is_integer else "Real"
        for end in ("low", "high"):
            symbol = sp.Dummy(end, **({"integer": True} if kind == "int" else {"real": True}))
            variables[symbol] = DeviceVariable(f"{end}{number}", kind.lower(), PAIR)
            preludes[symbol] = _extreme_loop(load, number, kind)
        known[load.symbol] = ScoreInterval(*list(preludes)[-2:])
    known |= {symbol: ScoreInterval(symbol, symbol) for _, symbol in score.scalars}
    edges = {Q0: "q0", Q1: "q1", K0: "k0", K1: "k1", LOW: "lo", HIGH: "hi"}
    variables |= {symbol: DeviceVariable(text, "int", PAIR) for symbol, text in edges.items()}

    def body(targets: list[tuple[str, sp.Basic]], end: str) -> list[str]:
        used = set().union(*(e.free_symbols for _, e in targets))
        loops = dict.fromkeys("\n  ".join(preludes[s]) for s in preludes if s in used)
        return [*loops, *device.statements(targets, variables), end]

    truth = tile_truth(score.mask, known)
    lines = body(
        [("const bool sometimes", truth.sometimes), ("const bool always", truth.always)],
        "return sometimes ? (always ? TILE_FULL : TILE_PARTIAL) : TILE_EMPTY;",
    )
    functions = [_function(f"int score_tile({_TILE}, int q0, int q1, int k0, int k1)", lines)]
    for name, variable, corner in (("k", J, "q0, int q1"), ("q", I, "k0, int k1")):
        varying = frozenset(r.symbol for r in score.reads(score.mask) if _tiled_along(r, variable))
        low, high = visible_range(score.mask, variable, known, varying)
        lines = []
        if (low, high) != (LOW, HIGH):
            targets = [("const int low", low), ("const int high", high)]
            lines = body(targets, "lo = low; hi = high > low ? high : low;")
        signature = f"void score_{name}_range({_TILE}, int {corner}, int& lo, int& hi)"
        functions.append(_function(signature, lines))
    return functions


def _tiled_along(load: Load, variable: sp.Symbol) -> bool:
    axis = tiled_axis(load)
    return axis is not None and load.index[axis] == variable


def _extreme_loop(load: Load, number: int, kind: str) -> list[str]:
    """The minimum and maximum of a mask's array over the part that a tile reads."""
    key = extreme_key(load)
    axis = tiled_axis(load)
    if axis is None:
        return [f"const {kind} {end}{number} = args.{p}_{key}[0];"
                for end, p in (("low", "lo"), ("high", "hi"))]  # fmt: skip
    first, last = ("q0", "q1") if load.index[axis] == I else ("k0", "k1")
    chunk = f"c{number}"

    def position_of(part: str) -> str:
        position = ""
        for a, index in enumerate(load.index):
            size = f"args.n_{a}_{load.name}"
            if a == axis:
                size = f"(({size} + {CHUNK - 1}) / {CHUNK})"
            at = part if a == axis else str(index)
            position = f"({position}) * {size} + {at}" if position else at
        return position

    begin, position = position_of(f"{first} / {CHUNK}"), position_of(chunk)
    return [
        f"{kind} low{number} = args.lo_{key}[{begin}];",
        f"{kind} high{number} = args.hi_{key}[{begin}];",
        f"for (int {chunk} = {first} / {CHUNK} + 1; {chunk} * {CHUNK} < {last}; ++{chunk}) {{",
        f"  const {kind} below = args.lo_{key}[{position}], above = args.hi_{key}[{position}];",
        f"  low{number} = below < low{number} ? below : low{number};",
        f"  high{number} = above > high{number} ? above : high{number};",
        "}",
    ]


def _struct(name: str, fields: Iterable[_FieldText]) -> str:
    lines = [f"  {f.ctype} {f.name};" for f in fields] or ["  int unused;"]
    return "\n".join([f"struct {name} {{", *lines, "};"])


def _function(signature: str, body: Sequence[str]) -> str:
    indented = [f"  {line}" for line in body]
    return "\n".join([f"__device__ __forceinline__ {signature} {{", *indented, "}"])
