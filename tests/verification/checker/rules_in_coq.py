"""The rules of the checker, each with the name of its lemma in Coq and the lemma's side condition.

Derivatives are lemmas of ``SymadFunctions.v``, definitions and relations are lemmas of ``SymadRelations.v``.
Rules of arrays, matrices and indices are not in Coq; each has a numeric test.
"""

from __future__ import annotations

DERIVATIVES: dict[str, tuple[str, str]] = {
    "exp": ("d_exp", ""), "log": ("d_log", "0 < x"), "sin": ("d_sin", ""), "cos": ("d_cos", ""),
    "tanh": ("d_tanh", ""), "asin": ("d_asin", "-1 < x < 1"), "atan": ("d_atan", ""),
    "asinh": ("d_asinh", ""), "abs": ("d_abs", "x <> 0"), "sign": ("d_sign", "x <> 0"),
    "sigmoid": ("d_sigmoid", ""), "softplus": ("d_softplus", ""), "logcosh": ("d_logcosh", ""),
    "erf": ("d_erf", ""), "pow": ("d_power", "0 < u t"), "max": ("d_max", "u t - v t <> 0"),
    "min": ("d_min", "u t - v t <> 0"), "less": ("d_less", "v t - u t <> 0"),
    "equal": ("d_equal", "v t - u t <> 0"),
    "floor": ("d_floor", "x <> floor x"),
    "ceiling": ("d_ceiling", "x <> ceiling x"),
}  # fmt: skip
"""∂f/∂x of the checker's table of functions."""

DEFINITIONS: dict[str, tuple[str, str]] = {
    "tan": ("c_tan", ""), "cot": ("c_cot", ""), "sec": ("c_sec", ""), "csc": ("c_csc", ""),
    "sinh": ("c_sinh", ""), "cosh": ("c_cosh", ""), "coth": ("c_coth", "a <> 0"), "sech": ("c_sech", ""),
    "csch": ("c_csch", "a <> 0"), "acos": ("c_acos", "-1 <= a <= 1"), "erfc": ("c_erfc", ""),
    "acosh": ("c_acosh", "1 <= a"), "atanh": ("c_atanh", ""), "log1p": ("c_log1p", ""),
    "expm1": ("c_expm1", ""), "exp2": ("c_exp2", ""), "log2": ("c_log2", ""), "log10": ("c_log10", ""),
    "hypot": ("c_hypot", ""), "silu": ("c_silu", ""), "logaddexp": ("c_logaddexp", ""),
    "tanh": ("c_tanh", ""), "asinh": ("c_asinh", ""), "logcosh": ("c_logcosh", ""),
    "sigmoid": ("c_sigmoid", ""), "softplus": ("c_softplus", ""), "max": ("c_max", ""), "min": ("c_min", ""),
    "less": ("c_less", "b - a <> 0"), "equal": ("c_equal", "b - a <> 0"), "sign": ("c_sign", "a <> 0"),
    "Heaviside": ("c_heaviside", ""), "pow": ("c_pow", "0 < a"), "select": ("c_select", "c * c = c"),
    "sqrt": ("c_sqrt", "0 < a"),
}  # fmt: skip
"""f = its definition, applied always or by a step of a proof."""

RELATIONS: dict[str, tuple[str, str]] = {
    "sum: exp(a + b) = exp a exp b": ("r_exp_sum", ""),
    "sum: exp(k a) = exp(a)^k": ("r_exp_multiple", ""),
    "sum: exp(−a) = 1/exp a": ("r_exp_opposite", ""),
    "sum: exp log u = u": ("r_exp_log", "0 < a"),
    "sum: sin(a + b)": ("r_sin_sum", ""),
    "sum: cos(a + b)": ("r_cos_sum", ""),
    "sum: sin(−a) = −sin a": ("r_sin_opposite", ""),
    "sum: cos(−a) = cos a": ("r_cos_opposite", ""),
    "sum: sin² = 1 − cos²": ("r_pythagoras", ""),
    "factors: log(u v) = log u + log v": ("r_log_product", "0 < a -> 0 < b"),
    "factors: log(u^k) = k log u": ("r_log_power", "0 < a"),
    "factors: log(u/v) = log u − log v": ("r_log_quotient", "0 < a -> 0 < b"),
    "factors: log exp a = a": ("r_log_exp", ""),
    "factors: √(u v) = √u √v": ("r_sqrt_product", "0 <= a -> 0 <= b"),
    "factors: √(u/v) = √u/√v": ("r_sqrt_quotient", "0 <= a -> 0 < b"),
    "factors: (√u)² = u": ("r_sqrt_square", "0 <= a"),
    "factors: √(u²) = |u|": ("r_sqrt_of_square", ""),
    "factors: |u v| = |u| |v|": ("c_abs_product", ""),
    "factors: |u|² = u²": ("r_abs_square", ""),
    "indicators: c² = c": ("c_indicator", ""),
    "indicators: [a < b] = 1 − [b < a]": ("r_less_turned", "a - b <> 0"),
    "indicators: [a = max(a, b)] = 1 − [a < b]": ("r_equal_max", ""),
    "indicators: [a = min(a, b)] = 1 − [b < a]": ("r_equal_min", ""),
    "indicators: [a = max(u, b)] for a ≤ u": ("r_equal_max_of_max", "a <= u"),
    "indicators: [a = min(u, b)] for a ≥ u": ("r_equal_min_of_min", "u <= a"),
    "parity: tanh": ("c_tanh_odd", ""),
    "parity: sigmoid(−a) = 1 − sigmoid a": ("r_sigmoid_opposite", ""),
    "parity: logcosh": ("c_logcosh_even", ""),
    "positive: π, exp, sigmoid, softplus": ("c_positive", ""),
}
"""The relations that the steps of a proof use, and the facts known of generators."""

_SPECIAL = "Coquelicot has no definition of it"
NOT_IN_COQ: dict[str, str] = {
    "gamma": _SPECIAL, "loggamma": _SPECIAL, "polygamma": _SPECIAL, "digamma": _SPECIAL,
    "atan2": "its branches meet along half lines", "sinc": "its value at 0 is a limit",
    "relu": "max(x, 0)", "gelu": "a formula of erf", "real": "all numbers of Coq are real",
}  # fmt: skip
"""Entries of the tables without a lemma, and why; the rules of ops and of networks are not in Coq either."""

_MATRICES = "Coquelicot has no inverses of matrices of any size"
MATRICES_NOT_IN_COQ: dict[str, str] = {"inverse": _MATRICES, "det": _MATRICES, "cholesky": _MATRICES}
"""Functions of matrices in the checker; the tests compare their derivatives with those of mpmath's values."""
