"""Certificates as Coq files, and the lemmas that they rest on.

The theory is in the files ``Symad*.v`` of this folder; the modules print models and derivatives.
"""

from symad.verification.coq.model import Model
from symad.verification.coq.terms import CoqError
from symad.verification.coq.write import as_coq, write_coq

__all__ = ["CoqError", "Model", "as_coq", "write_coq"]
