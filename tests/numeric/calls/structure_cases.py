"""Calls of every function that takes parameters in structures, with their expected numbers.

`test_structure_table` runs them. The problem is linear regression: residuals r = X w + b − t, loss
L = mean r². All expected numbers are NumPy formulas: ∂L/∂w = 2 Xᵀr/n, ∂L/∂b = 2 mean r, ∇²L = 2 AᵀA/n with
A = [X 1].
"""

from __future__ import annotations

import ast
import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import minimize as scipy_minimize

import symad
from symad.numeric import given, least_squares, lower, minimize, scale
from symad.numeric.sampling.markov_chains import hmc
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.checkpoints import read_checkpoint, write_checkpoint
from symad.numeric.training.loop import train
from symad.numeric.training.optimizers import SGD, Adam, RMSprop, clip_gradients
from tests.gpu.cupy_agreement import library


@dataclass
class Params:
    """Weights and an offset."""

    w: Any
    b: Any


@dataclass(frozen=True)
class Frozen:
    """The same, which cannot be changed in place."""

    w: Any
    b: Any


Pair = namedtuple("Pair", "w b")

KINDS = {
    "dict": (lambda w, b: {"w": w, "b": b}, lambda p: (p["w"], p["b"])),
    "nested": (lambda w, b: {"l": [{"w": w}, (b,)]}, lambda p: (p["l"][0]["w"], p["l"][1][0])),
    "list": (lambda w, b: [w, b], lambda p: (p[0], p[1])),
    "tuple": (lambda w, b: (w, b), lambda p: (p[0], p[1])),
    "named tuple": (Pair, lambda p: (p.w, p.b)),
    "dataclass": (Params, lambda p: (p.w, p.b)),
    "frozen dataclass": (Frozen, lambda p: (p.w, p.b)),
    "state dict": (lambda w, b: {"fc.0.weight": w, "fc.0.bias": b},
                   lambda p: (p["fc.0.weight"], p["fc.0.bias"])),
}  # fmt: skip
"""For each structure, functions that build it from two arrays and take it apart."""

SELECTED = {
    "dict": "p['w']", "nested": "p['l'][0]['w']", "list": "p[0]", "tuple": "p[0]", "named tuple": "p.w",
    "dataclass": "p.w", "frozen dataclass": "p.w", "state dict": "p['fc.0.weight']",
}  # fmt: skip
"""The Python expression that selects the weights of each structure."""

_rng = np.random.default_rng(0)
X, T, W, B = _rng.normal(size=(6, 3)), _rng.normal(size=6), _rng.normal(size=3), 0.5
A = np.column_stack([X, np.ones(6)])
R = X @ W + B - T
LOSS, W_BAR, B_BAR = np.mean(R**2), 2 * X.T @ R / 6, 2 * np.mean(R)
BEST = np.linalg.lstsq(A, T, rcond=None)[0]
N = sp.Symbol("n", integer=True, positive=True)
DATA, OVER = {"x": X, "t": T}, {"x": 0, "t": 0}


class Case:
    """The problem with its parameters in one kind of structure."""

    def __init__(self, kind: str) -> None:
        self.make, self.parts = KINDS[kind]
        self.selected = SELECTED[kind]
        self.inputs = [self.make((3,), ()), (6, 3), (6,)]
        self.any_length = [self.make((3,), ()), (N, 3), (N,)]
        self.p = self.make(W, B)
        self.graph = symad.trace(self.loss, self.inputs)

    def residuals(self, p: Any, x: Any, t: Any) -> Any:
        w, b = self.parts(p)
        return x @ w + b - t

    def loss(self, p: Any, x: Any, t: Any) -> Any:
        return (self.residuals(p, x, t) ** 2).mean()

    def slopes(self, p: Any, x: Any, t: Any) -> Any:
        """The gradient by hand."""
        r = self.residuals(p, x, t)
        return self.make(2 * x.T @ r / 6, 2 * r.mean())

    def same(self, found: Any, w: Any = W_BAR, b: Any = B_BAR, rtol: float = 1e-10) -> None:
        """Checks that a result has the structure, and these parts."""
        assert type(found) is type(self.p)
        for mine, right in zip(self.parts(found), (w, b), strict=True):
            np.testing.assert_allclose(np.asarray(mine, dtype=float), right, rtol=rtol, atol=1e-9)

    def best(self, found: Any) -> None:
        """Checks that a result is the least squares solution."""
        self.same(found, BEST[:3], BEST[3], 1e-5)


