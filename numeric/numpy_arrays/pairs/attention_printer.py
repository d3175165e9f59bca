"""Attention in NumPy: blocks of pairs with an online softmax, and the score as functions.

The generated file has one function for the mask and one for the score and, if derivatives need them, one for
the score's slopes and one for its second derivative. The helpers below iterate over the tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.numeric.numpy_arrays.pairs.formulas import FormulaText
from symad.numeric.pairs.scores import LOOPS, S, Score, score_of
from symad.numeric.program.expressions import Compute
from symad.numeric.targets.target import Level

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.writer import ArrayWriter

PAIRS = '''def _pairs(q, k, seen_at, params, block=256):
    """Tiles of pairs: their rows, columns, positions (b, h, i, j) and which of them take part."""
    tile = q.shape[0]*q.shape[1]*min(block, q.shape[2])*min(block, k.shape[2])
    np.empty(min(8*tile, 2**21))  # glibc keeps free memory up to twice the largest block that was given back
    b, h = np.arange(q.shape[0]).reshape(-1, 1, 1, 1), np.arange(q.shape[1]).reshape(-1, 1, 1)
    for first in range(0, q.shape[2], block):
        rows = slice(first, min(first + block, q.shape[2]))
        i = np.arange(rows.start, rows.stop).reshape(-1, 1)
        for start in range(0, k.shape[2], block):
            columns = slice(start, min(start + block, k.shape[2]))
            at = b, h, i, np.arange(columns.start, columns.stop)
            seen = seen_at(*at, *params)
            if np.any(seen):
                yield rows, columns, at, seen
'''

INSIDE = """def _inside(seen, position, size, read):
    \"\"\"Refuse a pair that takes part and reads outside of an array.\"\"\"
    outside = (position < 0) | (position >= size)
    if np.any(outside) and np.any(seen & outside):
        raise IndexError(f"{read} is read outside its shape by a pair that the mask does not hide")
