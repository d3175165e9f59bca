"""statsmodels: likelihoods of discrete, count and conditional models, with scores and Hessians, on few data.

Formulas: the library's documentation; Cameron and Trivedi, "Regression Analysis of Count Data" (2013),
sections 3.2, 3.3 (negative binomial, generalized Poisson), 4.3 (truncation), 4.6 (inflation); Breslow and
Day, "Statistical Methods in Cancer Research" (1980), section 7.1, for the conditional logit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np
import sympy
from sympy import Abs, Piecewise, Rational, erf, exp, factorial, log, loggamma, sqrt

from symad.audits.claims import Claim, group
from symad.audits.statsmodels_links import _scalar, z
from symad.core.arrays import Array, ArrayLike

X = np.array([-1.0, -0.5, 0.25, 1.0, 2.0])
COUNTS = np.array([0, 1, 0, 2, 3])
POSITIVE = np.array([1, 1, 2, 1, 3])
EXPOSURES = (2, 3, 4, 3, 2)
CHOICES = np.array([0, 1, 0, 1, 1])
CLASSES = np.array([0, 1, 2, 1, 0])

a, b = sympy.symbols("a b", real=True)
alpha = sympy.Symbol("alpha", positive=True)
gamma = sympy.Symbol("gamma", real=True)

c, d, log_alpha = sympy.symbols("c d log_alpha", real=True)

REALISTIC: dict[sympy.Symbol, tuple[sympy.Basic, sympy.Basic]] = {
    **{s: (s > -2, s < 2) for s in (a, b, c, d, gamma)},
    alpha: (alpha > sympy.Rational(1, 4), alpha < 3),
    log_alpha: (log_alpha > -1, log_alpha < 1),
}
"""Parameters of the size that fits have; for much larger ones the libraries clip and lose digits."""

Term = Callable[[int, sympy.Expr], sympy.Expr]

INFLATED_KNOWN = (
    "the block of inflation and mean parameters is overwritten with zeros, and the formula under it lacks a "
    "factor (statsmodels 0.15.0)"
)
TRANSFORMED_KNOWN = "score**2 where the chain rule has score*alpha (known upstream since 2021)"
CONSTRUCTED_KNOWN = (
    "before fit() the last parameter is log α in value and score, and the Hessian is that by α "
    "(known upstream since 2014, statsmodels issue 1967)"
)
OLS_KNOWN = "the term X'X/ssr lacks a factor 2 (statsmodels issue 9469)"
EXPOSURE_KNOWN = "the logarithm of the exposure is taken twice (statsmodels 0.15.0)"
NUMERICAL = "made by numerical differentiation, which is accurate to about 1e-6"
TRUNCATED_KNOWN = "the parameterization is not passed on to the model without truncation (statsmodels 0.15.0)"


def rate(x: float) -> sympy.Expr:
    """exp(a + b x)."""
    return exp(a + b * sympy.Rational(x))


def poisson(y: int, mu: sympy.Expr) -> sympy.Expr:
    """y log μ − μ − log y!."""
    return y * log(mu) - mu - log(factorial(y))


def negative_binomial(power: int) -> Term:
    """NB1 and NB2: variance μ + α μ^power."""

    def term(y: int, mu: sympy.Expr) -> sympy.Expr:
        size = mu ** (2 - power) / alpha
        gammas = loggamma(y + size) - loggamma(size) - log(factorial(y))
        return gammas + size * log(size / (size + mu)) + y * log(mu / (size + mu))

    return term


def generalized_poisson(power: int) -> Term:
    """GP-1 and GP-2: with t = α μ^(power − 1), log μ + (y − 1) log(μ + t y) − y log(1 + t) − ..."""

    def term(y: int, mu: sympy.Expr) -> sympy.Expr:
        t = alpha * mu ** (power - 1)
        whole = mu + t * y
        return log(mu) + (y - 1) * log(whole) - y * log(1 + t) - log(factorial(y)) - whole / (1 + t)

    return term


def truncated(term: Term) -> Term:
    """The distribution under the condition that the count is not 0."""

    def positive(y: int, mu: sympy.Expr) -> sympy.Expr:
        return term(y, mu) - log(1 - exp(term(0, mu)))

    return positive


def inflated(term: Term) -> Term:
    """0 with probability w = 1/(1 + e^−γ), else a count."""
    w = 1 / (1 + exp(-gamma))

    def mixed(y: int, mu: sympy.Expr) -> sympy.Expr:
        return log(w + (1 - w) * exp(term(0, mu))) if y == 0 else log(1 - w) + term(y, mu)

    return mixed


def likelihood(term: Term, counts: np.ndarray) -> sympy.Expr:
    """The sum over the data."""
    return sympy.Add(*[term(int(y), rate(x)) for y, x in zip(counts, X, strict=True)])


def _three(
    name: str,
    formula: sympy.Expr,
    model: Any,
    order: Sequence[sympy.Symbol],
    known: dict[str, str] | None = None,
) -> Iterator[Claim]:
    """Log-likelihood, score and Hessian of a model whose parameters are in this order."""
    where = sympy.And(*[condition for s in order for condition in REALISTIC[s]])
    options = {"where": where, "inputs": list(order)}
    methods = {"loglike": "value", "score": "gradient", "hessian": "hessian"}
    for method, kind in methods.items():
        function = _of_numbers(getattr(model, method), kind)
        yield Claim(
            f"{name}.{method}", kind, formula, function, list(order), options,
            source="log-likelihood", known=(known or {}).get(kind, ""),
        )  # fmt: skip


def _of_numbers(method: Callable[..., Array], kind: str) -> Callable[..., ArrayLike]:
    """A method of a vector of parameters as a function of numbers."""

    def call(*parameters: float) -> ArrayLike:
        found = method(np.array([float(v) for v in parameters]))
        return tuple(np.ravel(found)) if kind == "gradient" else found

    return call


def _design() -> Array:
    return np.column_stack([np.ones(len(X)), X])


@group("statsmodels")
def choices() -> Iterator[Claim]:
    """Logit, Probit and the multinomial logit."""
    from statsmodels.discrete import discrete_model as library

    def bernoulli(probability: Callable[[sympy.Expr], sympy.Expr]) -> sympy.Expr:
        signs = [(2 * int(y) - 1) * (a + b * sympy.Rational(x)) for y, x in zip(CHOICES, X, strict=True)]
        return sympy.Add(*[log(probability(s)) for s in signs])

    logit = bernoulli(lambda s: 1 / (1 + exp(-s)))
    probit = bernoulli(lambda s: (1 + erf(s / sqrt(2))) / 2)
    yield from _three("Logit", logit, library.Logit(CHOICES, _design()), [a, b])
    yield from _three("Probit", probit, library.Probit(CHOICES, _design()), [a, b])

    terms = []
    for y, x in zip(CLASSES, X, strict=True):
        scores = [sympy.Integer(0), a + b * sympy.Rational(x), c + d * sympy.Rational(x)]
        terms.append(scores[int(y)] - log(sympy.Add(*map(exp, scores))))
    multinomial = library.MNLogit(CLASSES, _design())
    yield from _three("MNLogit", sympy.Add(*terms), multinomial, [a, b, c, d])


@group("statsmodels")
def least_squares() -> Iterator[Claim]:
    """Ordinary least squares, the variance at its maximum: −(n/2)(log(2π ssr/n) + 1)."""
    from statsmodels.regression.linear_model import OLS

    count = len(X)
    ssr = sympy.Add(*[(int(y) - a - b * sympy.Rational(x)) ** 2 for y, x in zip(COUNTS, X, strict=True)])
    formula = -sympy.Rational(count, 2) * (log(2 * sympy.pi * ssr / count) + 1)
    known = {"hessian": OLS_KNOWN}
    yield from _three("OLS", formula, OLS(COUNTS.astype(float), _design()), [a, b], known)


@group("statsmodels")
def counts() -> Iterator[Claim]:
    """Poisson, negative binomial and generalized Poisson regression."""
    from statsmodels.discrete import discrete_model as library

    design, both = _design(), {"gradient": TRANSFORMED_KNOWN, "hessian": TRANSFORMED_KNOWN}
    yield from _three("Poisson", likelihood(poisson, COUNTS), library.Poisson(COUNTS, design), [a, b])
    for power in (1, 2):
        formula = likelihood(negative_binomial(power), COUNTS)
        model = library.NegativeBinomial(COUNTS, design, loglike_method=f"nb{power}")
        model._transparams = False  # else its last parameter is log α
        yield from _three(f"NegativeBinomial(nb{power})", formula, model, [a, b, alpha])
        model = library.NegativeBinomialP(COUNTS, design, p=power)
        yield from _three(f"NegativeBinomialP(p={power})", formula, model, [a, b, alpha])
        formula = likelihood(generalized_poisson(power), COUNTS)
        model = library.GeneralizedPoisson(COUNTS, design, p=power)
        yield from _three(f"GeneralizedPoisson(p={power})", formula, model, [a, b, alpha])
    terms = {"NegativeBinomialP": negative_binomial(2), "GeneralizedPoisson": generalized_poisson(1)}
    for name, term in terms.items():
        model = getattr(library, name)(COUNTS, design)
        model._transparams = True
        formula = likelihood(term, COUNTS).subs(alpha, exp(log_alpha))
        yield from _three(f"{name}(use_transparams)", formula, model, [a, b, log_alpha], both)
    model = library.NegativeBinomial(COUNTS, design)
    formula = likelihood(negative_binomial(2), COUNTS).subs(alpha, exp(log_alpha))
    known = {"hessian": CONSTRUCTED_KNOWN}
    yield from _three("NegativeBinomial(as constructed)", formula, model, [a, b, log_alpha], known)


@group("statsmodels")
def inflated_counts() -> Iterator[Claim]:
    """Zero-inflated models with a constant inflation."""
    from statsmodels.discrete import count_model as library

    for name, term, extra in (
        ("ZeroInflatedPoisson", poisson, []),
        ("ZeroInflatedGeneralizedPoisson", generalized_poisson(2), [alpha]),
        ("ZeroInflatedNegativeBinomialP", negative_binomial(2), [alpha]),
    ):
        model = getattr(library, name)(COUNTS, _design())
        known = {"hessian": NUMERICAL if extra else INFLATED_KNOWN}
        yield from _three(name, likelihood(inflated(term), COUNTS), model, [gamma, a, b, *extra], known)


@group("statsmodels")
def truncated_counts() -> Iterator[Claim]:
    """Counts that are known to be positive."""
    from statsmodels.discrete import truncated_model as library

    known = {"gradient": TRUNCATED_KNOWN, "hessian": f"{TRUNCATED_KNOWN}; {NUMERICAL}"}
    model = library.TruncatedLFPoisson(POSITIVE, _design())
    formula = likelihood(truncated(poisson), POSITIVE)
    yield from _three("TruncatedLFPoisson", formula, model, [a, b], {"hessian": NUMERICAL})
    model = library.TruncatedLFPoisson(POSITIVE, _design(), exposure=np.array(EXPOSURES, dtype=float))
    terms = [truncated(poisson)(int(y), t * rate(x)) for y, t, x in zip(POSITIVE, EXPOSURES, X, strict=True)]
    known_value = {"value": EXPOSURE_KNOWN, "gradient": EXPOSURE_KNOWN, "hessian": EXPOSURE_KNOWN}
    yield from _three("TruncatedLFPoisson(exposure)", sympy.Add(*terms), model, [a, b], known_value)
    for power in (1, 2):
        model = library.TruncatedLFNegativeBinomialP(POSITIVE, _design(), p=power)
        formula = likelihood(truncated(negative_binomial(power)), POSITIVE)
        yield from _three(f"TruncatedLFNegativeBinomialP(p={power})", formula, model, [a, b, alpha], known)
        model = library.TruncatedLFGeneralizedPoisson(POSITIVE, _design(), p=power)
        formula = likelihood(truncated(generalized_poisson(power)), POSITIVE)
        yield from _three(f"TruncatedLFGeneralizedPoisson(p={power})", formula, model, [a, b, alpha], known)


@group("statsmodels")
def hurdles() -> Iterator[Claim]:
    """One Poisson model decides if a count is 0; another, without 0, gives positive counts (section 4.5)."""
    from statsmodels.discrete import truncated_model as library

    terms = []
    for y, x in zip(COUNTS, X, strict=True):
        zero, main = rate(x), exp(c + d * sympy.Rational(x))
        terms.append(-zero if y == 0 else log(1 - exp(-zero)) + truncated(poisson)(int(y), main))
    model = library.HurdleCountModel(COUNTS, _design())
    yield from _three("HurdleCountModel", sympy.Add(*terms), model, [a, b, c, d], {"hessian": NUMERICAL})


@group("statsmodels")
def ordered_choices() -> Iterator[Claim]:
    """P(y ≤ k) = F(t_k − b x) with the thresholds t_0 = γ and t_1 = γ + e^d (McCullagh 1980)."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    distributions: dict[str, Callable[[sympy.Expr], sympy.Expr]] = {
        "logit": lambda z: 1 / (1 + exp(-z)),
        "probit": lambda z: (1 + erf(z / sqrt(2))) / 2,
    }
    known = {"gradient": NUMERICAL, "hessian": NUMERICAL}
    for name, below in distributions.items():
        terms = []
        for y, x in zip(CLASSES, X, strict=True):
            low, high = (below(t - b * sympy.Rational(x)) for t in (gamma, gamma + exp(d)))
            terms.append(log((low, high - low, 1 - high)[int(y)]))
        model = OrderedModel(CLASSES, X[:, None], distr=name)
        yield from _three(f"OrderedModel({name})", sympy.Add(*terms), model, [b, gamma, d], known)


# ---- statsmodels ---------------------------------------------------------------------------------


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
