"""Certificates as Coq files, and the lemmas that they rest on.

`write` is the start: a file of one certificate, in the parts of `layout`. `model` is what the certificate is
about, `reading` makes its terms, `programs` and `gallina` print them; `branches` has
selections. The theory is in the files ``Symad*.v`` of this folder.
"""

from symad.verification.certificate.certificate import CertifiedModel
from symad.verification.coq.terms import CoqError
from symad.verification.coq.write import as_coq, write_coq

__all__ = ["CertifiedModel", "CoqError", "as_coq", "write_coq"]