def graphs(c: Case, _: Any) -> None:
    assert np.isclose(c.graph(c.p, X, T), LOSS) and np.isclose(c.graph(t=T, p=c.p, x=X), LOSS)
    assert str(c.graph.inputs[0]) == c.selected
    c.same(symad.gradient(c.graph, "p")(c.p, X, T))
    c.same(symad.gradient(c.graph, 0, mode="forward")(c.p, X, T))
    c.same(symad.gradient(c.graph)(c.p, X, T)[0])
    np.testing.assert_allclose(symad.gradient(c.graph, c.selected)(c.p, X, T), W_BAR)


def products(c: Case, _: Any) -> None:
    v, ones = 2 * A.T @ A @ np.ones(4) / 6, c.make(np.ones(3), 1.0)
    c.same(symad.hvp(c.graph, "p")(c.p, X, T, ones), v[:3], v[3])
    assert np.isclose(symad.pushforward(c.graph, "p")(c.p, X, T, ones)[1], W_BAR.sum() + B_BAR)
    c.same(symad.pullback(c.graph, "p")(c.p, X, T, 1.0)[1])


def matrices(c: Case, _: Any) -> None:
    residuals = symad.trace(c.residuals, c.inputs)
    np.testing.assert_allclose(symad.jacobian(residuals, "p")(c.p, X, T), A)
    np.testing.assert_allclose(symad.jacobian(residuals, "p", sparse=True)(c.p, X, T).toarray(), A)
    np.testing.assert_allclose(symad.hessian(c.graph, "p")(c.p, X, T), 2 * A.T @ A / 6)


def batches(c: Case, _: Any) -> None:
    twice = c.make(np.stack([W, W]), np.array([B, B]))
    found = symad.vmap(symad.gradient(c.graph, "p"), [0, None, None])(twice, X, T)
    c.same(found, np.stack([W_BAR] * 2), np.array([B_BAR] * 2))
    shared = symad.vmap(c.graph, [c.make(0, None), None, None])(c.make(np.stack([W, W]), B), X, T)
    np.testing.assert_allclose(shared, [LOSS] * 2)


def composed(c: Case, _: Any) -> None:
    slope = symad.gradient(c.graph, "p")
    total = symad.trace(lambda p, x, t: c.parts(slope(p, x, t))[0].sum(), c.inputs)
    c.same(symad.gradient(total, "p")(c.p, X, T), (2 * X.T @ X / 6).sum(0), 2 * X.mean(0).sum())
    c.same(symad.gradient(symad.remat(c.loss, inputs=c.inputs), 0)(c.p, X, T))
    c.same(symad.join(c.graph, slope)(c.p, X, T)[1])
    solved = symad.implicit(lambda u, p, x, t: u - c.loss(p, x, t), "u", inputs=[(), *c.inputs])
    c.same(symad.gradient(solved, "p")(c.p, X, T, 0.0))


