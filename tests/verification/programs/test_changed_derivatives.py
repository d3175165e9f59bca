"""Any right derivative, given as a program, is measured; doubled or changed by 1e-6 it is refuted.

The functions are the models of the tour (which has a stage for every kind of model) and the functions of
other libraries in the audits.
"""

import importlib

import numpy as np
import pytest

import symad
from symad.audits.claims import GROUPS
from symad.audits.running import MODULES, SEED
from symad.cli.tour.stages import all_stages
from symad.errors import SymadError
from symad.numeric import lower
from symad.tracing import as_graph

pytestmark = pytest.mark.thorough

FACTORS = (2, 1 + 1e-6)

SAMPLED = (
    "attention",
    "diffusion",
    "gaussian process",
    "low rank",
    "temporal convolution",
    "arm",
    "embedding",
)
LARGE = {"brusselator": "its Jacobian has 1024 elements; the grid is the smallest there is"}


def scaled(returned, factor):
    """All numbers of a result, times a factor."""
    if isinstance(returned, (tuple, list)):
        return [scaled(part, factor) for part in returned]
    return np.asarray(returned) * factor


def moved(returned, step):
    """All numbers of a result, plus a number."""
    if isinstance(returned, (tuple, list)):
        return [moved(part, step) for part in returned]
    return np.asarray(returned) + step


def derivative_of(name):
    """A stage's small model, what to differentiate by, the kind of derivative, and lowered code for it."""
    model = all_stages()[name].model()
    f = model.graph(name) if model.check is None else as_graph(model.check)
    wrt = model.wrt if model.check is None else None
    scalar = len(f.output_nodes) == 1 and f.output_nodes[0].shape == ()
    kind = "gradient" if scalar else "jacobian"
    return f, wrt, kind, lower(getattr(symad, kind)(f, wrt))


def check_stage(name):
    f, wrt, kind, kernel = derivative_of(name)

    def verdict(change):
        return symad.verify(f, wrt, **{kind: lambda *v: change(kernel(*v))}, hostile=False)

    right = verdict(lambda found: found)
    assert right.status == "measured", str(right)
    for factor in FACTORS:
        wrong = verdict(lambda found, by=factor: scaled(found, by))
        assert wrong.status == "refuted", (factor, str(wrong))
    counts = [e for e in right.entries if e.measured]
    assert all(e.measured["would have seen"] <= 1e-6 for e in counts)


@pytest.mark.parametrize("name", SAMPLED)
def test_models(name):
    check_stage(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in all_stages() if n not in SAMPLED and n not in LARGE])
def test_all_models(name):
    check_stage(name)


def claims(package):
    """The claims of an audit that can be made with what is installed."""
    for module in MODULES[package]:
        try:
            importlib.import_module(f"symad.audits.{module}")
        except ImportError:
            continue
    for made in GROUPS.get(package, []):
        try:
            yield from made()
        except ImportError:
            continue


def check_claim(claim):
    """Whether the claim is about a right derivative; if so, it is refuted when it is changed."""
    options = {"hostile": False, "seed": SEED, **claim.options}
    try:
        right = symad.verify(claim.formula, claim.wrt, **{claim.kind: claim.function}, **options)
    except SymadError:
        return False
    if right.status != "measured":  # formulas are proved or tested: nothing is called there
        return False
    single = "32" in str(right.entries[0].claim)
    sizes: list[float] = [0.0]

    def noted(returned):
        parts = returned if isinstance(returned, (tuple, list)) else [returned]
        sizes.extend(float(np.max(np.abs(np.asarray(part)), initial=0)) for part in parts)
        return returned

    def verdict(change):
        function = {claim.kind: lambda *v: change(noted(claim.function(*v)))}
        return symad.verify(claim.formula, claim.wrt, **function, **options)

    for factor in FACTORS:
        wrong = verdict(lambda found, by=factor: scaled(found, by))
        if max(sizes) < 1e-12:  # 0 but for rounding, as a second derivative of |x|: moved instead
            wrong = verdict(lambda found, by=factor: moved(found, by - 1))
        assert wrong.status == "refuted" or (single and factor != 2), (claim.target, str(wrong))
    return True


@pytest.mark.parametrize("package", ["scipy", "statsmodels"])
def test_audits(package):
    pytest.importorskip(package)
    made = list(claims(package))
    assert sum(map(check_claim, made[:: max(len(made) // 6, 1)])) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("package", list(MODULES))
def test_all_audits(package):
    pytest.importorskip({"scikit-learn": "sklearn"}.get(package, package))
    assert sum(map(check_claim, claims(package))) >= 2
