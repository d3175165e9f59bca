"""Evaluation of both sides of a claim at points; users' code called and measured.

`measure` is the start, for numeric functions (`symad.verification.programs` calls it): `task` says what is
measured where, `comparing` what counts at one point; `call_users_code` calls, `rounding_errors` says what
roundings explain, and `found` which verdict follows. `references` has derivatives
from elsewhere, `user_rules` the derivative rules that users gave.
"""
