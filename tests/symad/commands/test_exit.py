"""Python exits without a message, whatever is alive: graphs of undefined functions, threads, kernels."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.thorough

USERS_FUNCTION = """
    import sympy as sp, numpy as np, symad
    scaled = sp.Function("scaled", real=True)
    def f(x):
        symad.register_function(scaled, lambda u: u * u, [lambda u: x * u])
        return symad.gradient(symad.trace(lambda v: scaled(v), [()]))(x)
    g = symad.gradient(symad.trace(f, [()]))
    print(g(3.0))
"""

DEEP_THREADED_AND_COMPILED = """
    import atexit, threading, time
    import sympy as sp, numpy as np, symad
    from symad.numeric import lower
    x = sp.Symbol("x", real=True)

    def chain(z):
        for _ in range(3000):
            z = np.sin(z)
        return z

    deep = symad.gradient(symad.trace(chain, [()]))
    kernels = [lower(symad.gradient(sp.sin(x) * x), backend=b) for b in ("numpy", "c", "runs")]
    unknown = symad.register_function(sp.Function("unknown"), np.sin, [np.cos])

    def work():
        k = 0
        while True:
            k += 1
            symad.gradient(unknown(x) * sp.Integer(k))

    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
    node = deep.output_nodes[0]
    print(type(node).of(node.op, node.args) is node)
"""

AFTER_EXIT_BEGAN = """
    import atexit

    def last():
        import symad, sympy as sp
        x = sp.Symbol("x", real=True)
        graph = symad.trace(sp.sin(x))
        print(graph.output_nodes == symad.trace(sp.sin(x)).output_nodes == kept.output_nodes)

    atexit.register(last)  # runs after what symad registers
    import symad, sympy as sp
    kept = symad.trace(sp.sin(sp.Symbol("x", real=True)))
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [(USERS_FUNCTION, "6.0"), (DEEP_THREADED_AND_COMPILED, "True"), (AFTER_EXIT_BEGAN, "True")],
    ids=["users function", "deep, threaded and compiled", "after exit began"],
)
def test_nothing_is_printed_at_exit(program, said):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")
