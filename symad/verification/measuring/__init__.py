"""Evaluation of both sides of a claim at points; users' code called and measured.

`measure` is the start, for numeric functions (`symad.verification.programs` calls it): `call_users_code`
calls, `floating_errors` and `rounding_errors` say what roundings explain. `evidence` compares values
element by element before `tested` is given, `references` has derivatives from elsewhere, `user_rules` the
derivative rules that users gave.
"""
