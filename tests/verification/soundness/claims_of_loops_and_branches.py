"""Claims about loops, branches, poles, integers, parameters and layers of PyTorch, known by construction."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions as F
from tests.verification.soundness.claims_of_scalars import Claim, equality, k, m, n, p, q, x, y, z

R = sp.Rational
T = sp.Symbol("T", integer=True, positive=True)


def gradients(name, f, shapes, wrt, truth, gradient):
    """The claim of a gradient of a function of arrays, as a formula."""
    def ask(**limits):
        graph = symad.trace(f, shapes)
        return symad.verify(graph, wrt, gradient=symad.trace(gradient, shapes), **limits)
    return Claim(name, ask, truth)


def rows(v):
    """The indices of a vector."""
    return F.arange(v.shape[0])


def loops(length):
    """Gradients of recurrences, written out by hand."""
    shapes = [(length,), ()]
    cases = {  # f(v, w), wrt, right gradient, wrong gradients
        "sum of squares": (
            lambda v, w: F.fold(lambda c, s: c + w * s * s, 0.0, v), "v", lambda v, w: 2 * w * v,
            [lambda v, w: w * v, lambda v, w: 2 * v, lambda v, w: 2 * w * v[::-1],
             lambda v, w: np.where(rows(v) < 1, 0.0, 2 * w * v), lambda v, w: 2 * w * np.maximum(v, -1e6)]),
        "geometric weights": (
            lambda v, w: F.fold(lambda c, s: c / 2 + s, 0.0, v), "v",
            lambda v, w: 0.5 ** (v.shape[0] - 1 - rows(v)) + 0 * v,
            [lambda v, w: 0.5 ** (v.shape[0] - rows(v)) + 0 * v, lambda v, w: 0.5 ** rows(v) + 0 * v,
             lambda v, w: 0 * v + 1]),
        "by the weight": (
            lambda v, w: F.fold(lambda c, s: c + w * s, 0.0, v), "w", lambda v, w: v.sum(),
            [lambda v, w: v.sum() - v[0], lambda v, w: v.mean(), lambda v, w: w * v.sum(),
             lambda v, w: v.sum() + 1e-9, lambda v, w: np.abs(v).sum()]),
        "of the sum": (
            lambda v, w: np.sin(F.fold(lambda c, s: c + s, 0.0, v)), "v",
                lambda v, w: np.cos(v.sum()) + 0 * v,
            [lambda v, w: np.cos(v), lambda v, w: -np.cos(v.sum()) + 0 * v,
             lambda v, w: np.cos(v.sum()) + 1e-9 * v]),
        "all states": (
            lambda v, w: np.sum(F.scan(lambda c, s: c + s, 0.0, v)), "v",
            lambda v, w: v.shape[0] - rows(v) + 0 * v,
            [lambda v, w: rows(v) + 1 + 0 * v, lambda v, w: v.shape[0] - rows(v) - 1 + 0 * v,
             lambda v, w: 0 * v + v.shape[0]]),
        "the last state": (
            lambda v, w: F.scan(lambda c, s: c * w + s, 0.0, v)[-1], "v",
            lambda v, w: np.where(rows(v) == v.shape[0] - 1, 1.0, w ** (v.shape[0] - 1 - rows(v))),
            [lambda v, w: w ** rows(v) + 0 * v, lambda v, w: 0 * v + w]),
    }
    claims = []
    for name, (f, wrt, right, wrong) in cases.items():
        claims.append(gradients(f"{name}, {length}", f, shapes, wrt, True, right))
        claims += [gradients(f"{name}, mistake {i}, {length}", f, shapes, wrt, False, g) for i,
            g in enumerate(wrong)]
    return claims


def branches():
    """Conditions of all kinds: rewritten, and with one part of the plane exchanged."""
    def parts(*cases):
        return sp.Piecewise(*cases)
    f, g = x * y + 1, sp.exp(x) - y
    conditions = {
        "x > 0": x > 0, "x > y": x > y, "x² + y² < 4": x**2 + y**2 < 4, "and": (x > 0) & (y > 1),
        "or": (x > 2) | (y < -1), "not": ~((x > 0) & (y > 0)), "xor": sp.Xor(x > 0, y > 0),
        "sin": sp.sin(x) > R(1, 2),
        "floor": sp.floor(x) > 2, "remainder": sp.Mod(x, 2) < 1, "product": x * y > 0,
        "size": sp.Abs(x) < sp.Abs(y),
        "exp": sp.exp(x) > 3, "thin": (x > 5) & (x < 5 + R(1, 10**7)), "far": x > 10**12, "float": x > 0.1,
        "between": (x > y) & (x < y + 1), "irrational": x > sp.pi, "cubic": x**3 - x > y,
        "tan": sp.atan(x) > y,
    }
    claims = []
    for name, c in conditions.items():
        claims += [
            equality(f"{name}: inverted twice", parts((f, c), (g, True)), parts((g, sp.Not(c)), (f, True)),
                True),
            equality(f"{name}: a difference of terms", parts((f, c), (g, True)),
                g + parts((f - g, c), (0, True)), True),
            equality(f"{name}: inverted", parts((f, c), (g, True)), parts((g, c), (f, True)), False),
            equality(f"{name}: left out", parts((f, c), (g, True)), g, False),
            equality(f"{name}: always", parts((f, c), (g, True)), f, False),
            equality(f"{name}: tiny", parts((f, c), (g, True)), parts((f + R(1, 10**20), c), (g, True)),
                False),
            equality(f"{name}: one more part", parts((f, c), (g, True)),
                     parts((f, c), (g + 1, sp.Not(c) & (z > 3)), (g, True)), False),
            equality(f"{name}: moved", parts((x, c), (0, True)),
                     parts((x, c.xreplace({x: x + R(1, 1000)}) if name != "far" else x > 10**12 + 1),
                         (0, True)), False),
        ]
    return claims


def integers():
    """Identities that hold for integers, and such that hold for some only."""
    t = sp.Symbol("t", real=True)
    pairs = {
        "parity of a product": (sp.Mod(n * (n + 1), 2) + t, t, True),
        "parity": (sp.Mod(n, 2) + t, t, False),
        "cubes modulo 9": (sp.Mod(n**3, 9) * (sp.Mod(n**3, 9) - 1) * (sp.Mod(n**3, 9) - 8) + t, t, True),
        "cubes modulo 9, without −1": (sp.Mod(n**3, 9) * (sp.Mod(n**3, 9) - 1) + t, t, False),
        "seventh powers": (sp.Mod(n**7 - n, 42) + t, t, True),
        "seventh powers modulo 84": (sp.Mod(n**7 - n, 84) + t, t, False),
        "rare": (sp.Piecewise((1, sp.Eq(sp.Mod(n, 9973), 5)), (0, True)) + t, t, False),
        "one number": (sp.Piecewise((1, sp.Eq(n, 123456)), (0, True)) + t, t, False),
        "small ones alone": (sp.Min(n**2, 10**8) + t, n**2 + t, False),
        "halves": (sp.floor(n / 2) + sp.ceiling(n / 2) + t, n + t, True),
        "halves, twice": (2 * sp.floor(n / 2) + t, n + t, False),
        "thirds": (sp.floor(n / 3) + sp.floor((n + 1) / 3) + sp.floor((n + 2) / 3) + t, n + t, True),
        "fourths": (sp.floor(n / 4) + sp.floor((n + 1) / 4) + sp.floor((n + 2) / 4) + t, n + t, False),
        "signs": ((-1) ** n * (-1) ** m * t, (-1) ** (n + m) * t, True),
        "signs of a product": ((-1) ** n * (-1) ** m * t, (-1) ** (n * m) * t, False),
        "squared sign": ((-1) ** (2 * n) * t, t, True),
        "half turns": (sp.cos(sp.pi * n) * t, (-1) ** n * t, True),
        "quarter turns": (sp.cos(sp.pi * n / 2) * t, (-1) ** n * t, False),
        "zero of the sine": (sp.sin(sp.pi * n) + t, t, True),
        "even powers": (sp.sqrt(t ** (2 * n)), sp.Abs(t) ** n, True),
        "odd powers": (sp.sqrt(t ** (2 * n)), t**n, False),
        "power zero": (t**0 + 0**k, 1 + 0 * t, True),
        "zero to the n": (sp.Piecewise((1, sp.Eq(n, 0)), (0, True)) * t, 0 * t, False),
        "factorial": (sp.factorial(k) * t, k * sp.factorial(k - 1) * t, True),
        "factorial, shifted": (sp.factorial(k) * t, (k + 1) * sp.factorial(k - 1) * t, False),
        "binomial": (sp.binomial(k + 1, 2) * t, k * (k + 1) / 2 * t, True),
        "maximum of powers": (sp.Max(n**2, n) + t, n**2 + t, True),
        "maximum of powers of reals": (sp.Max(t**2, t) + n, t**2 + n, False),
        "whole part": (sp.floor(n + R(1, 2)) + t, n + t, True),
        "whole part of reals": (sp.floor(t + R(1, 2)) + n, t + n, False),
        "distance": (sp.Max(0, 1 - sp.Abs(n)) + t, sp.Piecewise((1, sp.Eq(n, 0)), (0, True)) + t, True),
        "no whole number between": (sp.Piecewise((1, (n > 0) & (n < 1)), (0, True)) + t, t, True),
        "one whole number between": (sp.Piecewise((1, (n > 0) & (n < 2)), (0, True)) + t, t, False),
    }
    return [equality(name, left, right, truth) for name, (left, right, truth) in pairs.items()]


def poles():
    """Special functions at branch cuts, poles and in pieces."""
    s, pi = sp.Symbol("s", real=True), sp.pi
    pairs = {
        "arcsin of sin": (sp.asin(sp.sin(s)), s, False),
        "arcsin of sin on two periods": (
            sp.asin(sp.sin(s)) + 0 * s, sp.Piecewise((s, (s > -pi / 2) & (s < pi / 2)), (pi - s, True)),
                False),
        "arccos of cos": (sp.acos(sp.cos(s)), sp.Abs(s), False),
        "arccos of cos, all": (sp.acos(sp.cos(s)), sp.Abs(sp.Mod(s + pi, 2 * pi) - pi), True),
        "arctan of tan": (sp.atan(sp.tan(s)), s - pi * sp.floor(s / pi + R(1, 2)), True),
        "arctan of tan, one period": (sp.atan(sp.tan(s)), s, False),
        "arctan of a quotient": (sp.atan(y / x), sp.atan2(y, x), False),
        "arctan sums": (sp.atan(x) + sp.atan(y), sp.atan((x + y) / (1 - x * y)), False),
        "arctan by arcsin": (sp.atan(s), sp.asin(s / sp.sqrt(1 + s**2)), True),
        "arctan by arccos": (sp.atan(s), sp.acos(1 / sp.sqrt(1 + s**2)), False),
        "arccos of minus": (sp.acos(-s), pi - sp.acos(s), True),
        "arccos of minus, period": (sp.acos(-s), -sp.acos(s), False),
        "gamma's reflection, sign": (sp.gamma(s) * sp.gamma(-s), pi / (s * sp.sin(pi * s)), False),
        "gamma's reflection, right": (sp.gamma(s) * sp.gamma(-s), -pi / (s * sp.sin(pi * s)), True),
        "log gamma of positive": (sp.loggamma(p), sp.log(sp.gamma(p)), True),
        "log of the size of gamma": (sp.log(sp.Abs(sp.gamma(s))), sp.log(sp.gamma(s)) * sp.sign(sp.gamma(s)),
            True),
        "digamma's reflection": (sp.digamma(1 - s) - sp.digamma(s), pi / sp.tan(pi * s), True),
        "digamma's reflection, sign": (sp.digamma(1 - s) + sp.digamma(s), pi / sp.tan(pi * s), False),
        "Lambert of all": (sp.LambertW(s * sp.exp(s)), s, False),
        "Lambert back": (sp.LambertW(s) * sp.exp(sp.LambertW(s)), s, True),
        "error function's inverse": (sp.erf(sp.erfinv(s)), s, True),
        "error function's sign": (sp.erf(-s), sp.erf(s), False),
        "saturated error function": (sp.erf(100 + s**2), 1 + 0 * s, False),
        "saturated tanh": (sp.tanh(1000 * s), sp.sign(s), False),
        "steep logistic": (1 / (1 + sp.exp(-(10**6) * s)), (1 + sp.sign(s)) / 2, False),
        "Bessel's order": (sp.besselj(-2, p), sp.besselj(2, p), True),
        "Bessel's odd order": (sp.besselj(-3, p), sp.besselj(3, p), False),
        "Bessel's real order": (sp.besselj(-R(1, 3), p), sp.besselj(R(1, 3), p), False),
        "modified Bessel": (sp.besseli(-2, p), sp.besseli(2, p), True),
        "modified Bessel K": (sp.besselk(-R(1, 3), p), sp.besselk(R(1, 3), p), True),
        "zeta of 2": (sp.zeta(2) * s, pi**2 / 6 * s, True),
        "Ramanujan's number": (sp.exp(pi * sp.sqrt(163)) * s, (640320**3 + 744) * s, False),
        "a close fraction": (pi * s, R(355, 113) * s, False),
        "a close root": (sp.root(R(2143, 22), 4) * s, pi * s, False),
        "golden": (sp.sqrt(5) * s, (2 * sp.GoldenRatio - 1) * s, True),
        "roots of unity": ((s**6 - 1) / (s**2 - 1), s**4 + s**2 + 1, True),
        "cube roots": (sp.root(s**3, 3), s, True),
        "real cube root": (sp.sign(s) * sp.root(sp.Abs(s), 3), sp.cbrt(s), True),
        "root of a fourth power": (sp.root(s**4, 4), s, False),
        "two thirds": ((s**2) ** R(1, 3), sp.Abs(s) ** R(2, 3), True),
        "power of −1": (((-s) ** 2) ** R(1, 2), -s, False),
        "log of exp": (sp.log(sp.exp(s)), s, True),
        "exp of log": (sp.exp(sp.log(s)), s, True),
        "exp of log of a square": (sp.exp(sp.log(s**2) / 2), s, False),
        "log of a power": (sp.log(p**s), s * sp.log(p), True),
        "log of a negative base": (sp.log((-p) ** 2), 2 * sp.log(p), True),
        "exponents of exponents": (p ** (q**s), (p**q) ** s, False),
        "arcosh by log": (sp.acosh(s), sp.log(s + sp.sqrt(s - 1) * sp.sqrt(s + 1)), True),
        "arcosh of an even argument": (sp.acosh(s**2), sp.log(s**2 - sp.sqrt(s**4 - 1)), False),
        "arsinh of minus": (sp.asinh(-s), -sp.asinh(s), True),
        "artanh inverted": (sp.atanh(1 / s), sp.acoth(s), True),
        "arcoth as arctanh": (sp.acoth(s), sp.atanh(s), False),
        "secant": (sp.sec(s) ** 2, 1 + sp.tan(s) ** 2, True),
        "secant without square": (sp.sec(s), sp.sqrt(1 + sp.tan(s) ** 2), False),
        "half angle by root": (sp.Abs(sp.sin(s / 2)), sp.sqrt((1 - sp.cos(s)) / 2), True),
        "half angle without size": (sp.sin(s / 2), sp.sqrt((1 - sp.cos(s)) / 2), False),
        "sinc at zero": (sp.sinc(s) * s, sp.sin(s), True),
        "floor of a negative": (sp.floor(-s), -sp.floor(s), False),
        "rounding": (sp.floor(s + R(1, 2)), sp.ceiling(s - R(1, 2)), True),
        "fraction": (s - sp.floor(s), sp.Abs(s) - sp.floor(sp.Abs(s)), False),
        "modulo of a modulo": (sp.Mod(sp.Mod(s, 6), 3), sp.Mod(s, 3), True),
        "modulo of another modulo": (sp.Mod(sp.Mod(s, 5), 3), sp.Mod(s, 3), False),
        "modulo of a negative": (sp.Mod(s, -3), sp.Mod(s, 3), False),
        "maximum of a sum": (sp.Max(x + z, y + z), sp.Max(x, y) + z, True),
        "maximum of a product": (sp.Max(x * z, y * z), sp.Max(x, y) * z, False),
        "maximum of exps": (sp.Max(sp.exp(x), sp.exp(y)), sp.exp(sp.Max(x, y)), True),
        "maximum of squares": (sp.Max(x**2, y**2), sp.Max(x, y) ** 2, False),
        "maximum of cubes": (sp.Max(x**3, y**3), sp.Max(x, y) ** 3, True),
        "maximum of inverses": (sp.Max(1 / x, 1 / y), 1 / sp.Min(x, y), False),
        "three absolute values": (sp.Abs(sp.Abs(x) - sp.Abs(y)), sp.Min(sp.Abs(x - y), sp.Abs(x + y)), True),
        "triangle": (sp.Abs(x + y), sp.Abs(x) + sp.Abs(y), False),
        "sign of a sum": (sp.sign(x) + sp.sign(y), 2 * sp.sign(x + y), False),
    }
    return [equality(name, left, right, truth) for name, (left, right, truth) in pairs.items()]


def floats():
    """Floats are their exact values, or the simple numbers of which they are roundings."""
    def rounded(name, left, slope, truth):
        return Claim(name, lambda **limits: symad.verify(left, x, gradient=slope, constants="rounded",
            **limits), truth)
    claims = []
    numbers = {"1/3": R(1, 3), "2/7": R(2, 7), "√2": sp.sqrt(2), "π": sp.pi, "π/6": sp.pi / 6,
        "1/√3": 1 / sp.sqrt(3),
               "0.1": R(1, 10), "22/7": R(22, 7), "1/√(2π)": 1 / sp.sqrt(2 * sp.pi)}
    for name, c in numbers.items():
        close = sp.Float(float(c))
        off = sp.Float(float(c) * (1 + 3e-15))
        short = sp.Float(round(float(c), 7)) if name != "0.1" else sp.Float(0.1000001)
        claims += [
            equality(f"{name} as a float", c * x, close * x, False),
            rounded(f"{name} rounded", c * x**2, 2 * close * x, True),
            rounded(f"{name} rounded, with another factor", c * x**2, close * x, False),
            rounded(f"{name} of seven digits", c * x**2, 2 * short * x, False),
            rounded(f"{name} with the last digits wrong", c * x**2, 2 * off * x, False),
        ]
    return claims


def functions_as_domains():
    """where= as a Python function of arrays."""
    def claim(name, gradient, truth, where):
        def ask(**limits):
            f = symad.trace(lambda u: np.sum(np.abs(u) ** 3), [(3,)])
            return symad.verify(f, "u", gradient=symad.trace(gradient, [(3,)]), where=where, **limits)
        return Claim(name, ask, truth)
    return [
        claim("positive", lambda u: 3 * u**2, True, lambda u: u.min() > 0),
        claim("positive, not asked", lambda u: 3 * u**2, False, lambda u: u.max() > 0),
        claim("negative", lambda u: -3 * u**2, True, lambda u: u.max() < 0),
        claim("negative, the sign", lambda u: 3 * u**2, False, lambda u: u.max() < 0),
        claim("all signs", lambda u: 3 * u * np.abs(u), True, lambda u: np.abs(u).max() < 20),
        claim("first positive", lambda u: 3 * u * np.where(np.arange(3) == 0, u, np.abs(u)), True,
            lambda u: u[0] > 0),
        claim("second positive", lambda u: 3 * u * np.where(np.arange(3) == 0, u, np.abs(u)), False,
            lambda u: u[1] > 0),
        claim("in order", lambda u: 3 * u * np.where(np.arange(3) == 2, u, np.abs(u)), True,
              lambda u: (u[0] > 0) & (u[0] < u[1]) & (u[1] < u[2])),
        claim("in the other order", lambda u: 3 * u * np.where(np.arange(3) == 2, u, np.abs(u)), False,
              lambda u: (u[0] > 0) & (u[0] > u[1]) & (u[1] > u[2])),
        claim("inside a ball", lambda u: 3 * u * np.abs(u) + np.maximum(0, np.sum(u * u) - 1), True,
              lambda u: np.sum(u * u) < 1),
        claim("inside a larger ball", lambda u: 3 * u * np.abs(u) + np.maximum(0, np.sum(u * u) - 1), False,
              lambda u: np.sum(u * u) < 1.1),
        claim("a thin shell", lambda u: 3 * u * np.abs(u) + np.maximum(0, np.sum(u * u) - 1), False,
              lambda u: (np.sum(u * u) < 1.1) & (np.sum(u * u) > 1.09)),
    ]


def tangents():
    """Pushforwards of layers, as formulas."""
    cases = {
        "product": (lambda u, v: u @ v, [(2, 3), (3,)], lambda u, v, a, b: a @ v + u @ b, [
            lambda u, v, a, b: a @ v, lambda u, v, a, b: u @ b, lambda u, v, a, b: a @ b,
            lambda u, v, a, b: a @ v - u @ b, lambda u, v, a, b: (a @ v + u @ b)[::-1],
            lambda u, v, a, b: a @ v + u @ b + 1e-12 * (a**2).sum()]),
        "quotient": (lambda u, v: u / v, [(3,), (3,)], lambda u, v, a, b: (a * v - u * b) / v**2, [
            lambda u, v, a, b: (a * v + u * b) / v**2, lambda u, v, a, b: (a * v - u * b) / v,
            lambda u, v, a, b: a / v - u * b / np.abs(v) ** 2 * np.sign(v), lambda u, v, a, b: a / b]),
        "inverse": (lambda u, v: np.linalg.inv(u) @ v, [(2, 2), (2,)],
                    lambda u, v, a, b: np.linalg.solve(u, b - a @ np.linalg.solve(u, v)), [
            lambda u, v, a, b: np.linalg.solve(u, b + a @ np.linalg.solve(u, v)),
            lambda u, v, a, b: np.linalg.solve(u.T, b - a @ np.linalg.solve(u, v)),
            lambda u, v, a, b: np.linalg.solve(u, b - a @ v)]),
        "maximum": (lambda u, v: np.maximum(u, v), [(3,), (3,)], lambda u, v, a, b: np.where(u > v, a, b), [
            lambda u, v, a, b: np.where(u < v, a, b), lambda u, v, a, b: np.where(a > b, a, b),
            lambda u, v, a, b: (a + b) / 2, lambda u, v, a, b: np.where(u > v + 1e-9, a, b)]),
        "logarithm of a sum": (lambda u, v: F.logsumexp(u + v), [(3,), (3,)],
                               lambda u, v, a, b: (F.softmax(u + v) * (a + b)).sum(), [
            lambda u, v, a, b: (F.softmax(u) * a + F.softmax(v) * b).sum(), lambda u, v, a, b: (a + b).mean(),
            lambda u, v, a, b: (F.softmax(u + v) * (a - b)).sum()]),
    }
    claims = []
    for name, (f, shapes, right, wrong) in cases.items():
        for i, g in enumerate([right, *wrong]):
            def ask(f=f, shapes=shapes, g=g, **limits):
                return symad.verify(symad.trace(f, shapes), jvp=symad.trace(g, shapes * 2), **limits)
            claims.append(Claim(f"pushforward of {name}, {i}", ask, i == 0))
    return claims


def of_torch():
    """Autograd functions of PyTorch, with the mistakes of backward passes."""
    torch = pytest.importorskip("torch")
    import symad.torch as bridge

    def made(forward, backward):
        class Layer(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.save_for_backward(*args)
                return forward(*args)

            @staticmethod
            def backward(ctx, g):
                found = backward(*ctx.saved_tensors, g)
                return found if isinstance(found, tuple) else (found,)
        return Layer

    relu = torch.relu
    layers = {
        "square": (lambda u: u**2, [(3,)], lambda u: u**2, lambda u, g: 2 * u * g, [
            lambda u, g: u * g, lambda u, g: 2 * u, lambda u, g: 2 * g, lambda u, g: 2 * u.abs() * g,
            lambda u, g: (2 * u * g).flip(0), lambda u, g: 2 * u * g.mean(), lambda u, g: -2 * u * g]),
        "sigmoid": (torch.sigmoid, [(2, 2)], lambda u: 1 / (1 + np.exp(-u)),
                    lambda u, g: torch.sigmoid(u) * (1 - torch.sigmoid(u)) * g, [
            lambda u, g: torch.sigmoid(u) * g, lambda u, g: u * (1 - u) * g,
            lambda u, g: torch.sigmoid(u) * (1 - torch.sigmoid(u)) * g.T,
            lambda u, g: (torch.sigmoid(u) * (1 - torch.sigmoid(u))) ** 2 * g]),
        "linear": (lambda u, v: u @ v, [(2, 3), (3, 2)], lambda u, v: u @ v,
                   lambda u, v, g: (g @ v.T, u.T @ g), [
            lambda u, v, g: (g @ v.T, u.T @ g.T), lambda u, v, g: (g.T @ v.T, u.T @ g),
            lambda u, v, g: (g @ v.T, u.T @ g / 2), lambda u, v, g: (g @ v.T, torch.zeros_like(v))]),
        "gate": (relu, [(4,)], lambda u: np.maximum(u, 0), lambda u, g: g * (u > 0), [
            lambda u, g: g, lambda u, g: g * (u < 0), lambda u, g: g * (g > 0), lambda u, g: g * u.sign()]),
        "norm": (lambda u: u / u.norm(), [(3,)], lambda u: u / np.sqrt((u * u).sum()),
                 lambda u, g: (g - u * (u @ g) / (u @ u)) / u.norm(), [
            lambda u, g: g / u.norm(), lambda u, g: (g + u * (u @ g) / (u @ u)) / u.norm(),
            lambda u, g: (g - u * (u @ g)) / u.norm(), lambda u, g: (g - u * (u @ g) / (u @ u)) / (u @ u)]),
    }
    claims = []
    for name, (forward, shapes, formula, right, wrong) in layers.items():
        for i, backward in enumerate([right, *wrong]):
            def ask(forward=forward, shapes=shapes, formula=formula, backward=backward, **limits):
                graph = symad.trace(formula, shapes)
                return bridge.verify_function(made(forward, backward), graph, hostile=False, **limits)
            claims.append(Claim(f"autograd function of {name}, {i}", ask, i == 0))
    return claims


FAMILIES = {
    "loops of any length": lambda: loops(T), "loops of length 5": lambda: loops(5), "branches": branches,
    "integers": integers, "poles and cuts": poles, "floats": floats,
    "domains as functions": functions_as_domains,
    "pushforwards": tangents, "autograd functions": of_torch,
}