"""

SHARED = '''def _shared(a, heads):
    """Keys or values for every query head."""
    return a if a.shape[1] == heads else np.repeat(a, heads//a.shape[1], axis=1)
'''

GATHERED = '''def _gathered(a, groups):
    """The sum over the query heads that share a key head."""
    return a.reshape(a.shape[0], groups, a.shape[1]//groups, *a.shape[2:]).sum(axis=2)
'''

ATTENTION = '''def _attention(q, k, v, params, seen_at, score_at, scale):
    """Online softmax (Milakov and Gimelshein 2018): outputs and log-sum-exps."""
    k, v = _shared(k, q.shape[1]), _shared(v, q.shape[1])
    highest = np.full((*q.shape[:3], 1), -np.inf, dtype=q.dtype)
    total = np.zeros_like(highest)
    out = np.zeros((*q.shape[:3], v.shape[3]), dtype=q.dtype)
    with np.errstate(all="ignore"):
        for rows, columns, at, seen in _pairs(q, k, seen_at, params):
            s = scale*(q[:, :, rows] @ k[:, :, columns].swapaxes(2, 3))
            t = np.where(seen, score_at(s, *at, *params), -np.inf)
            top = np.maximum(highest[:, :, rows], t.max(axis=3, keepdims=True))
            shift = np.where(np.isneginf(top), 0, top)
            p, keep = np.exp(t - shift), np.exp(highest[:, :, rows] - shift)
            total[:, :, rows] = keep*total[:, :, rows] + p.sum(axis=3, keepdims=True)
            out[:, :, rows] = keep*out[:, :, rows] + p @ v[:, :, columns]
            highest[:, :, rows] = top
        lse = highest + np.log(total)
    return out/np.where(total > 0, total, 1), np.where(total > 0, lse, -np.inf)[..., 0]
'''

TANGENT = '''def _attention_tangent(q, k, v, params, out, lse, dots, seen_at, slopes_at, scale):
    """Tangents of the outputs and log-sum-exps along those of q, k, v and the parameters."""
    heads = q.shape[1]
    k, v, (q_dot, k_dot, v_dot) = _shared(k, heads), _shared(v, heads), dots[:3]
    k_dot, v_dot = _shared(k_dot, heads), _shared(v_dot, heads)
    out_dot, lse_dot = np.zeros_like(out), np.zeros_like(lse)
    anchor = np.where(np.isneginf(lse), 0, lse)[..., None]
    with np.errstate(all="ignore"):
        for rows, columns, at, seen in _pairs(q, k, seen_at, params):
            keys = k[:, :, columns].swapaxes(2, 3)
            s = scale*(q[:, :, rows] @ keys)
            s_dot = q_dot[:, :, rows] @ keys + q[:, :, rows] @ k_dot[:, :, columns].swapaxes(2, 3)
            t, slope, partials = slopes_at(s, *at, *params)
            t_dot = slope*scale*s_dot
            for number, index, partial in partials:
                t_dot = t_dot + partial*np.asarray(dots[3 + number])[index]
            p = np.where(seen, np.exp(t - anchor[:, :, rows]), 0)
            p_dot = np.where(seen, p*t_dot, 0)
            lse_dot[:, :, rows] += p_dot.sum(axis=3)
            out_dot[:, :, rows] += p_dot @ v[:, :, columns] + p @ v_dot[:, :, columns]
    return out_dot - lse_dot[..., None]*out, lse_dot
'''

ADD = '''def _add(total, index, values):
    """total[index] += values, summed over the axes that the index does not have."""
    if not index:
        total[...] += values.sum()
        return
    shape = np.broadcast_shapes(*(np.shape(i) for i in index))
    shape = (1,)*(values.ndim - len(shape)) + shape
    axes = tuple(k for k, size in enumerate(shape) if size == 1)
    values = values.sum(axis=axes, keepdims=True)
    np.add.at(total, tuple(np.broadcast_to(i, values.shape) for i in index), values)
'''

COTANGENTS = '''def _attention_cotangents(q, k, v, params, out, lse, bars, real, seen_at, slopes_at, scale):
    """Cotangents of q, k, v and the real parameters (Dao et al. 2022, algorithm 4)."""
    groups, heads, (out_bar, lse_bar) = k.shape[1], q.shape[1], bars
    k, v = _shared(k, heads), _shared(v, heads)
    q_bar, k_bar, v_bar = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    param_bars = [np.zeros_like(params[number]) for number in real]
    anchor = np.where(np.isneginf(lse), 0, lse)[..., None]
    delta = (out_bar*out).sum(axis=3, keepdims=True) - lse_bar[..., None]
    with np.errstate(all="ignore"):
        for rows, columns, at, seen in _pairs(q, k, seen_at, params):
            queries, keys, bar = q[:, :, rows], k[:, :, columns], out_bar[:, :, rows]
            t, slope, partials = slopes_at(scale*(queries @ keys.swapaxes(2, 3)), *at, *params)
            p = np.where(seen, np.exp(t - anchor[:, :, rows]), 0)
            t_bar = p*(bar @ v[:, :, columns].swapaxes(2, 3) - delta[:, :, rows])
            s_bar = np.where(seen, scale*t_bar*slope, 0)
            q_bar[:, :, rows] += s_bar @ keys
            k_bar[:, :, columns] += s_bar.swapaxes(2, 3) @ queries
            v_bar[:, :, columns] += p.swapaxes(2, 3) @ bar
            for number, index, partial in partials:
                _add(param_bars[number], index, np.where(seen, t_bar*partial, 0))
    return q_bar, _gathered(k_bar, groups), _gathered(v_bar, groups), *param_bars
'''

SECOND = '''def _attention_second(q, k, v, params, out, lse, bars, dots, seen_at, second_at, scale):
    """Tangents of the cotangents of q, k and v, the parameters held fixed."""
    groups, heads, (out_bar, lse_bar) = k.shape[1], q.shape[1], bars
    q_dot, k_dot, v_dot, out_dot, lse_dot, out_bar_dot, lse_bar_dot = dots
    k, v, k_dot, v_dot = (_shared(a, heads) for a in (k, v, k_dot, v_dot))
    results = [np.zeros_like(a) for a in (q, k, v)]
    anchor = np.where(np.isneginf(lse), 0, lse)[..., None]
    delta = (out_bar*out).sum(axis=3) - lse_bar
    delta_dot = (out_bar_dot*out + out_bar*out_dot).sum(axis=3) - lse_bar_dot
    with np.errstate(all="ignore"):
        for rows, columns, at, seen in _pairs(q, k, seen_at, params):
            queries, queries_dot = q[:, :, rows], q_dot[:, :, rows]
            keys, keys_dot = k[:, :, columns], k_dot[:, :, columns]
            bar, bar_dot = out_bar[:, :, rows], out_bar_dot[:, :, rows]
            values, values_dot = v[:, :, columns].swapaxes(2, 3), v_dot[:, :, columns].swapaxes(2, 3)
            s = scale*(queries @ keys.swapaxes(2, 3))
            s_dot = queries_dot @ keys.swapaxes(2, 3) + queries @ keys_dot.swapaxes(2, 3)
            s_dot *= scale
            t, slope, curvature = second_at(s, *at, *params)
            p = np.where(seen, np.exp(t - anchor[:, :, rows]), 0)
            p_dot = np.where(seen, p*(slope*s_dot - lse_dot[:, :, rows, None]), 0)
            w = bar @ values - delta[:, :, rows, None]
            w_dot = bar_dot @ values + bar @ values_dot - delta_dot[:, :, rows, None]
            s_bar = np.where(seen, scale*p*w*slope, 0)
            s_bar_dot = scale*((p_dot*w + p*w_dot)*slope + p*w*curvature*s_dot)
            s_bar_dot = np.where(seen, s_bar_dot, 0)
            results[0][:, :, rows] += s_bar_dot @ keys + s_bar @ keys_dot
            s_bar, s_bar_dot = s_bar.swapaxes(2, 3), s_bar_dot.swapaxes(2, 3)
            results[1][:, :, columns] += s_bar_dot @ queries + s_bar @ queries_dot
            results[2][:, :, columns] += p_dot.swapaxes(2, 3) @ bar + p.swapaxes(2, 3) @ bar_dot
    return results[0], _gathered(results[1], groups), _gathered(results[2], groups)
'''


def parts_of(op: AttentionOp) -> int:
    """The number of results of an op."""
    if isinstance(op, AttentionCotangent):
        return len(op.real)
    return 3 if isinstance(op, AttentionSecond) else 2


def numbers_of(op: AttentionOp) -> Sequence[int]:
    """The numbers of all results of one computation; integer parameters have none."""
    return op.real if isinstance(op, AttentionCotangent) else range(parts_of(op))


HELPER: dict[type[AttentionOp], tuple[str, str]] = {
    Attention: ("_attention", ATTENTION),
    AttentionTangent: ("_attention_tangent", TANGENT),
    AttentionCotangent: ("_attention_cotangents", COTANGENTS),
    AttentionSecond: ("_attention_second", SECOND),
}
"""The name and the source of the helper that computes an op."""


def numpy_call(op: AttentionOp, node: Compute, args: list[str], printer: ArrayWriter) -> str:
    """The call of the helper that computes an op."""
    names, rest = functions_of(op, printer), after_parameters(op, args)
    head_dim = printer.atom(node.args[0].shape[3])
    scale = f"{head_dim}**-0.5" if op.scale is None else repr(float(op.scale))
    for name, source in (("_pairs", PAIRS), ("_shared", SHARED)):
        printer.helper(name, source)
    if isinstance(op, (AttentionCotangent, AttentionSecond)):
        printer.helper("_gathered", GATHERED)
    if isinstance(op, AttentionCotangent):
        printer.helper("_add", ADD)
        rest.append(tuple_text([str(r - 3) for r in op.real[3:]]))
    given = [*args[:3], tuple_text(args[3 : op.inner]), *rest, *names.values(), scale]
    return f"{printer.helper(*HELPER[type(op)])}({', '.join(given)})"


def after_parameters(op: AttentionOp, args: list[str]) -> list[str]:
    """The texts of o and L, and those of the cotangents and of the tangents in tuples, if an op has them."""
    point, rest = args[op.inner : op.inner + 2], args[op.inner + 2 :]
    if isinstance(op, AttentionTangent):
        return [*point, tuple_text(rest)]
    bars = [tuple_text(rest[:2])] if rest else []
    return [*point, *bars, *([tuple_text(rest[2:])] if isinstance(op, AttentionSecond) else [])]


def tuple_text(items: list[str]) -> str:
    """A tuple display."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def functions_of(op: AttentionOp, printer: ArrayWriter) -> dict[str, str]:
    """The names of the module's functions of a score, by kind."""
    score = score_of(op.score.expression, op.mask.expression, op.given)
    key = (op.score, op.mask, op.parameters)
    number = printer.scores.setdefault(key, len(printer.scores) + 1)
    kinds = {
        Attention: ("seen", "score"),
        AttentionTangent: ("seen", "slopes"),
        AttentionCotangent: ("seen", "slopes"),
        AttentionSecond: ("seen", "second"),
    }[type(op)]
    names = {}
    for kind in kinds:
        name = f"_{kind}_{number}"
        if name not in printer.helpers:
            printer.helper(name, score_function(name, kind, score, printer))
        names[kind] = name
    return names


