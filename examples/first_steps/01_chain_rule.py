"""The chain rule as a graph: values, both modes, the four Hessians, and a certificate.

Run: python examples/first_steps/01_chain_rule.py
"""

import sympy as sp

import symad
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)

# A function is traced to a graph of states. f = x + x² uses x twice: a fan-out.
f = symad.trace(x + x**2)
print(f"f(3) = {f(3)}, f'(3) = {symad.gradient(f)(3)}")
print(f.explain(x=3))

# Both modes are graph transformations, so they compose: here are the four Hessians of one function.
g = sp.exp(x * y) * sp.sin(y) + x**3
for mode in ("forward-over-reverse", "reverse-over-forward", "reverse-over-reverse", "forward-over-forward"):
    hessian = symad.hessian(g, (x, y), mode=mode)
    print(f"\n{mode}: {symad.flops(hessian)} operations, {symad.memory(hessian)} bytes live at most")
    print(hessian(0.5, 1.5))

# The check is a proof, not an agreement with finite differences.
print()
print(symad.check(g))

# The derivative as code that reads like code written by hand.
print(lower(symad.value_and_gradient(g, (x, y))).source)
