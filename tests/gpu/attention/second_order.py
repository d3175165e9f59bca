"""Arguments, calls and references of the derivatives of attention's cotangents."""

import numpy as np
import pytest

from tests.gpu.attention_cases import decode, encode, relative

torch = pytest.importorskip("torch")

# Relative errors of (ȯ, L̇) and of the second cotangents: p, s̄ and their tangents are rounded to the
# element type on their way to the tensor cores, and ȯ once more between the passes.
BOUNDS = {
    "bfloat16": (5e-3, 1.2e-2), "float16": (7e-4, 1.5e-3), "float32": (1e-6, 3e-6),
    "float64": (4e-15, 1e-14),
}  # fmt: skip


def definition(q, k, v, scale, score, visible):
    """(o, L) over all pairs, in torch; rows without keys are 0 and −∞."""
    group = q.shape[1] // k.shape[1]
    s = scale * q @ k.repeat_interleave(group, 1).transpose(-1, -2)
    t = score(s).masked_fill(~visible, -torch.inf)
    alive = visible.any(-1, keepdim=True)
    t = t.masked_fill(~alive, 0.0)
    lse = torch.logsumexp(t, -1)
    out = torch.exp(t - lse[..., None]) @ v.repeat_interleave(group, 1)
    return out.masked_fill(~alive, 0.0), lse.masked_fill(~alive[..., 0], 0.0)


def wanted(arrays, bars, dots, bar_dots, scale, score, visible):
    """(ȯ, L̇) and the tangents of q̄, k̄, v̄, by torch's automatic differentiation."""
    arrays, bars, dots, bar_dots = (
        tuple(torch.tensor(a) for a in group) for group in (arrays, bars, dots, bar_dots)
    )

    def value(*arguments):
        return definition(*arguments, scale, score, visible)

    def cotangents(q, k, v, out_bar, lse_bar):
        _, pull = torch.func.vjp(value, q, k, v)
        return pull((out_bar, lse_bar))

    _, tangents = torch.func.jvp(value, arrays, dots)
    _, seconds = torch.func.jvp(cotangents, (*arrays, *bars), (*dots, *bar_dots))
    return [t.numpy() for t in (*tangents, *seconds)]


def draw(name, sizes, seed=0):
    """(q, k, v), (ō, L̄), and tangents of both, in storage."""
    batch, heads, groups, n, m, d, dv = sizes
    rng = np.random.default_rng(seed)
    shapes = [(batch, heads, n, d), (batch, groups, m, d), (batch, groups, m, dv)]
    real = np.float64 if name == "float64" else np.float32

    def several():
        arrays = tuple(encode(rng.normal(size=s), name) for s in shapes)
        rows = encode(rng.normal(size=(batch, heads, n, dv)), name)
        return arrays, (rows, rng.normal(size=(batch, heads, n)).astype(real))

    (arrays, bars), (dots, bar_dots) = several(), several()
    return arrays, bars, dots, bar_dots


def check(name, groups, found, scale, score=lambda s: s, visible=None, room=1):
    """Compare with torch; ``room`` widens the bounds."""
    exact = [[decode(a, name) for a in g[:-1]] + [g[-1].astype(float)] for g in groups[1::2]]
    points = [[decode(a, name) for a in g] for g in groups[::2]]
    n, m = groups[0][0].shape[2], groups[0][1].shape[2]
    seen = torch.ones(n, m, dtype=torch.bool) if visible is None else torch.tensor(visible)
    expected = wanted(points[0], exact[0], points[1], exact[1], scale, score, seen)
    bounds = [BOUNDS[name][0]] * 2 + [BOUNDS[name][1]] * 3
    for k, (got, want, bound) in enumerate(zip(found, expected, bounds, strict=True)):
        values = np.asarray(got, float) if k == 1 else decode(got, name)
        assert relative(values, want) < room * bound, ("ȯ", "L̇", "q̄̇", "k̄̇", "v̄̇")[k]
