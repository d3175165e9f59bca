"""statsmodels: conditional likelihoods of grouped data, geometric regression, norms of M-quantiles.

Formulas: the library's documentation; Breslow and Day, "Statistical Methods in Cancer Research" (1980),
section 7.1, for the conditional logit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np
import sympy
from sympy import Abs, Piecewise, Rational, exp, log

from symad.audits.claims import Claim, group
from symad.audits.statsmodels_counts import (
    COUNTS,
    NUMERICAL,
    X,
    _three,
    a,
    b,
    c,
    d,
    likelihood,
    negative_binomial,
)
from symad.audits.statsmodels_links import _scalar, z
from symad.core.arrays import Array

GROUPS_OF = np.array([0, 0, 0, 1, 1, 1])
DESIGN = np.array([[-1.0, 0.5], [0.25, 1.0], [0.5, -0.5], [1.0, 0.0], [-0.5, 1.5], [2.0, -1.0]])
ONES, TWOS = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 2, 2, 0, 1])
NUMBERS = np.array([0, 1, 3, 2, 0, 1])


def _linear(row: np.ndarray, *by: sympy.Symbol) -> sympy.Expr:
    return sympy.Add(*[s * Rational(float(v)) for s, v in zip(by, row, strict=True)])


@group("statsmodels")
def conditional() -> Iterator[Claim]:
    """Logit given the number of ones in each group, Poisson given the sum, multinomial given the counts."""
    from statsmodels.discrete import conditional_models as library

    binary, counts, classes = [], [], []
    for k in (0, 1):
        members = np.flatnonzero(k == GROUPS_OF)
        terms = {i: _linear(DESIGN[i], a, b) for i in members}
        chosen = [i for i in members if ONES[i]]
        every = [exp(sympy.Add(*[terms[i] for i in s])) for s in combinations(members, len(chosen))]
        binary.append(sympy.Add(*[terms[i] for i in chosen]) - log(sympy.Add(*every)))
        total = log(sympy.Add(*map(exp, terms.values())))
        counts += [int(NUMBERS[i]) * (terms[i] - total) for i in members]
        scores = {i: (sympy.Integer(0), _linear(DESIGN[i], a, c), _linear(DESIGN[i], b, d)) for i in members}

        def chance(labels: tuple[int, ...], scores: Any = scores, members: Array = members) -> sympy.Expr:
            return sympy.Add(*[scores[i][label] for i, label in zip(members, labels, strict=True)])

        own = tuple(TWOS[members].tolist())
        classes.append(chance(own) - log(sympy.Add(*[exp(chance(s)) for s in set(permutations(own))])))
    known, options = {"hessian": NUMERICAL}, {"groups": GROUPS_OF}
    logit = library.ConditionalLogit(ONES, DESIGN, **options)
    yield from _three("ConditionalLogit", sympy.Add(*binary), logit, [a, b], known)
    poisson = library.ConditionalPoisson(NUMBERS, DESIGN, **options)
    yield from _three("ConditionalPoisson", sympy.Add(*counts), poisson, [a, b], known)
    multinomial = library.ConditionalMNLogit(TWOS, DESIGN, **options)
    yield from _three("ConditionalMNLogit", sympy.Add(*classes), multinomial, [a, b, c, d], known)


@group("statsmodels")
def geometric() -> Iterator[Claim]:
    """The negative binomial with α = 1."""
    from statsmodels.discrete.discrete_model import NegativeBinomial

    design = np.column_stack([np.ones(len(X)), X])
    model = NegativeBinomial(COUNTS, design, loglike_method="geometric")
    term = negative_binomial(2)
    alpha = sympy.Symbol("alpha", positive=True)
    formula = likelihood(lambda y, mu: term(y, mu).subs(alpha, 1), COUNTS)
    yield from _three("NegativeBinomial(geometric)", formula, model, [a, b])


@group("statsmodels")
def m_quantiles() -> Iterator[Claim]:
    """ρ, ψ and ψ' of Huber's norm and of squares, weighted by q above 0 and by 1 − q below."""
    from statsmodels.robust import norms as library

    t = sympy.Float(1.345)
    bases = {
        "HuberT": (library.HuberT(), Piecewise((z**2 / 2, Abs(z) <= t), (t * Abs(z) - t**2 / 2, True))),
        "LeastSquares": (library.LeastSquares(), z**2 / 2),
    }
    for name, (base, formula) in bases.items():
        norm = library.MQuantileNorm(0.25, base)
        whole = Piecewise((formula * Rational(3, 4), z < 0), (formula / 4, True))
        for method, kind in (("rho", "value"), ("psi", "gradient"), ("psi_deriv", "hessian")):
            yield Claim(
                f"norms.MQuantileNorm({name}).{method}", kind, whole, _scalar(getattr(norm, method)), z
            )
