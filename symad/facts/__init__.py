"""What is known of scalar functions, one row each: values, parity, sign, range, limits, domain, poles, jumps.

Read first: `symad.facts.functions`.
"""
