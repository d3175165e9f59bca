"""Taylor mode: many derivatives along a line at once, and Laplacians without Hessians.

1. Growth of graphs with the order: nested pushforwards double in size, `symad.jet` adds a row to a triangle.
2. Kepler's equation E − e sin E = M by Householder's methods: with g = 1/f, a step E ← E + d g⁽ᵈ⁻¹⁾/g⁽ᵈ⁾
   multiplies the number of correct digits by d + 1.
3. Quantum mechanics: ψ(x, y) = e^{−2|x|−2|y|} e^{|x−y|/2} for helium's two electrons at x and y. The local
   energy −Δψ/(2ψ) + V is averaged over |ψ|², which bounds the energy, −2.9037, from above. Δψ is computed
   from six second derivatives along axes. Sources: Householder (1970), section 4.4; Hylleraas (1929);
   Griewank & Walther (2008), chapter 13.
Run: python examples/derivatives/43_taylor_mode.py
"""

from itertools import pairwise

import mpmath
import numpy as np
import sympy as sp

import symad
from symad.numeric import lower


def growth():
    """Nodes of sin(x) exp(−x²) by nesting and by Taylor mode."""
    x = sp.Symbol("x", real=True)
    f = sp.sin(x) * sp.exp(-(x**2))
    nested = symad.trace(f)
    for order in range(1, 10):
        nested = symad.gradient(nested, wrt=["x"])
        print(f"order {order}: {len(nested.nodes)} nodes nested, {len(symad.jet(f, order).nodes)} by jet")
    print(f"order 20: {len(symad.jet(f, 20).nodes)} by jet")


def kepler(eccentricity="0.5", anomaly="0.8"):
    """Correct digits of E after each step, for derivatives up to d = 1 (Newton), 2 (Halley), 4 and 7."""
    E, e, M = sp.symbols("E e M", real=True)
    counts = {}
    with mpmath.workdps(7000):
        e_, M_ = mpmath.mpf(eccentricity), mpmath.mpf(anomaly)
        exact = mpmath.findroot(lambda v: v - e_ * mpmath.sin(v) - M_, 1.3)
        for d in (1, 2, 4, 7):
            series = symad.jet(1 / (E - e * sp.sin(E) - M), d, wrt=E)
            at, digits = mpmath.mpf("1.2"), []
            for _ in range(4):
                *_, before, last = series(E=at, e=e_, M=M_, E_dot=mpmath.mpf(1))
                at += d * before / last
                digits.append(int(-mpmath.log10(abs(at - exact))))
            counts[d] = digits
            print(f"Kepler's equation, {d} derivatives: {digits} digits after 1, 2, 3, 4 steps")
    return counts


def helium(walkers=4000, steps=200):
    """The variational energy by Metropolis sampling, in hartree."""

    def psi(r):
        x, y = r[:3], r[3:]
        apart = np.sqrt(((x - y) ** 2).sum())
        return np.exp(-2 * np.sqrt((x * x).sum()) - 2 * np.sqrt((y * y).sum()) + apart / 2)

    graph = symad.trace(psi, [(6,)])
    directions = symad.vmap(symad.jet(graph, 2), (None, 0))  # one direction per row
    laplacian = symad.trace(lambda r: directions(r, np.eye(6))[2].sum(), [(6,)])
    curve, value = (lower(symad.vmap(f)) for f in (laplacian, graph))
    rng = np.random.default_rng(1)
    r = rng.normal(size=(walkers, 6))
    for _ in range(steps):
        new = r + 0.4 * rng.normal(size=r.shape)
        r = np.where((rng.uniform(size=walkers) < (value(new) / value(r)) ** 2)[:, None], new, r)
    x, y = r[:, :3], r[:, 3:]
    near = [np.sqrt((v * v).sum(1)) for v in (x, y, x - y)]
    energies = -curve(r) / (2 * value(r)) - 2 / near[0] - 2 / near[1] + 1 / near[2]
    mean, error = energies.mean(), energies.std() / np.sqrt(walkers)
    print(f"helium: {mean:.3f} ± {error:.3f} hartree; the exact ground state has -2.904")
    return mean, error


def main() -> None:
    """Run all three parts."""
    growth()
    for d, digits in kepler().items():  # each step multiplies the digits by d + 1
        assert all(abs(b / a - (d + 1)) < 0.5 * (d + 1) for a, b in pairwise(digits[1:]))
    mean, error = helium()
    assert -2.904 - 4 * error < mean < -2.75


if __name__ == "__main__":
    main()
