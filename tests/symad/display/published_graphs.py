"""Graphs whose displays are tested, and what is published of them."""

import numpy as np
import sympy as sp

import symad
from symad.functions import scan

x, y, theta = sp.symbols("x y theta_1", real=True)
n, d = sp.symbols("n d", integer=True, positive=True)
A, v = sp.MatrixSymbol("A", n, d), sp.MatrixSymbol("v", d, 1)


def loss(W, b, X, Y):
    return np.mean((np.tanh(X @ W + b) - Y) ** 2)


def recurrence(W, U, xs):
    return np.sum(scan(lambda h, z: np.tanh(W @ h + U @ z), np.zeros(3), xs)[-1] ** 2)


PUBLISHED = {
    r"f\left(\theta_{1}, x, y\right) = x^{2} y \sin{\left(\theta_{1} \right)}": symad.trace(
        x**2 * sp.sin(theta) * y
    ),
    r"\frac{\partial f}{\partial v} = A^{\mathsf{T}} A v": symad.gradient(
        sp.Trace((A * v).T * (A * v)) / 2, v
    ),
    r"\frac{\partial f}{\partial x} = -y^{2} \sin{\left(x y \right)}": symad.gradient(y * sp.cos(x * y), x),
    r"f\left(A\right) = \left(A^{\mathsf{T}} A\right)^{-1} A^{\mathsf{T}}": symad.trace(
        sp.MatMul(sp.Inverse(A.T * A), A.T)
    ),
    r"f\left(A\right) = \left(A^{\mathsf{T}}\right)^{\circ 3}": symad.trace(sp.HadamardPower(A.T, 3)),
    r"f\left(x, y\right) = \begin{cases} \sqrt{x} & \text{if } y < x \\ -\frac{x}{2 y} & "
    r"\text{otherwise} \end{cases}": symad.trace(sp.Piecewise((sp.sqrt(x), x > y), (-x / (2 * y), True))),
    r"f\left(x, y\right) = \begin{bmatrix} x & y \\ 1.5 & -x \end{bmatrix}": symad.trace(
        sp.Matrix([[x, y], [1.5, -x]])
    ),
}

GRAPHS = {
    "scalars": lambda: symad.hessian(sp.sin(x * y) / y, (x, y)),
    "a layer": lambda: symad.value_and_gradient(symad.trace(loss, [(3, 2), (2,), (n, 3), (n, 2)])),
    "a recurrence": lambda: symad.value_and_gradient(symad.trace(recurrence, [(3, 3), (3, 2), (n, 2)])),
    "quadratic": lambda: symad.gradient(symad.trace(lambda u, M: u @ M @ u / 2, [(n,), (n, n)])),
    "no value": lambda: symad.gradient(sp.Piecewise((sp.log(x), x > 0)), x),
    "special": lambda: symad.gradient(sp.besselj(1, x) * sp.Abs(x) ** 3 + sp.Max(x, y), (x, y)),
}