def score_function(name: str, kind: str, score: Score, printer: ArrayWriter) -> str:
    """The text of one function of a score: kind "seen", "score", "slopes" or "second"."""
    params = [p.name for p in score.parameters]
    loops = [str(loop) for loop in LOOPS]
    arguments = [*loops, *params] if kind == "seen" else [str(S), *loops, *params]
    text = FormulaText(score, printer, set(arguments))
    checks: list[str] = []
    if kind == "seen":
        (made,) = text.write(score.mask)
        result = text.keep(str(made)) if score.loads and made.level < Level.ATOM else str(made)
        checks = reads_checked(score, text, result, printer)
    elif kind == "score":
        (result,) = for_all_pairs(score, map(str, text.write(score.value)), printer)
    elif kind == "second":
        texts = map(str, text.write(score.value, score.slope, score.curvature))
        result = ", ".join(for_all_pairs(score, texts, printer))
    else:
        real = [p.name for p in score.parameters if not p.integer]
        places = [text.place(symbol) for symbol in score.differentiable]
        slopes = (score.slope, *map(score.partial, score.differentiable))
        value, slope, *partials = for_all_pairs(score, map(str, text.write(score.value, *slopes)), printer)
        entries = [
            f"({real.index(name)}, {tuple_text(index) if index else '()'}, {partial})"
            for (name, index), partial in zip(places, partials, strict=True)
        ]
        result = f"{value}, {slope}, [{', '.join(entries)}]"
    lines = [f"def {name}({', '.join(arguments)}):", *(f"    {line}" for line in [*text.lines, *checks])]
    return "\n".join([*lines, f"    return {result}", ""])


def for_all_pairs(score: Score, texts: Iterable[str], printer: ArrayWriter) -> list[str]:
    """The texts of a score and of its derivatives; a score without s is repeated for all pairs."""
    value, *others = texts
    return [value if score.value.has(S) else f"{printer.np}.broadcast_to({value}, {S}.shape)", *others]


def reads_checked(score: Score, text: FormulaText, seen: str, printer: ArrayWriter) -> list[str]:
    """Statements that reject reads outside of arrays by visible pairs; ``seen`` is the name of the mask."""
    checks = []
    for load in score.loads:
        read = f"{load.name}[{', '.join(map(str, load.index))}]"
        for axis, index in enumerate(load.index):
            if not text.is_checked_by_numpy(index):
                helper = printer.helper("_inside", INSIDE)
                position = text.integers(index)
                checks.append(f"{helper}({seen}, {position}, {load.name}.shape[{axis}], {read!r})")
    return checks
