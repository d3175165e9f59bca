"""The classical examples of the literature on bounds of rounding errors, with their boxes.

Source: Solovyev, Baranowski, Briggs, Jacobsen, Rakamaric, Gopalakrishnan, "Rigorous estimation of
floating-point round-off errors with symbolic Taylor expansions", ACM TOPLAS 41 (2018), table 2.
"""

import sympy

D = sympy.Rational
x1, x2, x3, x4, x5, x6 = X = sympy.symbols("x1:7", real=True)
u, v, w, r, t, volume = sympy.symbols("u v w r T V", real=True)


def doppler(speeds, sources, warmths):
    sound = D("331.4") + D("0.6") * t
    return -sound * v / (sound + u) ** 2, {u: speeds, v: sources, t: warmths}


def jet_engine():
    s = (3 * x1 * x1 + 2 * x2 - x1) / (x1 * x1 + 1)
    inner = 2 * x1 * s * (s - 3) + x1 * x1 * (4 * s - 6)
    last = 3 * ((3 * x1 * x1 - 2 * x2 - x1) / (x1 * x1 + 1))
    return x1 + inner * (x1 * x1 + 1) + 3 * x1 * x1 * s + x1**3 + x1 + last, {x1: (-5, 5), x2: (-20, 5)}


def carbon_gas():
    a, b, k = D("0.401"), D("42.7e-6"), D("1.3806503e-23")
    pressure = 35000000 + a * (1000 / volume) ** 2
    return pressure * (volume - 1000 * b) - k * 1000 * 300, {volume: (0.1, 0.5)}


BODY = {x1: (-15, 15), x2: (-15, 15), x3: (-15, 15)}
WIND = {v: (-4.5, -0.3), w: (0.4, 0.9), r: (3.8, 7.8)}
BLADE = w * w * r * r / (1 - v)
SIDES = dict.fromkeys(X, (4, 6.36))
CLASSICAL = {
    "carbonGas": carbon_gas(),
    "doppler1": doppler((-100, 100), (20, 20000), (-30, 50)),
    "doppler2": doppler((-125, 125), (15, 25000), (-40, 60)),
    "doppler3": doppler((-30, 120), (320, 20300), (-50, 30)),
    "jetEngine": jet_engine(),
    "rigidBody1": (-x1 * x2 - 2 * x2 * x3 - x1 - x3, BODY),
    "rigidBody2": (2 * x1 * x2 * x3 + 3 * x3 * x3 - x2 * x1 * x2 * x3 + 3 * x3 * x3 - x2, BODY),
    "predatorPrey": (4 * x1 * x1 / (1 + (x1 / D("1.11")) ** 2), {x1: (0.1, 0.3)}),
    "verhulst": (4 * x1 / (1 + x1 / D("1.11")), {x1: (0.1, 0.3)}),
    "turbine1": (3 + 2 / (r * r) - D("0.125") * (3 - 2 * v) * BLADE - D("4.5"), WIND),
    "turbine2": (6 * v - D("0.5") * v * BLADE - D("2.5"), WIND),
    "turbine3": (3 - 2 / (r * r) - D("0.125") * (1 + 2 * v) * BLADE - D("0.5"), WIND),
    "sine": (x1 - x1**3 / 6 + x1**5 / 120 - x1**7 / 5040, {x1: (-1.57079632679, 1.57079632679)}),
    "sqroot": (1 + x1 / 2 - x1**2 / 8 + x1**3 / 16 - 5 * x1**4 / 128, {x1: (0, 1)}),
    "sineOrder3": (D("0.954929658551372") * x1 - D("0.12900613773279798") * x1**3, {x1: (-2, 2)}),
    "kepler0": (x2 * x5 + x3 * x6 - x2 * x3 - x5 * x6 + x1 * (-x1 + x2 + x3 - x4 + x5 + x6), SIDES),
    "kepler1": (
        x1 * x4 * (-x1 + x2 + x3 - x4) + x2 * (x1 - x2 + x3 + x4) + x3 * (x1 + x2 - x3 + x4)
        - x2 * x3 * x4 - x1 * x3 - x1 * x2 - x4,
        {x: (4, 6.36) for x in X[:4]},
    ),
    "kepler2": (
        x1 * x4 * (-x1 + x2 + x3 - x4 + x5 + x6) + x2 * x5 * (x1 - x2 + x3 + x4 - x5 + x6)
        + x3 * x6 * (x1 + x2 - x3 + x4 + x5 - x6) - x2 * x3 * x4 - x1 * x3 * x5 - x1 * x2 * x6 - x4 * x5 * x6,
        SIDES,
    ),
}  # fmt: skip