def certificates(c: Case, _: Any) -> None:
    def wrong(p: Any, x: Any, t: Any) -> Any:
        return c.make(c.parts(c.slopes(p, x, t))[0] * 2, c.parts(c.slopes(p, x, t))[1])

    def back(p: Any, x: Any, t: Any, y: Any) -> Any:
        return c.make(*(y * part for part in c.parts(c.slopes(p, x, t))))

    def along(p: Any, x: Any, t: Any, d: Any) -> Any:
        return (2 * c.residuals(p, x, t) * c.residuals(d, x, 0)).mean()

    options = {"inputs": c.inputs, "hostile": False}
    assert symad.verify(c.loss, "p", gradient=c.slopes, **options).status == "measured"
    refuted = symad.verify(c.loss, "p", gradient=wrong, **options)
    assert refuted.status == "refuted" and c.selected in str(refuted)
    assert symad.verify(c.loss, "p", vjp=back, **options).status == "measured"
    assert symad.verify(c.loss, "p", jvp=along, **options).status == "measured"
    kernel = lower(symad.gradient(c.graph, "p"))
    assert symad.verify(c.loss, "p", gradient=kernel, **options).status == "measured"
    small = [c.make((2,), ()), (2, 2), (2,)]
    assert symad.check(c.loss, "p", inputs=small).status in ("proved", "tested")


def files(c: Case, folder: Any) -> None:
    graph = symad.value_and_gradient(c.graph, "p")
    symad.save(graph, folder / "g.json")
    c.same(symad.load(folder / "g.json", classes=[Params, Frozen, Pair])(c.p, X, T)[1])
    kernel = lower(graph)
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(graph)):
        c.same(copied(c.p, t=T, x=X)[1])
    kernel.save(folder / "f.py")
    tree, space = ast.parse((folder / "f.py").read_text()), {}
    exec(compile(tree, "f.py", "exec"), space)
    entry = space[[s.name for s in tree.body if isinstance(s, ast.FunctionDef)][-1]]
    slope = entry(c.p, t=T, x=X)[1]  # a file imports no class of the user's: objects come as dicts of fields
    w, b = (slope["w"], slope["b"]) if hasattr(c.p, "w") else c.parts(slope)
    c.same(c.make(w, b))


def _kernels(c: Case, backend: str) -> None:
    graph = symad.value_and_gradient(c.graph, "p")
    for dtype, rtol in (("float64", 1e-10), ("float32", 1e-4)):
        value, slope = lower(graph, backend, dtype=dtype)(c.p, X, T)
        assert np.isclose(value, LOSS) and c.parts(slope)[0].dtype == dtype
        c.same(slope, rtol=rtol)
    c.same(lower(graph, backend)(t=T, p=c.p, x=X)[1])
    packed = lower(graph, backend, packed=True)
    np.testing.assert_allclose(packed(np.r_[W, B], X, T)[1], np.r_[W_BAR, B_BAR])
    assert lower(symad.hessian(c.graph, "p"), backend, packed=True)(np.r_[W, B], X, T).shape == (4, 4)
    with pytest.raises((ValueError, TypeError), match=r"^x "):
        packed(c.p, X, T)
    fixed = given(graph, DATA, backend=backend)
    c.same(fixed(c.p)[1])
    c.same(fixed(p=c.p)[1])


def numpy_kernels(c: Case, _: Any) -> None:
    _kernels(c, "numpy")
    c.same(lower(symad.gradient(c.graph, "p"), style="plain")(c.p, X, T))
    packed = lower(symad.value_and_gradient(c.graph, "p"), packed=True)
    found = scipy_minimize(packed, np.zeros(4), args=(X, T), jac=True, tol=1e-10)
    np.testing.assert_allclose(found.x, BEST, rtol=1e-6)
    residuals = given(symad.trace(c.residuals, c.inputs), {"p": c.p})
    np.testing.assert_allclose(residuals(X, T), R)


def c_kernels(c: Case, _: Any) -> None:
    _kernels(c, "c")


