"""Claims about functions of arrays whose truth is known by construction.

Each right program is written twice, with an algebraic or geometric identity of arrays; each wrong one has one
of the mistakes that programs of arrays have: an axis, a transpose, an end of a range, a size.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

import symad
from symad import functions as F
from tests.verification.soundness.claims_of_scalars import Claim

T, d = sp.symbols("T d", integer=True, positive=True)
A, B, C = (3, 3), (3, 3), (3,)
SIZES = {"3": (3, 3), "2 by 4": (2, 4), "T by d": (T, d), "1 by 1": (1, 1)}


def programs(name, left, right, truth, shapes, shows=True):
    """The claim that two functions of arrays are equal."""
    return Claim(name, lambda **limits: symad.equal(left, right, inputs=shapes, **limits), truth, shows=shows)


ANY_SHAPE = {  # left, right, the changed right, of one matrix of any shape
    "sum by rows": (lambda a: a.sum(), lambda a: a.sum(axis=0).sum(), lambda a: a.sum(axis=0).sum() + a[0,
        0]),
    "mean of means": (lambda a: a.mean(), lambda a: a.mean(0).mean(), lambda a: a.mean(0).sum()),
    "variance": (
        lambda a: ((a - a.mean(0)) ** 2).mean(), lambda a: (a**2).mean() - (a.mean(0) ** 2).mean(),
        lambda a: (a**2).mean() - a.mean() ** 2 / 2),
    "Gram": (lambda a: (a @ a.T).T, lambda a: a @ a.T, lambda a: a @ a.T + a[0, 0]),
    "trace of a product": (
        lambda a: np.trace(a @ a.T), lambda a: (a * a).sum(), lambda a: (a * a).sum() * (1 + 1e-9)),
    "softmax's shift": (
        lambda a: F.softmax(a, axis=1), lambda a: F.softmax(a + a[:, :1], axis=1),
        lambda a: F.softmax(a + a[:, :1] + a[:1, :], axis=1)),
    "softmax's other axis": (
        lambda a: F.softmax(a, axis=0), lambda a: F.softmax(a.T, axis=1).T, lambda a: F.softmax(a, axis=1)),
    "log-sum-exp": (
        lambda a: F.logsumexp(a, axis=1), lambda a: np.log(np.exp(a).sum(1)),
            lambda a: np.log(np.exp(a).sum(1) + 1e-12)),
    "normalized": (
        lambda a: a / np.sqrt((a * a).sum(1, keepdims=True)), lambda a: a * ((a * a).sum(1,
            keepdims=True)) ** -0.5,
        lambda a: a / np.sqrt((a * a).sum(1, keepdims=True) + 1e-20)),
    "positive part": (
        lambda a: np.maximum(a, 0), lambda a: (a + np.abs(a)) / 2, lambda a: np.maximum(a, -1e-9)),
    "a gate": (
        lambda a: np.where(a > 0, a, 0.0), lambda a: np.maximum(a, 0), lambda a: np.where(a > 1e-6, a, 0.0)),
    "a gate of another element": (
        lambda a: np.where(a > a[0, 0], 1.0, 2.0) * a, lambda a: np.where(a[0, 0] < a, 1.0, 2.0) * a,
        lambda a: np.where(a > 0, 1.0, 2.0) * a),
    "maximum of all": (
        lambda a: a.max(), lambda a: a.max(1).max(), lambda a: a.max(1).max() + np.maximum(a.min() - 50.0,
            0)),
    "maximum and minimum": (
        lambda a: -(-a).max(0), lambda a: a.min(0), lambda a: a.min(0) + 1e-15),
    "transposed twice": (lambda a: a.T.T * 2, lambda a: a + a, lambda a: a + np.abs(a)),
    "outer difference": (
        lambda a: ((a[:, None, :] - a[None, :, :]) ** 2).sum(-1),
        lambda a: (a**2).sum(1)[:, None] + (a**2).sum(1)[None, :] - 2 * a @ a.T,
        lambda a: (a**2).sum(1)[:, None] + (a**2).sum(1)[None, :] - 2 * a @ a.T + 1e-8),
    "tanh": (
        lambda a: np.tanh(a), lambda a: 1 - 2 / (np.exp(2 * a) + 1),
            lambda a: 1 - 2 / (np.exp(2 * a) + 1.0000001)),
    "sign and size": (lambda a: np.sign(a) * np.abs(a), lambda a: a * 1.0, lambda a: np.abs(a)),
    "squares that tell nothing": (
        lambda a: np.sqrt(a**2), lambda a: np.abs(a), lambda a: a * 1.0),
    "count of positions": (
        lambda a: (a * F.arange(a.shape[0])[:, None]).sum(),
        lambda a: (a.sum(1) * F.arange(a.shape[0])).sum(),
        lambda a: (a.sum(1) * (F.arange(a.shape[0]) + 1)).sum()),
    "mask of positions": (
        lambda a: np.where(F.arange(a.shape[1]) < 1, a, 0.0).sum(1), lambda a: a[:, 0],
        lambda a: a[:, 0] + np.where(F.arange(a.shape[1]) < 0.5, 1e-3, 0.0).sum() * a[:, 0]),
}


def of_shape(size):
    """The programs of one matrix, right and changed, of one shape."""
    shape = SIZES[size]
    cases = []
    for name, (left, right, wrong) in ANY_SHAPE.items():
        cases.append(programs(f"{name}, {size}", left, right, True, [shape]))
        single = size == "1 by 1" and name in (
            "mean of means", "softmax's other axis", "squares", "softmax's shift")
        if not single:
            cases.append(programs(f"{name}, changed, {size}", left, wrong, False, [shape]))
    return cases


LONG = {  # symbolic lengths: right, and wrong from some length on, or at one length only
    "a prefix of 64": (
        lambda v: np.where(F.arange(v.shape[0]) < 64, v, 0.0).sum(), lambda v: v.sum(), False),
    "a prefix of 5000": (
        lambda v: np.where(F.arange(v.shape[0]) < 5000, v, 0.0).sum(), lambda v: v.sum(), False),
    "a shift of the mask": (
        lambda v: np.where(F.arange(v.shape[0]) >= 0, v, 0.0).sum(), lambda v: v.sum(), True),
    "no last element": (
        lambda v: np.where(F.arange(v.shape[0]) < v.shape[0] - 1, v, 0.0).sum(), lambda v: v.sum(), False),
    "count": (lambda v: (v * 0 + 1).sum(), lambda v: v.sum() * 0 + v.shape[0], True),
    "count but one": (lambda v: (v * 0 + 1).sum(), lambda v: v.sum() * 0 + v.shape[0] - 1, False),
    "the first": (lambda v: v[0] * v.shape[0], lambda v: v.sum(), False),
    "Gauss": (lambda v: F.arange(v.shape[0]).sum() * v, lambda v: v * v.shape[0] * (v.shape[0] - 1) / 2,
        True),
    "Gauss but one": (
        lambda v: F.arange(v.shape[0]).sum() * v, lambda v: v * v.shape[0] * (v.shape[0] + 1) / 2, False),
    "reversed twice": (lambda v: v[::-1][::-1], lambda v: v * 1.0, True),
    "reversed": (lambda v: v[::-1], lambda v: v * 1.0, False),
    "reversed sum": (lambda v: (v[::-1] * v).sum(), lambda v: (v * v[::-1]).sum(), True),
    "running sums": (lambda v: np.cumsum(v)[-1], lambda v: v.sum(), True),
    "running sums, first": (lambda v: np.cumsum(v)[0], lambda v: v.sum(), False),
    "running sums backwards": (
        lambda v: np.cumsum(v[::-1])[::-1] + np.cumsum(v) - v, lambda v: v.sum() + 0 * v, True),
    "rolled": (lambda v: np.roll(v, 1).sum(), lambda v: v.sum(), True),
    "rolled square": (lambda v: (np.roll(v, 1) * v).sum(), lambda v: (v * v).sum(), False),
    "fold": (lambda v: F.fold(lambda c, x: c + x, 0.0, v), lambda v: v.sum(), True),
    "fold of differences": (lambda v: F.fold(lambda c, x: x - c, 0.0, v), lambda v: v.sum(), False),
    "fold that forgets": (lambda v: F.fold(lambda c, x: x + 0 * c, 0.0, v), lambda v: v[-1], True),
    "fold that saturates": (
        lambda v: F.fold(lambda c, x: np.minimum(c + x * x, 1e6), 0.0, v), lambda v: (v * v).sum(), False),
    "scan": (lambda v: F.scan(lambda c, x: c + x, 0.0, v), lambda v: np.cumsum(v), True),
    "scan with decay": (
        lambda v: F.scan(lambda c, x: c / 2 + x, 0.0, v),
        lambda v: F.affine_scan(v * 0 + 0.5, v), True),
    "scan with other decay": (
        lambda v: F.scan(lambda c, x: c / 2 + x, 0.0, v),
        lambda v: F.affine_scan(v * 0 + 0.5000001, v), False),
    "product": (lambda v: F.fold(lambda c, x: c * x, 1.0, v), lambda v: np.prod(v), True),
    "product of sizes": (lambda v: np.prod(np.abs(v)), lambda v: np.prod(v), False),
    "mean with n − 1": (lambda v: ((v - v.mean()) ** 2).sum() / (v.shape[0] - 1), lambda v: np.var(v), False),
    "differences": (lambda v: np.diff(v).sum(), lambda v: v[-1] - v[0], True),
    "differences, sign": (lambda v: np.diff(v).sum(), lambda v: v[0] - v[-1], False),
    "maximum": (lambda v: F.fold(np.maximum, -np.inf, v), lambda v: v.max(), True),
    "extreme of sizes": (lambda v: np.abs(v).max(), lambda v: np.maximum(v.max(), -v.min()), True),
    "extreme of one side": (lambda v: np.abs(v).max(), lambda v: v.max(), False),
}


def lengths(shape, text):
    """Programs of one vector."""
    small = shape if isinstance(shape, int) else 10**9
    capped = {"a prefix of 64": 64, "a prefix of 5000": 5000}
    claims = []
    for name, (left, right, truth) in LONG.items():
        true = truth or (name in capped and small <= capped[name])
        if text == "1" and not truth:
            continue
        claims.append(programs(f"{name}, {text}", left, right, true, [(shape,)], name not in capped))
    return claims


MATRICES = {  # of square matrices a, b and a vector v
    "symmetric": (lambda a, b, v: v @ a @ v, lambda a, b, v: v @ (a + a.T) @ v / 2, True),
    "skew": (lambda a, b, v: v @ (a - a.T) @ v, lambda a, b, v: 0 * v.sum(), True),
    "skew, not 0": (lambda a, b, v: (a - a.T) @ v, lambda a, b, v: 0 * v, False),
    "order": (lambda a, b, v: a @ b, lambda a, b, v: b @ a, False),
    "order under the trace": (lambda a, b, v: np.trace(a @ b), lambda a, b, v: np.trace(b @ a), True),
    "three under the trace": (
        lambda a, b, v: np.trace(a @ b @ a.T), lambda a, b, v: np.trace(a.T @ b @ a), False),
    "cycle": (lambda a, b, v: np.trace(a @ b @ a.T), lambda a, b, v: np.trace(a.T @ a @ b), True),
    "transposed product": (lambda a, b, v: (a @ b).T, lambda a, b, v: b.T @ a.T, True),
    "transposed in order": (lambda a, b, v: (a @ b).T, lambda a, b, v: a.T @ b.T, False),
    "vector on the other side": (lambda a, b, v: a @ v, lambda a, b, v: v @ a, False),
    "vector, transposed": (lambda a, b, v: a @ v, lambda a, b, v: v @ a.T, True),
    "rows scaled": (lambda a, b, v: a * v, lambda a, b, v: a @ np.diag(v), True),
    "columns scaled": (lambda a, b, v: a * v[:, None], lambda a, b, v: a @ np.diag(v), False),
    "outer": (lambda a, b, v: np.outer(v, v) * a, lambda a, b, v: v[:, None] * a * v[None, :], True),
    "diagonal": (lambda a, b, v: np.diag(a), lambda a, b, v: (a * np.eye(3)).sum(0), True),
    "wrong diagonal": (lambda a, b, v: np.diag(a), lambda a, b, v: (a * np.eye(3)[::-1]).sum(0), False),
    "triangles": (lambda a, b, v: np.tril(a) + np.triu(a, 1), lambda a, b, v: a * 1.0, True),
    "triangles twice": (lambda a, b, v: np.tril(a) + np.triu(a), lambda a, b, v: a * 1.0, False),
    "determinant of a product": (
        lambda a, b, v: np.linalg.det(a @ b), lambda a, b, v: np.linalg.det(a) * np.linalg.det(b), True),
    "determinant of a sum": (
        lambda a, b, v: np.linalg.det(a + b), lambda a, b, v: np.linalg.det(a) + np.linalg.det(b), False),
    "determinant, transposed": (lambda a, b, v: np.linalg.det(a.T), lambda a, b, v: np.linalg.det(a), True),
    "determinant of a scaled": (
        lambda a, b, v: np.linalg.det(2 * a), lambda a, b, v: 6 * np.linalg.det(a), False),
    "log determinant": (
        lambda a, b, v: np.linalg.slogdet(a)[1], lambda a, b, v: np.log(np.abs(np.linalg.det(a))), True),
    "log determinant of one sign": (
        lambda a, b, v: np.linalg.slogdet(a)[1] + v[0], lambda a, b, v: np.log(np.linalg.det(a)) + v[0],
            True),
    "sign of the determinant": (
        lambda a, b, v: np.linalg.slogdet(a)[0], lambda a, b, v: np.sign(np.linalg.det(a)), True),
    "sign always 1": (lambda a, b, v: np.linalg.slogdet(a)[0], lambda a, b, v: v[0] * 0 + 1, False),
    "inverse of a product": (
        lambda a, b, v: np.linalg.inv(a @ b), lambda a, b, v: np.linalg.inv(b) @ np.linalg.inv(a), True),
    "inverses in order": (
        lambda a, b, v: np.linalg.inv(a @ b), lambda a, b, v: np.linalg.inv(a) @ np.linalg.inv(b), False),
    "solve": (lambda a, b, v: np.linalg.solve(a, v), lambda a, b, v: np.linalg.inv(a) @ v, True),
    "solve, transposed": (lambda a, b, v: np.linalg.solve(a.T, v), lambda a, b, v: np.linalg.inv(a) @ v,
        False),
    "solve of many": (
        lambda a, b, v: np.linalg.solve(a, b)[:, 0], lambda a, b, v: np.linalg.solve(a, b[:, 0]), True),
    "gather": (lambda a, b, v: a[[0, 2, 2]], lambda a, b, v: a[[0, 2, 1]], False),
    "gather twice": (lambda a, b, v: a[[2, 0, 1]][[1, 2, 0]], lambda a, b, v: a * 1.0, True),
    "gather the wrong way": (lambda a, b, v: a[[2, 0, 1]][[2, 0, 1]], lambda a, b, v: a * 1.0, False),
    "rolled rows": (lambda a, b, v: np.roll(a, 1, axis=0), lambda a, b, v: np.roll(a, -2, axis=0), True),
    "rolled columns": (lambda a, b, v: np.roll(a, 1, axis=0), lambda a, b, v: np.roll(a, 1, axis=1), False),
    "reshaped": (lambda a, b, v: a.reshape(9).reshape(3, 3), lambda a, b, v: a * 1.0, True),
    "reshaped as columns": (lambda a, b, v: a.reshape(9), lambda a, b, v: a.T.reshape(9), False),
    "concatenated": (
        lambda a, b, v: np.concatenate([a, b]).sum(0), lambda a, b, v: (a + b).sum(0), True),
    "concatenated along rows": (
        lambda a, b, v: np.concatenate([a, b], axis=1).sum(0)[:3], lambda a, b, v: (a + b).sum(0), False),
    "einsum": (lambda a, b, v: np.einsum("ij,jk->ik", a, b), lambda a, b, v: a @ b, True),
    "einsum of other indices": (lambda a, b, v: np.einsum("ij,kj->ik", a, b), lambda a, b, v: a @ b, False),
    "einsum of the diagonal": (lambda a, b, v: np.einsum("ii->i", a), lambda a, b, v: np.diag(a), True),
    "Kronecker's trace": (
        lambda a, b, v: np.trace(np.kron(a, b)), lambda a, b, v: np.trace(a) * np.trace(b), True),
    "Kronecker's order": (lambda a, b, v: np.kron(a, b), lambda a, b, v: np.kron(b, a), False),
    "squared norm": (lambda a, b, v: np.linalg.norm(v) ** 2, lambda a, b, v: v @ v, True),
    "norm": (lambda a, b, v: np.linalg.norm(v), lambda a, b, v: np.abs(v).sum(), False),
    "sorted sum": (lambda a, b, v: np.sort(v).sum(), lambda a, b, v: v.sum(), True),
    "sorted": (lambda a, b, v: np.sort(v), lambda a, b, v: v * 1.0, False),
    "sorted ends": (lambda a, b, v: np.sort(v)[0], lambda a, b, v: v.min(), True),
    "sorted middle": (
        lambda a, b, v: np.sort(v)[1], lambda a, b, v: v.sum() - v.max() - v.min(), True),
    "sorted middle, changed": (lambda a, b, v: np.sort(v)[1], lambda a, b, v: v.mean(), False),
    "power": (lambda a, b, v: np.linalg.matrix_power(a, 3), lambda a, b, v: a @ a @ a, True),
    "power by elements": (lambda a, b, v: np.linalg.matrix_power(a, 2), lambda a, b, v: a**2, False),
    "Cholesky": (
        lambda a, b, v: (lambda s: np.linalg.cholesky(s) @ np.linalg.cholesky(s).T)(a @ a.T + np.eye(3)),
        lambda a, b, v: a @ a.T + np.eye(3), True),
    "Cholesky the other way": (
        lambda a, b, v: (lambda s: np.linalg.cholesky(s).T @ np.linalg.cholesky(s))(a @ a.T + np.eye(3)),
        lambda a, b, v: a @ a.T + np.eye(3), False),
    "Woodbury": (
        lambda a, b, v: v @ np.linalg.inv(np.eye(3) + np.outer(v, v)) @ v,
        lambda a, b, v: v @ v / (1 + v @ v), True),
    "Woodbury, changed": (
        lambda a, b, v: v @ np.linalg.inv(np.eye(3) + np.outer(v, v)) @ v,
        lambda a, b, v: v @ v / (2 + v @ v), False),
    "broadcast of rows": (lambda a, b, v: (a + v).sum(0), lambda a, b, v: a.sum(0) + 3 * v, True),
    "broadcast of columns": (lambda a, b, v: (a + v[:, None]).sum(0), lambda a, b, v: a.sum(0) + 3 * v,
        False),
    "the largest": (
        lambda a, b, v: v.max(), lambda a, b, v: np.sort(v)[-1], True),
}


def matrices():
    """Programs of two square matrices and a vector."""
    return [programs(name, left, right, truth, [A, B, C]) for name, (left, right, truth) in MATRICES.items()]


FAMILIES = {f"matrices of shape {size}": lambda size=size: of_shape(size) for size in SIZES} | {
    "vectors of any length": lambda: lengths(T, "T"),
    "vectors of length 7": lambda: lengths(7, "7"),
    "vectors of length 1": lambda: lengths(1, "1"),
    "square matrices": matrices,
}
