"""Programs against mathematics: a function of PyTorch, and a published gradient formula.

The gradient of a focal loss by PyTorch's own reverse mode, and the published formula (Lin et al., "Focal Loss
for Dense Object Detection", 2017, appendix B), are both compared with the derivative of the definition. The
formula is mathematics, and is proved or tested as an identity. The program is measured against 50-digit
values, in ulps, at ordinary and at hostile points. Then a mistake is put into each. Without PyTorch the same
is shown with NumPy.
Run: python examples/certificates/31_verify_torch_function.py
"""

import importlib.util

import numpy as np
import sympy as sp

import symad

x = sp.symbols("x", real=True)
GAMMA = 2

p = 1 / (1 + sp.exp(-x))  # the probability of the right class
focal = -((1 - p) ** GAMMA) * sp.log(p)
printed = (1 - p) ** GAMMA * (GAMMA * p * sp.log(p) + p - 1)
misprinted = (1 - p) ** GAMMA * (GAMMA * p * sp.log(p) - p + 1)


def by_torch(value):
    """The gradient by PyTorch, in numerically stable forms."""
    import torch

    score = torch.as_tensor(value, dtype=torch.float64).requires_grad_()
    loss = -(torch.sigmoid(-score) ** GAMMA) * torch.nn.functional.logsigmoid(score)
    loss.backward()
    return score.grad


def by_numpy(value):
    """The published formula, in numerically stable forms."""
    log_p, rest = -np.logaddexp(0.0, -value), 1 / (1 + np.exp(value))
    return rest**GAMMA * (GAMMA * np.exp(log_p) * log_p - rest)


def halved(gradient):
    """A program in which a factor is missing."""
    return lambda value: gradient(value) / 2


def main() -> None:
    """Certify formulas, then programs."""
    for name, formula in (("as printed", printed), ("with a sign turned", misprinted)):
        certificate = symad.verify(focal, x, gradient=formula, seed=1)
        print(f"the formula {name}: {certificate.status}")
        if certificate.status == "refuted":
            print(f"  {certificate.witness}")
    assert certificate.status == "refuted"

    has_torch = importlib.util.find_spec("torch") is not None
    program = by_torch if has_torch else by_numpy
    certificate = symad.verify(focal, x, gradient=program)
    print(f"\nthe program of {'PyTorch' if has_torch else 'NumPy'}: {certificate.status}")
    for entry in certificate.entries:
        print(f"  {entry.name}: {entry.claim}")
    assert certificate.status == "measured"
    for loss in certificate.losses:
        print(f"  {loss.digits} digits lost at x = {loss.place}")
    wrong = symad.verify(focal, x, gradient=halved(program))
    print(f"the program with a factor lost: {wrong.status}")
    print(f"  {wrong.entries[0].reason}")
    assert wrong.status == "refuted"


if __name__ == "__main__":
    main()