def device_kernels(c: Case, _: Any) -> None:
    """On the stand-in for CuPy; errors name a value outside the device by the expression that selects it."""
    with library() as cp:
        x, t, there = cp.asarray(X), cp.asarray(T), c.make(cp.asarray(W), cp.asarray(B))
        graph = symad.value_and_gradient(c.graph, "p")
        for slope in (
            lower(graph, "cupy")(there, x, t)[1],
            lower(graph, "cupy")(t=t, p=there, x=x)[1],
            given(graph, {"x": x, "t": t}, backend="cupy")(there)[1],
        ):
            assert type(slope) is type(c.p)
            c.same(c.make(*(part.get() for part in c.parts(slope))))
        flat = lower(graph, "cupy", packed=True)(cp.asarray(np.r_[W, B]), x, t)[1]
        np.testing.assert_allclose(flat.get(), np.r_[W_BAR, B_BAR])
        with pytest.raises(TypeError) as problem:
            lower(graph, "cupy")(c.p, x, t)
        assert str(problem.value).startswith(f"{c.selected} is a numpy.ndarray outside of the GPU")
        slope = lower(symad.gradient(c.graph, "p"), "cupy")(there, x, t)
        for optimizer in (SGD(0.1, 0.9), Adam(0.1), RMSprop(0.1)):
            moved, _ = optimizer.step(there, slope, optimizer.start(there), 1.0)
            known, _ = optimizer.step(c.p, c.slopes(c.p, X, T), optimizer.start(c.p), 1.0)
            c.same(c.make(*(part.get() for part in c.parts(moved))), *c.parts(known))


def backend_without_arrays(c: Case, _: Any) -> None:
    with pytest.raises(symad.errors.LoweringError, match="backend 'runs' takes graphs of scalars"):
        lower(c.graph, "runs")


def fits(c: Case, _: Any) -> None:
    start = c.make(np.zeros(3), 0.0)
    for method in ("newton", "l-bfgs", "newton-cg"):
        c.best(minimize(c.loss, start, data=DATA, inputs=c.inputs, method=method).x)
    for solver in ("dense", "products"):
        c.best(least_squares(c.residuals, start, data=DATA, inputs=c.inputs, solver=solver).x)


def optimizers(c: Case, _: Any) -> None:
    """Two steps of momentum by hand: v = g and θ − η v, then a step by 0.9 v + g."""
    rule, slope = SGD(0.1, 0.9), c.slopes(c.p, X, T)
    moved, state = rule.step(c.p, slope, rule.start(c.p), 1.0)
    c.same(moved, W - 0.1 * W_BAR, B - 0.1 * B_BAR)
    c.same(rule.step(c.p, slope, state, 1.0)[0], W - 0.19 * W_BAR, B - 0.19 * B_BAR)
    norm = np.sqrt(W_BAR @ W_BAR + B_BAR**2)
    c.same(clip_gradients(slope, 0.1), W_BAR * 0.1 / norm, B_BAR * 0.1 / norm)
    with pytest.raises(symad.errors.EvaluationError, match="gradients"):
        rule.step(c.p, W, rule.start(c.p), 1.0)


def training(c: Case, folder: Any) -> None:
    """A step of gradient descent by hand; an interrupted and continued run equals an uninterrupted one."""
    (one,) = (train(c.graph, c.p, [DATA], SGD(0.1), steps=1).parameters,)
    c.same(one, W - 0.1 * W_BAR, B - 0.1 * B_BAR)
    c.same(train(c.loss, {"p": c.p}, [(X, T)], SGD(0.1), 1, inputs=c.inputs).parameters["p"], *c.parts(one))
    rule, kept = Adam(0.1), folder / "kept.npz"
    train(c.graph, c.p, [(X, T)] * 2, rule, steps=2, checkpoint=kept)
    again = train(c.graph, c.p, [(X, T)] * 4, rule, steps=4, checkpoint=kept, resume=True)
    c.same(again.parameters, *c.parts(train(c.graph, c.p, [(X, T)] * 4, rule, steps=4).parameters))
    state = rule.start(c.p)
    write_checkpoint(folder / "own.npz", c.p, state, [1.0])
    c.same(read_checkpoint(folder / "own.npz", c.p, state)[0], W, B)


