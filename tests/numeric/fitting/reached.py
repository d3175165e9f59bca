"""Known problems of optimization, and whether a minimum is reached."""

import sympy as sp


def reached(value, problem, start_value):
    """Whether a value is one of the printed minima, to one unit of the last printed digit."""
    for printed in problem.minima:
        if printed == "0":
            found = value <= 1e-12 * start_value
        else:
            digits = printed.partition("e")[0].partition("/")[0].partition(".")[2]
            exponent = int(printed.partition("e")[2] or 0)
            unit = 1e-6 if "/" in printed or not digits else 10.0 ** (exponent - len(digits))
            found = abs(value - float(sp.Rational(printed))) <= unit * (1 + 1e-9)
        if found:
            return True
    return False
