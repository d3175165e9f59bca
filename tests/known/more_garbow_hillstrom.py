"""Test problems of unconstrained minimisation: residuals, standard starts and published minima of Σ r_i².

J. J. Moré, B. S. Garbow, K. E. Hillstrom, "Testing unconstrained optimization software", ACM Transactions
on Mathematical Software 7 (1981), section 3; problems under their numbers there. ``minima`` are the printed
values, 0 where the paper says 0; a second value is a local minimum that the paper names.
Problem 11 is left out: its formula is misprinted. Nothing here is computed by symad.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy
from sympy import Piecewise, Rational, atan, cos, exp, pi, sin, sqrt, symbols


class Problem(NamedTuple):
    """Residuals r(x), the start, and the printed minima of Σ r²."""

    number: int
    name: str
    unknowns: tuple[Any, ...]
    residuals: list[Any]
    start: list[float]
    minima: tuple[str, ...]

    @property
    def objective(self) -> Any:
        """Σ r²."""
        return sympy.Add(*[r**2 for r in self.residuals])

    def __str__(self) -> str:
        return f"{self.number} {self.name} n={len(self.unknowns)}"


def x(n: int) -> tuple[Any, ...]:
    """x1, ..., xn."""
    return symbols(f"x1:{n + 1}", real=True)


BARD = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39]
GAUSSIAN = [0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989]
MEYER = [
    34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872,
]  # fmt: skip
KOWALIK_Y = [0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
KOWALIK_U = [4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]
OSBORNE_1 = [
    0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685, 0.658, 0.628,
    0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420,
    0.414, 0.411, 0.406,
]  # fmt: skip
OSBORNE_2 = [
    1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608, 0.655, 0.616,
    0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661, 0.612, 0.558, 0.533, 0.495,
    0.500, 0.423, 0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428, 0.429, 0.523, 0.562, 0.607, 0.653, 0.672,
    0.708, 0.633, 0.668, 0.645, 0.632, 0.591, 0.559, 0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581,
    0.428, 0.292, 0.162, 0.098, 0.054,
]  # fmt: skip


def rosenbrock() -> Problem:
    a, b = v = x(2)
    return Problem(1, "Rosenbrock", v, [10 * (b - a**2), 1 - a], [-1.2, 1], ("0",))


def freudenstein_roth() -> Problem:
    a, b = v = x(2)
    rows = [-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b]
    return Problem(2, "Freudenstein and Roth", v, rows, [0.5, -2], ("0", "48.9842"))


def powell_badly_scaled() -> Problem:
    a, b = v = x(2)
    rows = [10**4 * a * b - 1, exp(-a) + exp(-b) - Rational(10001, 10000)]
    return Problem(3, "Powell badly scaled", v, rows, [0, 1], ("0",))


def brown_badly_scaled() -> Problem:
    a, b = v = x(2)
    rows = [a - 10**6, b - 2 * Rational(1, 10**6), a * b - 2]
    return Problem(4, "Brown badly scaled", v, rows, [1, 1], ("0",))


def beale() -> Problem:
    a, b = v = x(2)
    ys = [Rational(3, 2), Rational(9, 4), Rational(21, 8)]
    return Problem(5, "Beale", v, [y - a * (1 - b ** (i + 1)) for i, y in enumerate(ys)], [1, 1], ("0",))


def jennrich_sampson() -> Problem:
    a, b = v = x(2)
    rows = [2 + 2 * i - (exp(i * a) + exp(i * b)) for i in range(1, 11)]
    return Problem(6, "Jennrich and Sampson", v, rows, [0.3, 0.4], ("124.362",))


def helical_valley() -> Problem:
    a, b, c = v = x(3)
    theta = Piecewise((atan(b / a) / (2 * pi), a > 0), (atan(b / a) / (2 * pi) + Rational(1, 2), True))
    return Problem(
        7, "helical valley", v, [10 * (c - 10 * theta), 10 * (sqrt(a**2 + b**2) - 1), c], [-1, 0, 0], ("0",)
    )


def bard() -> Problem:
    a, b, c = v = x(3)
    rows = [y - (a + i / ((16 - i) * b + min(i, 16 - i) * c)) for i, y in enumerate(BARD, 1)]
    return Problem(8, "Bard", v, rows, [1, 1, 1], ("8.21487e-3",))


def gaussian() -> Problem:
    a, b, c = v = x(3)
    ys = GAUSSIAN + GAUSSIAN[-2::-1]
    rows = [a * exp(-b * (Rational(8 - i, 2) - c) ** 2 / 2) - y for i, y in enumerate(ys, 1)]
    return Problem(9, "Gaussian", v, rows, [0.4, 1, 0], ("1.12793e-8",))


def meyer() -> Problem:
    a, b, c = v = x(3)
    rows = [a * exp(b / (45 + 5 * i + c)) - y for i, y in enumerate(MEYER, 1)]
    return Problem(10, "Meyer", v, rows, [0.02, 4000, 250], ("87.9458",))


def box() -> Problem:
    a, b, c = v = x(3)
    ts = [Rational(i, 10) for i in range(1, 11)]
    rows = [exp(-t * a) - exp(-t * b) - c * (exp(-t) - exp(-10 * t)) for t in ts]
    return Problem(12, "Box three-dimensional", v, rows, [0, 10, 20], ("0",))


def powell_singular() -> Problem:
    a, b, c, d = v = x(4)
    rows = [a + 10 * b, sqrt(5) * (c - d), (b - 2 * c) ** 2, sqrt(10) * (a - d) ** 2]
    return Problem(13, "Powell singular", v, rows, [3, -1, 0, 1], ("0",))


def wood() -> Problem:
    a, b, c, d = v = x(4)
    rows = [
        10 * (b - a**2), 1 - a, sqrt(90) * (d - c**2), 1 - c, sqrt(10) * (b + d - 2), (b - d) / sqrt(10),
    ]  # fmt: skip
    return Problem(14, "Wood", v, rows, [-3, -1, -3, -1], ("0",))


def kowalik_osborne() -> Problem:
    a, b, c, d = v = x(4)
    pairs = zip(KOWALIK_Y, KOWALIK_U, strict=True)
    rows = [y - a * (u**2 + u * b) / (u**2 + u * c + d) for y, u in pairs]
    start = [0.25, 0.39, 0.415, 0.39]
    return Problem(15, "Kowalik and Osborne", v, rows, start, ("3.07505e-4", "1.02734e-3"))


def brown_dennis() -> Problem:
    a, b, c, d = v = x(4)
    ts = [Rational(i, 5) for i in range(1, 21)]
    rows = [(a + t * b - exp(t)) ** 2 + (c + d * sin(t) - cos(t)) ** 2 for t in ts]
    return Problem(16, "Brown and Dennis", v, rows, [25, 5, -5, -1], ("85822.2",))


def osborne_1() -> Problem:
    a, b, c, d, e = v = x(5)
    rows = [y - (a + b * exp(-10 * i * d) + c * exp(-10 * i * e)) for i, y in enumerate(OSBORNE_1)]
    return Problem(17, "Osborne 1", v, rows, [0.5, 1.5, -1, 0.01, 0.02], ("5.46489e-5",))


def biggs() -> Problem:
    a, b, c, d, e, f = v = x(6)
    ts = [Rational(i, 10) for i in range(1, 14)]
    rows = [
        c * exp(-t * a) - d * exp(-t * b) + f * exp(-t * e) - (exp(-t) - 5 * exp(-10 * t) + 3 * exp(-4 * t))
        for t in ts
    ]
    return Problem(18, "Biggs EXP6", v, rows, [1, 2, 1, 1, 1, 1], ("0", "5.65565e-3"))


def osborne_2() -> Problem:
    v = x(11)
    rows = []
    for i, y in enumerate(OSBORNE_2):
        t = Rational(i, 10)
        bells = [v[k] * exp(-((t - v[k + 7]) ** 2) * v[k + 4]) for k in (1, 2, 3)]
        rows.append(y - (v[0] * exp(-t * v[4]) + sympy.Add(*bells)))
    start = [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5]
    return Problem(19, "Osborne 2", v, rows, start, ("4.01377e-2",))


def watson(n: int, minimum: str) -> Problem:
    v = x(n)
    rows = []
    for i in range(1, 30):
        t = Rational(i, 29)
        slope = sympy.Add(*[j * t ** (j - 1) * v[j] for j in range(1, n)])
        rows.append(slope - sympy.Add(*[t**j * v[j] for j in range(n)]) ** 2 - 1)
    return Problem(20, "Watson", v, [*rows, v[0], v[1] - v[0] ** 2 - 1], [0] * n, (minimum,))


def extended_rosenbrock(n: int = 10) -> Problem:
    v = x(n)
    rows = [r for i in range(0, n, 2) for r in (10 * (v[i + 1] - v[i] ** 2), 1 - v[i])]
    return Problem(21, "extended Rosenbrock", v, rows, [-1.2, 1] * (n // 2), ("0",))


def extended_powell_singular(n: int = 8) -> Problem:
    v = x(n)
    rows = []
    for i in range(0, n, 4):
        a, b, c, d = v[i : i + 4]
        rows += [a + 10 * b, sqrt(5) * (c - d), (b - 2 * c) ** 2, sqrt(10) * (a - d) ** 2]
    return Problem(22, "extended Powell singular", v, rows, [3, -1, 0, 1] * (n // 4), ("0",))


def penalty_1(n: int, minimum: str) -> Problem:
    v = x(n)
    rows = [sqrt(Rational(1, 10**5)) * (a - 1) for a in v]
    rows.append(sympy.Add(*[a**2 for a in v]) - Rational(1, 4))
    return Problem(23, "penalty I", v, rows, [float(j) for j in range(1, n + 1)], (minimum,))


def penalty_2(n: int, minimum: str) -> Problem:
    v = x(n)
    a = sqrt(Rational(1, 10**5))
    rows = [v[0] - Rational(1, 5)]
    for i in range(2, n + 1):
        y = exp(Rational(i, 10)) + exp(Rational(i - 1, 10))
        rows.append(a * (exp(v[i - 1] / 10) + exp(v[i - 2] / 10) - y))
    rows += [a * (exp(v[i - n] / 10) - exp(-Rational(1, 10))) for i in range(n + 1, 2 * n)]
    rows.append(sympy.Add(*[(n - j + 1) * v[j - 1] ** 2 for j in range(1, n + 1)]) - 1)
    return Problem(24, "penalty II", v, rows, [0.5] * n, (minimum,))


def variably_dimensioned(n: int = 10) -> Problem:
    v = x(n)
    total = sympy.Add(*[j * (a - 1) for j, a in enumerate(v, 1)])
    rows = [*[a - 1 for a in v], total, total**2]
    return Problem(25, "variably dimensioned", v, rows, [1 - j / n for j in range(1, n + 1)], ("0",))


def trigonometric(n: int = 10) -> Problem:
    v = x(n)
    total = sympy.Add(*[cos(a) for a in v])
    rows = [n - total + i * (1 - cos(a)) - sin(a) for i, a in enumerate(v, 1)]
    return Problem(26, "trigonometric", v, rows, [1 / n] * n, ("0", "2.79506e-5"))


def brown_almost_linear(n: int = 10) -> Problem:
    v = x(n)
    total = sympy.Add(*v)
    rows = [a + total - (n + 1) for a in v[:-1]] + [sympy.Mul(*v) - 1]
    return Problem(27, "Brown almost-linear", v, rows, [0.5] * n, ("0", "1"))


def _grid(n: int) -> tuple[Any, list[Any]]:
    return Rational(1, n + 1), [Rational(i, n + 1) for i in range(1, n + 1)]


def discrete_boundary_value(n: int = 10) -> Problem:
    v, (h, ts) = x(n), _grid(n)
    padded = [0, *v, 0]
    rows = [
        2 * padded[i] - padded[i - 1] - padded[i + 1] + h**2 * (padded[i] + ts[i - 1] + 1) ** 3 / 2
        for i in range(1, n + 1)
    ]
    return Problem(28, "discrete boundary value", v, rows, [float(t * (t - 1)) for t in ts], ("0",))


def discrete_integral(n: int = 10) -> Problem:
    v, (h, ts) = x(n), _grid(n)
    cubes = [(a + t + 1) ** 3 for a, t in zip(v, ts, strict=True)]
    rows = []
    for i, t in enumerate(ts):
        below = sympy.Add(*[ts[j] * cubes[j] for j in range(i + 1)])
        above = sympy.Add(*[(1 - ts[j]) * cubes[j] for j in range(i + 1, n)])
        rows.append(v[i] + h * ((1 - t) * below + t * above) / 2)
    return Problem(29, "discrete integral equation", v, rows, [float(t * (t - 1)) for t in ts], ("0",))


def broyden_tridiagonal(n: int = 10) -> Problem:
    v = x(n)
    padded = [0, *v, 0]
    inner = range(1, n + 1)
    rows = [(3 - 2 * padded[i]) * padded[i] - padded[i - 1] - 2 * padded[i + 1] + 1 for i in inner]
    return Problem(30, "Broyden tridiagonal", v, rows, [-1] * n, ("0",))


def broyden_banded(n: int = 10) -> Problem:
    v = x(n)
    rows = []
    for i in range(n):
        near = [j for j in range(max(0, i - 5), min(n, i + 2)) if j != i]
        rows.append(v[i] * (2 + 5 * v[i] ** 2) + 1 - sympy.Add(*[v[j] * (1 + v[j]) for j in near]))
    return Problem(31, "Broyden banded", v, rows, [-1] * n, ("0",))


def linear_full_rank(n: int = 5, m: int = 10) -> Problem:
    v = x(n)
    mean = 2 * sympy.Add(*v) / m
    rows = [(v[i] if i < n else 0) - mean - 1 for i in range(m)]
    return Problem(32, "linear, full rank", v, rows, [1] * n, (str(m - n),))


def linear_rank_1(n: int = 5, m: int = 10) -> Problem:
    v = x(n)
    total = sympy.Add(*[j * a for j, a in enumerate(v, 1)])
    minimum = Rational(m * (m - 1), 2 * (2 * m + 1))
    rows = [i * total - 1 for i in range(1, m + 1)]
    return Problem(33, "linear, rank 1", v, rows, [1] * n, (str(minimum),))


def chebyquad(n: int, minimum: str) -> Problem:
    v = x(n)
    t = symbols("t")
    rows = []
    for i in range(1, n + 1):
        shifted = sympy.chebyshevt(i, 2 * t - 1)
        integral = 0 if i % 2 else Rational(-1, i**2 - 1)
        rows.append(sympy.Add(*[shifted.subs(t, a) for a in v]) / n - integral)
    return Problem(35, "Chebyquad", v, rows, [j / (n + 1) for j in range(1, n + 1)], (minimum,))


PROBLEMS = [
    rosenbrock(), freudenstein_roth(), powell_badly_scaled(), brown_badly_scaled(), beale(),
    jennrich_sampson(), helical_valley(), bard(), gaussian(), meyer(), box(), powell_singular(), wood(),
    kowalik_osborne(), brown_dennis(), osborne_1(), biggs(), osborne_2(), watson(6, "2.28767e-3"),
    watson(9, "1.39976e-6"), extended_rosenbrock(), extended_powell_singular(), penalty_1(4, "2.24997e-5"),
    penalty_1(10, "7.08765e-5"), penalty_2(4, "9.37629e-6"), penalty_2(10, "2.93660e-4"),
    variably_dimensioned(), trigonometric(), brown_almost_linear(), discrete_boundary_value(),
    discrete_integral(), broyden_tridiagonal(), broyden_banded(), linear_full_rank(), linear_rank_1(),
    chebyquad(8, "3.51687e-3"),
]  # fmt: skip
