"""Functions of data computed part by part, in threads, processes or on a cluster; fits of data on disk.

Start with `distribute`: it asks `symad.splitting` how a function splits. `chunks` are the parts, `engines`
compute them, `costs` tells the price before, and `fits`, `glm`, `sweeps` and `colors` are uses.
"""

from symad.numeric.scale.colors import sparse_hessian, sparse_jacobian
from symad.numeric.scale.costs import Forecast, plan
from symad.numeric.scale.distribute import Distributed, SplitError, distribute
from symad.numeric.scale.fits import least_squares, minimize
from symad.numeric.scale.frames import columns
from symad.numeric.scale.glm import LinearModel, glm
from symad.numeric.scale.sweeps import monte_carlo, sweep
from symad.numeric.scale.tasks import ChunkError

__all__ = [
    "ChunkError", "Distributed", "Forecast", "LinearModel", "SplitError", "columns", "distribute", "glm",
    "least_squares", "minimize", "monte_carlo", "plan", "sparse_hessian", "sparse_jacobian", "sweep",
]  # fmt: skip