def games(c: Case, _: Any) -> None:
    """One step of two players: one minimizes b s² over s, the other maximizes it over the structure."""
    inputs = [c.make((3,), ()), {"s": ()}]
    value = symad.trace(lambda p, q: c.parts(p)[1] * q["s"] ** 2, inputs)
    other = symad.trace(lambda p, q: -c.parts(p)[1] * q["s"] ** 2, inputs)
    players = [Player(value, ["q"], SGD(0.1)), Player(other, ["p"], SGD(0.1))]
    found = train_in_turn(players, {"p": c.p, "q": {"s": 2.0}}, [[()], [()]], rounds=1).parameters
    s = 2.0 - 0.1 * 2 * B * 2.0
    assert np.isclose(found["q"]["s"], s)
    c.same(found["p"], W, B + 0.1 * s**2)


def in_parts(c: Case, _: Any) -> None:
    graph = symad.value_and_gradient(symad.trace(c.loss, c.any_length), "p")
    kernel = scale.distribute(graph, OVER, rows=2)
    c.same(kernel(c.p, X, T)[1])
    c.same(kernel(t=T, x=X, p=c.p)[1])
    options = {"data": DATA, "over": OVER, "inputs": c.any_length}
    c.best(scale.minimize(c.loss, c.make(np.zeros(3), 0.0), **options).x)
    c.best(scale.least_squares(c.residuals, c.make(np.zeros(3), 0.0), **options).x)


def at_many_values(c: Case, _: Any) -> None:
    twice = c.make(np.stack([W, W]), np.array([B, B]))
    np.testing.assert_allclose(scale.sweep(c.graph, {"p": twice}, DATA), [LOSS] * 2)
    slopes = scale.sweep(symad.gradient(c.graph, "p"), {"t": np.stack([T, T])}, {"x": X, "p": c.p})
    c.same(slopes, np.stack([W_BAR] * 2), np.array([B_BAR] * 2))
    # for standard normal p the mean of L is (|X|² + 6 + |t|²)/6
    found = scale.monte_carlo(c.graph, {"p": "normal"}, 2000, DATA, seed=1)
    assert abs(found.mean - ((X**2).sum() + 6 + T @ T) / 6) < 4 * found.error


def colored(c: Case, _: Any) -> None:
    residuals = symad.trace(c.residuals, c.inputs)
    np.testing.assert_allclose(scale.sparse_jacobian(residuals, "p")(c.p, t=T, x=X).toarray(), A)
    np.testing.assert_allclose(scale.sparse_hessian(c.graph, "p")(c.p, X, T).toarray(), 2 * A.T @ A / 6)


def chains(c: Case, _: Any) -> None:
    normal = symad.trace(lambda p: -(c.parts(p)[0] ** 2).sum() / 2 - c.parts(p)[1] ** 2 / 2, [c.inputs[0]])
    draws = hmc(normal, c.make(np.zeros(3), 0.0), count=100, warmup=50)
    assert np.all(np.abs(draws.mean) < 5 * draws.standard_errors)


def shown(c: Case, _: Any) -> None:
    text = str(c.graph.explain(p=c.p, x=X, t=T))
    assert c.selected in text and "np.float64" not in text and f"{LOSS:.6g}" in text


def tensors(c: Case, _: Any) -> None:
    torch = pytest.importorskip("torch")
    p = c.make(*(torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (W, B)))
    symad.torch.as_function(c.graph)(p, torch.tensor(X), torch.tensor(T)).backward()
    c.same(c.make(*(part.grad.numpy() for part in c.parts(p))))


CALLS = [
    graphs, products, matrices, batches, composed, certificates, files, numpy_kernels, c_kernels,
    device_kernels, backend_without_arrays, fits, optimizers, training, games, in_parts, at_many_values,
    colored, chains, shown, tensors,
]  # fmt: skip
