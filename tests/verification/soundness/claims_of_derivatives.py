"""Claims about derivatives whose truth is known by construction.

The right derivatives are SymPy's, or written by hand; each wrong one is a right one with a change that is not
0 on an open set of the domain of the claim.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

import symad
from symad import functions as F
from tests.verification.soundness.claims_of_scalars import Claim, n, p, q, x, y, z

R = sp.Rational
T = sp.Symbol("T", integer=True, positive=True)
a, b = sp.symbols("a b", real=True)


def verified(name, f, wrt, truth, sides=None, shows=True, **claim):
    """The claim of a derivative."""
    return Claim(name, lambda **limits: symad.verify(f, wrt, **claim, **limits), truth, sides, shows)


SCALARS = {  # f, its right derivative by x where SymPy's needs help, an interior point
    "cubic": (x**3 * y, 3 * x**2 * y, 2), "reciprocal": (1 / x, -1 / x**2, 2),
    "logarithm": (sp.log(x), 1 / x, 2), "logarithm of the size": (sp.log(sp.Abs(x)), 1 / x, -2),
    "root": (sp.sqrt(x), 1 / (2 * sp.sqrt(x)), 2), "power": (p**x, p**x * sp.log(p), 2),
    "power of itself": (x**x, x**x * (sp.log(x) + 1), 2),
    "absolute value": (sp.Abs(x), sp.sign(x), -2), "sign": (sp.sign(x) * y, 0 * x, 2),
    "stairs": (sp.floor(x) * x, sp.floor(x), R(5, 2)), "remainder": (sp.Mod(x, y), 1 + 0 * x, R(5, 2)),
    "maximum": (sp.Max(x, y), sp.Piecewise((1, x > y), (0, True)), 2),
    "product of extremes": (sp.Max(x, 0) ** 2, 2 * sp.Max(x, 0), 2),
    "branches": (sp.Piecewise((x**2, x < 1), (2 * x - 1, True)), sp.Piecewise((2 * x, x < 1), (2, True)), 3),
    "wrapped branches": (
        sp.sin(sp.Piecewise((x, x * y > 1), (-x, True))),
        sp.Piecewise((sp.cos(x), x * y > 1), (-sp.cos(x), True)), 3),
    "arctangent": (sp.atan(x * y), y / (1 + x**2 * y**2), 2),
    "arcsine": (sp.asin(x), 1 / sp.sqrt(1 - x**2), R(1, 2)),
    "arcosine": (sp.acos(x), -1 / sp.sqrt((1 - x) * (1 + x)), R(1, 2)),
    "arcosh": (sp.acosh(x), 1 / sp.sqrt(x**2 - 1), 2), "artanh": (sp.atanh(x), 1 / (1 - x**2), R(1, 2)),
    "arsinh": (sp.asinh(x), 1 / sp.sqrt(x**2 + 1), 2), "direction": (sp.atan2(y, x), -y / (x**2 + y**2), 2),
    "gamma": (sp.gamma(x), sp.gamma(x) * sp.digamma(x), 2), "log-gamma": (sp.loggamma(x), sp.digamma(x), 2),
    "digamma": (sp.digamma(x), sp.polygamma(1, x), 2),
    "error function": (sp.erf(x), 2 * sp.exp(-(x**2)) / sp.sqrt(sp.pi), 1),
    "complement": (sp.erfc(x * y), -2 * y * sp.exp(-(x**2) * y**2) / sp.sqrt(sp.pi), 1),
    "inverse error function": (sp.erfinv(x), sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfinv(x) ** 2), R(1, 2)),
    "Bessel": (sp.besselj(0, x), -sp.besselj(1, x), 2),
    "Bessel I": (sp.besseli(1, x), (sp.besseli(0, x) + sp.besseli(2, x)) / 2, 2),
    "Lambert": (sp.LambertW(x), 1 / (x + sp.exp(sp.LambertW(x))), 2),
    "sine integral": (sp.Si(x), sp.sin(x) / x, 2), "exponential integral": (sp.Ei(x), sp.exp(x) / x, 2),
    "Fresnel": (sp.fresnels(x), sp.sin(sp.pi * x**2 / 2), 2),
    "zeta": (sp.zeta(3) * sp.tanh(x), sp.zeta(3) * (1 - sp.tanh(x) ** 2), 2),
    "dilogarithm": (sp.polylog(2, x), -sp.log(1 - x) / x, R(1, 2)),
    "elliptic": (
        sp.elliptic_k(x), (sp.elliptic_e(x) - (1 - x) * sp.elliptic_k(x)) / (2 * x * (1 - x)), R(1, 2)),
    "Airy": (sp.airyai(x), sp.airyaiprime(x), 2),
    "cancels to a constant": (sp.sin(x) ** 2 + sp.cos(x) ** 2 + y, 0 * x, 2),
    "tower": (sp.exp(sp.exp(sp.tanh(x))), sp.exp(sp.exp(sp.tanh(x)) + sp.tanh(x)) / sp.cosh(x) ** 2, 2),
    "rational": ((x**2 - 1) / (x - 1), 1 + 0 * x, 3),
    "integer power": (x**n, n * x ** (n - 1), 2),
    "order of a polynomial": (sp.chebyshevt(5, x), 5 * sp.chebyshevu(4, x), R(1, 2)),
    "sinc": (sp.sinc(x), sp.cos(x) / x - sp.sin(x) / x**2, 2),
    "a plateau": (sp.Max(sp.Min(x, 1), -1) ** 3, sp.Piecewise((3 * x**2, (x > -1) & (x < 1)), (0, True)), 0),
    "softplus": (sp.log(1 + sp.exp(x)), 1 / (1 + sp.exp(-x)), 2),
    "secant": (sp.sec(x), sp.sec(x) * sp.tan(x), 1), "cotangent": (sp.cot(x), -1 - sp.cot(x) ** 2, 1),
    "erfi": (sp.erfi(x), 2 * sp.exp(x**2) / sp.sqrt(sp.pi), 1),
    "incomplete gamma": (sp.lowergamma(3, p) * x, sp.lowergamma(3, p), 2),
    "beta": (sp.beta(p, q) * x**2, 2 * x * sp.beta(p, q), 2),
}
WRONG = {  # what is added to a right derivative by x, near the interior point c
    "a sign": lambda f, g, c: -2 * (g if g != 0 else sp.Integer(1)),
    "a relative 1e-9": lambda f, g, c: g * R(1, 10**9) + R(1, 10**12),
    "the function itself": lambda f, g, c: R(1, 10**7) * f + R(1, 10**30),
    "an open tiny interval": lambda f, g, c: sp.Piecewise((y**2, (x > c) & (x < c + R(1, 10**9))), (0, True)),
    "an interval of numbers": lambda f, g, c: sp.Piecewise(
        (1, (x > c + R(1, 20)) & (x < c + R(1, 10))), (0, True)),
    "roots at what is drawn": lambda f, g, c: sp.sin(sp.pi * x * 2**70) * y,
    "far from the origin": lambda f, g, c: sp.Max(0, sp.Abs(y) - 10**8),
    "behind a label": lambda f, g, c: sp.Piecewise((1, sp.Eq(y, 7)), (0, True)),
    "behind a condition on another input": lambda f, g, c: sp.Max(0,
        y - sp.pi * 10**4) ** 2 * sp.sign(x) ** 2,
    "a product of conditions": lambda f, g, c: (
        (sp.sign(x - c) + 1) * (sp.sign(c + R(1, 10) - x) + 1) * (sp.sign(y - 3) + 1)),
}
EVERYWHERE = ("absolute value", "arctangent", "cubic", "stairs", "maximum", "product of extremes", "erfi",
    "branches", "wrapped branches", "arsinh", "error function", "complement", "cancels to a constant",
    "tower",
    "a plateau", "softplus")


def right_derivatives():
    """The derivatives themselves, as formulas."""
    return [verified(name, f, x, True, (f.diff(x), g) if not f.has(sp.Mod, sp.floor, sp.sign,
        sp.Abs) else None,
                     gradient=g) for name, (f, g, _) in SCALARS.items()]


def wrong_derivatives(change):
    """Each derivative with one change."""
    claims = []
    for name, (f, g, c) in SCALARS.items():
        f = f if f.has(y) else f + y**2  # what is added may depend on y
        wrong = g + WRONG[change](f, g, sp.Rational(c))
        claims.append(verified(f"{name}, {change}", f, x, False, (g, wrong), gradient=wrong))
    return claims


def regions():
    """Claims with a domain: the same difference outside and inside of it."""
    claims = []
    domains = {  # a condition, an expression that is 0 on all of it and positive somewhere else
        "x > 0": (x > 0, sp.Max(0, -x)), "x < -10": (x < -10, sp.Max(0, x + 10)),
        "unit interval": ((x > 0) & (x < 1), sp.Max(0, -x) + sp.Max(0, x - 1)),
        "x² + y² < 1": (x**2 + y**2 < 1, sp.Max(0, x**2 + y**2 - 1)),
        "x > y": (x > y, sp.Max(0, y - x)), "either": ((x > 1) | (x < -1), sp.Max(0, 1 - x**2)),
        "far": (x > 10**9, sp.Max(0, 10**9 - x)),
        "narrow": ((x > 3) & (x < 3 + R(1, 1000)), sp.Max(0, 3 - x) + sp.Max(0, x - 3 - R(1, 1000))),
        "not": (sp.Not(x > 2), sp.Max(0, x - 2)),
        "triangle": ((x > 0) & (y > 0) & (x + y < 1), sp.Max(0, -x)),
        "x y > 0": (x * y > 0, sp.Max(0, -x * y)), "exp x < 2": (sp.exp(x) < 2, sp.Max(0, sp.exp(x) - 2)),
    }
    for name, (where, outside) in domains.items():
        for title, f in {"sine": sp.sin(x * y), "root": sp.sqrt(x**2 + 1) + y, "size": sp.Abs(x) * y}.items():
            g = f.diff(x)
            if f.has(sp.Abs) and title == "size":
                g = sp.sign(x) * y
            claims += [
                verified(f"{title} where {name}, wrong outside", f, x, True, gradient=g + outside,
                    where=where),
                verified(f"{title} where {name}, wrong inside", f, x, False, gradient=g + outside,
                         where=sp.Not(where)),
                verified(f"{title} where {name}, wrong inside by 1e-9", f, x, False,
                         gradient=g + outside + R(1, 10**9), where=where),
                verified(f"{title} where {name}, right", f, x, True, gradient=g, where=where),
            ]
    return claims


def layouts():
    """Jacobians and Hessians in part, their orders and shapes."""
    claims = []
    f = sp.Matrix([x**2 * y, sp.sin(y) * z, x + y * z**3, x * y * z])
    J = f.jacobian([x, y, z])
    claims.append(verified("Jacobian", f, [x, y, z], True, jacobian=J))
    claims.append(verified("Jacobian of two inputs", f, [z, x], True, jacobian=f.jacobian([z, x])))
    claims.append(verified("Jacobian, columns swapped", f, [x, z], False, jacobian=f.jacobian([z, x])))
    claims.append(verified("Jacobian, rows swapped", f, [x, y, z], False, jacobian=J[[1, 0, 2, 3], :]))
    square = sp.Matrix([x**2 * y, sp.sin(y) * z, x + y * z**3])
    S = square.jacobian([x, y, z])
    claims.append(verified("square Jacobian", square, [x, y, z], True, jacobian=S))
    claims.append(verified("square Jacobian, transposed", square, [x, y, z], False, jacobian=S.T))
    for i in range(4):
        for j in range(3):
            wrong = J.copy()
            wrong[i, j] += R(1, 10**9) * (x + y + 1)
            claims.append(verified(f"Jacobian, entry {i} {j}", f, [x, y, z], False, jacobian=wrong))
    g = x**3 * y + sp.exp(y * z) + sp.cos(x * z)
    H = sp.hessian(g, [x, y, z])
    claims.append(verified("Hessian", g, [x, y, z], True, hessian=H))
    claims.append(verified("Hessian in part", g, [z, x], True, hessian=sp.hessian(g, [z, x])))
    claims.append(verified("Hessian in part, other order", g, [x, z], False, hessian=sp.hessian(g, [z, x])))
    for i in range(3):
        for j in range(3):
            wrong = H.copy()
            wrong[i, j] = wrong[i, j] * 2 if wrong[i, j] != 0 else sp.Integer(1)
            claims.append(verified(f"Hessian, entry {i} {j}", g, [x, y, z], False, hessian=wrong))
    upper = sp.Matrix(3, 3, lambda i, j: H[i, j] if i <= j else 0)
    claims.append(verified("Hessian, upper triangle", g, [x, y, z], False, hessian=upper))
    matrix = symad.trace(lambda W, v: np.tanh(W @ v), [(2, 3), (3,)])
    for name, truth, jacobian in [
        ("rows by rows", True, lambda W, v: np.concatenate([(1 - np.tanh(W @ v) ** 2)[i] * np.concatenate(
            [v * (k == i) for k in range(2)]) for i in range(2)]).reshape(2, 6)),
        ("columns by columns", False, lambda W, v: np.stack([(1 - np.tanh(W @ v) ** 2)[i] * np.stack(
            [v * (k == i) for k in range(2)]).T.reshape(6) for i in range(2)])),
        ("the other output", False, lambda W, v: np.stack([(1 - np.tanh(W @ v) ** 2)[i] * np.stack(
            [v * (k != i) for k in range(2)]).reshape(6) for i in range(2)])),
        ("the slope of the other output", False, lambda W, v: np.stack(
            [(1 - np.tanh(W @ v) ** 2)[1 - i] * np.stack([v * (k == i) for k in range(2)]).reshape(6)
             for i in range(2)])),
    ]:
        claims.append(verified(f"Jacobian of a layer, {name}", matrix, "W", truth, jacobian=jacobian,
            hostile=False))
    return claims


def user_rules():
    """Functions of users, whose rules are right, or wrong on an open set that 200 points meet."""
    claims = []
    rules = {
        "cube": (lambda u: u**3, lambda u: 3 * u**2, True),
        "cube, factor": (lambda u: u**3, lambda u: 2 * u**2, False),
        "cube, small": (lambda u: u**3, lambda u: 3 * u**2 + 1e-9, False),
        "sine": (np.sin, np.cos, True), "sine, sign": (np.sin, lambda u: -np.cos(u), False),
        "sine, shifted": (np.sin, lambda u: np.cos(u + 1e-7), False),
        "sine for u > 0": (np.sin, lambda u: np.where(u > 0, np.cos(u), 0.0), False),
        "sine for u < 0": (np.sin, lambda u: np.where(u < 0, np.cos(u), 0.0), False),
        "sine below 2": (np.sin, lambda u: np.where(u < 2, np.cos(u), 0.0), False),
        "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2, True),
        "tanh, at the value": (np.tanh, lambda u: 1 - np.tanh(u), False),
        "square root": (np.sqrt, lambda u: 0.5 / np.sqrt(u), True),
        "square root, factor": (np.sqrt, lambda u: 1.0 / np.sqrt(u), False),
        "softplus": (lambda u: np.log(1 + np.exp(u)), lambda u: 1 / (1 + np.exp(-u)), True),
        "softplus, minus": (lambda u: np.log(1 + np.exp(u)), lambda u: 1 / (1 + np.exp(u)), False),
        "square, plus its floor": (lambda u: u * u, lambda u: 2 * u + np.floor(u / 3) * 1e-3, False),
    }
    for i, (name, (f, g, truth)) in enumerate(rules.items()):
        def ask(f=f, g=g, i=i, **limits):
            head = symad.register_function(f"attacked_{i}", f, [g])
            return symad.check(head(x) * y, **limits)

        def own(f=f, g=g, i=i, **limits):
            head = symad.register_function(f"attacked_{i}", f, [g])
            return symad.verify(head(x * y), x, gradient=y * head(x * y).fdiff(1), **limits)
        shows = name not in ("cube, small", "sine, shifted")  # floats have not the digits to tell
        claims += [Claim(f"check of {name}", ask, truth, shows=shows),
                   Claim(f"verify of {name}", own, truth, shows=shows)]
    return claims


PROGRAMS = {  # f, its gradient as a program, and what may be wrong with one
    "sine of a product": (lambda u, v: np.sum(np.sin(u * v)), lambda u, v: v * np.cos(u * v)),
    "softmax loss": (
        lambda u, v: F.logsumexp(u) - np.sum(u * v),
        lambda u, v: np.exp(u - u.max()) / np.exp(u - u.max()).sum() - v),
    "hinge": (lambda u, v: np.sum(np.maximum(0, 1 - u * v)), lambda u, v: -v * (u * v < 1)),
    "quartic": (lambda u, v: np.sum(u**4) * v[0], lambda u, v: 4 * u**3 * v[0]),
    "norm": (lambda u, v: np.sqrt(np.sum(u * u)) * v[0], lambda u, v: u / np.sqrt(np.sum(u * u)) * v[0]),
    "variance": (lambda u, v: np.var(u) * v[0], lambda u, v: 2 * (u - u.mean()) / 3 * v[0]),
    "Huber": (
        lambda u, v: np.sum(np.where(np.abs(u) < 1, u * u / 2, np.abs(u) - 0.5)) + 0 * v[0],
        lambda u, v: np.clip(u, -1, 1) + 0 * v),
    "logistic": (
        lambda u, v: np.sum(np.logaddexp(0, -u * v)),
            lambda u, v: -v / (1 + np.exp(np.clip(u * v, -700, 700)))),
    "product": (lambda u, v: u[0] * u[1] * u[2] * v[0],
                lambda u, v: np.array([u[1] * u[2], u[0] * u[2], u[0] * u[1]]) * v[0]),
    "running sums": (
        lambda u, v: np.sum(np.cumsum(u) ** 2 * v),
        lambda u, v: np.cumsum((2 * np.cumsum(u) * v)[::-1])[::-1]),
}
MISTAKES = {  # of a program's gradient g at u, v
    "its sign": lambda g, u, v: -g, "a factor": lambda g, u, v: 2 * g,
    "by 1e-9": lambda g, u, v: g * (1 + 1e-9),
    "by 1e-6": lambda g, u, v: g * (1 + 1e-6), "reversed": lambda g, u, v: g[::-1],
    "its mean": lambda g, u, v: 0 * g + g.mean(), "one element": lambda g, u, v: g * np.array([1, 1, 0]),
    "negative inputs": lambda g, u, v: np.where(u < 0, 0, g),
    "positive inputs": lambda g, u, v: np.where(u > 0, 0, g),
    "large inputs": lambda g, u, v: np.where(np.abs(u) > 2, g * 1.5, g),
    "an element above the next": lambda g, u, v: np.where(u[0] > u[1], g * 1.01, g),
    "rounded to float32": lambda g, u, v: g.astype(np.float32).astype(float) if hasattr(g, "astype") else g,
    "the other input's sign": lambda g, u, v: np.where(v[0] < 0, -g, g),
    "a constant": lambda g, u, v: g + 1e-3,
}


def programs():
    """Gradients as programs, right and with the mistakes of programs."""
    claims = []
    for name, (f, g) in PROGRAMS.items():
        graph = symad.trace(f, [(3,), (3,)])
        claims.append(verified(f"program for {name}", graph, ["u"], True, gradient=g, hostile=False))
        for title, mistake in MISTAKES.items():
            def wrong(u, v, g=g, mistake=mistake):
                return mistake(g(u, v), u, v)
            shows = title not in ("by 1e-9", "rounded to float32")  # an error of 10⁻⁶ is seen
            claims.append(verified(f"program for {name}, {title}", graph, ["u"], False, shows=shows,
                                   gradient=wrong, hostile=False))
    return claims


LAYERS = {  # forward, shapes, right pullback for each input, wrong pullbacks by name
    "linear": (
        lambda X, W: X @ W, [(4, 3), (3, 2)],
        lambda X, W, g: (g @ W.T, X.T @ g),
        {"no transpose of the sum": lambda X, W, g: (g @ W.T, (g.T @ X)[::-1].T),
         "sign": lambda X, W, g: (g @ W.T, -X.T @ g),
         "g ignored": lambda X, W, g: (g @ W.T, X.T @ (0 * g + 1)),
         "mean": lambda X, W, g: (g @ W.T, X.T @ g / X.shape[0]),
         "no path to X": lambda X, W, g: (0 * X, X.T @ g)}),
    "softmax": (
        lambda X: F.softmax(X, axis=1), [(3, 3)],
        lambda X, g: ((lambda s: s * (g - (g * s).sum(1, keepdims=True)))(F.softmax(X, axis=1)),),
        {"diagonal alone": lambda X, g: ((lambda s: s * (1 - s) * g)(F.softmax(X, axis=1)),),
         "another axis": lambda X, g: ((lambda s: s * (g - (g * s).sum(0, keepdims=True)))(F.softmax(X,
             axis=1)),),
         "no subtraction": lambda X, g: (F.softmax(X, axis=1) * g,),
         "mean for sum": lambda X, g: ((lambda s: s * (g - (g * s).mean(1, keepdims=True)))(F.softmax(X,
             axis=1)),),
         "axis of the softmax": lambda X, g: (
             (lambda s: s * (g - (g * s).sum(1, keepdims=True)))(F.softmax(X, axis=0)),)}),
    "bias": (
        lambda X, b: np.tanh(X + b), [(3, 3), (3,)],
        lambda X, b, g: ((1 - np.tanh(X + b) ** 2) * g, ((1 - np.tanh(X + b) ** 2) * g).sum(0)),
        {"sum along the other axis": lambda X, b, g: (
            (1 - np.tanh(X + b) ** 2) * g, ((1 - np.tanh(X + b) ** 2) * g).sum(1)),
         "no sum": lambda X, b, g: ((1 - np.tanh(X + b) ** 2) * g, ((1 - np.tanh(X + b) ** 2) * g)[0]),
         "the value": lambda X, b, g: ((1 - np.tanh(X + b)) * g, ((1 - np.tanh(X + b) ** 2) * g).sum(0)),
         "argument": lambda X, b, g: ((1 - (X + b) ** 2) * g, ((1 - np.tanh(X + b) ** 2) * g).sum(0))}),
    "normalization": (
        lambda X: (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5), [(2, 4)],
        lambda X, g: ((lambda s, h: (g - g.mean(1, keepdims=True) - h * (g * h).mean(1, keepdims=True)) / s)(
            np.sqrt(X.var(1, keepdims=True) + 1e-5),
            (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)),),
        {"no ε": lambda X, g: ((lambda s, h: (g - g.mean(1, keepdims=True) - h * (g * h).mean(1,
            keepdims=True)) / s)(
            np.sqrt(X.var(1, keepdims=True)),
            (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True))),),
         "no mean": lambda X, g: ((lambda s, h: (g - h * (g * h).mean(1, keepdims=True)) / s)(
            np.sqrt(X.var(1, keepdims=True) + 1e-5),
            (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)),),
         "constant deviation": lambda X, g: ((lambda s: (g - g.mean(1, keepdims=True)) / s)(
            np.sqrt(X.var(1, keepdims=True) + 1e-5)),)}),
    "gather": (
        lambda X: X[[0, 2, 2]], [(3, 2)],
        lambda X, g: (np.stack([g[0], 0 * g[0], g[1] + g[2]]),),
        {"rows read twice count once": lambda X, g: (np.stack([g[0], 0 * g[0], g[2]]),),
         "the wrong row": lambda X, g: (np.stack([g[0], g[1] + g[2], 0 * g[0]]),)}),
    "maximum": (
        lambda X: X.max(1), [(2, 3)],
        lambda X, g: (np.where(X.max(1, keepdims=True) == X, g[:, None], 0.0),),
        {"all": lambda X, g: (0 * X + g[:, None],),
         "minimum": lambda X, g: (np.where(X.min(1, keepdims=True) == X, g[:, None], 0.0),),
         "the maximum of all": lambda X, g: (np.where(X.max() == X, g[:, None], 0.0),)}),
    "inverse": (
        lambda X: np.linalg.inv(X), [(2, 2)],
        lambda X, g: (-np.linalg.inv(X).T @ g @ np.linalg.inv(X).T,),
        {"not transposed": lambda X, g: (-np.linalg.inv(X) @ g @ np.linalg.inv(X),),
         "sign": lambda X, g: (np.linalg.inv(X).T @ g @ np.linalg.inv(X).T,)}),
    "quadratic": (
        lambda A, v: v @ A @ v, [(3, 3), (3,)],
        lambda A, v, g: (g * np.outer(v, v), g * (A + A.T) @ v),
        {"symmetric A": lambda A, v, g: (g * np.outer(v, v), 2 * g * A @ v),
         "transposed A": lambda A, v, g: (g * np.outer(v, v), 2 * g * A.T @ v),
         "half": lambda A, v, g: (g * np.outer(v, v), g * A @ v)}),
    "determinant": (
        lambda A: np.linalg.det(A), [(2, 2)],
        lambda A, g: (g * np.linalg.det(A) * np.linalg.inv(A).T,),
        {"not transposed": lambda A, g: (g * np.linalg.det(A) * np.linalg.inv(A),),
         "log": lambda A, g: (g * np.linalg.inv(A).T,)}),
    "leaky": (
        lambda X: np.where(X > 0, X, 0.1 * X), [(3,)],
        lambda X, g: (np.where(X > 0, g, 0.1 * g),),
        {"inverted": lambda X, g: (np.where(X < 0, g, 0.1 * g),),
            "gate of g": lambda X, g: (np.where(g > 0, g, 0.1 * g),),
         "shifted": lambda X, g: (np.where(X > 1e-3, g, 0.1 * g),)}),
    "gated": (
        lambda X, W: X / (1 + np.exp(-W)), [(3,), (3,)],
        lambda X, W, g: (g / (1 + np.exp(-W)), g * X * np.exp(-W) / (1 + np.exp(-W)) ** 2),
        {"swapped": lambda X, W, g: (g * X * np.exp(-W) / (1 + np.exp(-W)) ** 2, g / (1 + np.exp(-W))),
         "square missing": lambda X, W, g: (g / (1 + np.exp(-W)), g * X * np.exp(-W) / (1 + np.exp(-W)))}),
}


def backward_passes(kind):
    """Pullbacks of layers as formulas (graphs) or as programs."""
    claims = []
    for name, (forward, shapes, exact, wrong) in LAYERS.items():
        graph = symad.trace(forward, shapes)
        output = [node.shape for node in graph.output_nodes]
        for title, backward in {"right": exact, **wrong}.items():
            if kind == "program" and name == "softmax":  # of symad's own functions
                continue
            vjp = symad.trace(backward, [*shapes, *output]) if kind == "formula" else backward
            right = title == "right"
            claims.append(verified(f"{name}, {title}, as a {kind}", graph, None, right, vjp=vjp,
                hostile=False))
    return claims


FAMILIES = {"derivatives": right_derivatives} | {
    f"derivatives with {name}": lambda name=name: wrong_derivatives(name) for name in WRONG} | {
    "domains": regions, "layouts": layouts, "rules of users": user_rules, "gradients as programs": programs,
    "backward passes as formulas": lambda: backward_passes("formula"),
    "backward passes as programs": lambda: backward_passes("program"),
}
