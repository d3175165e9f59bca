"""The names of mistakes in derivatives that were written by hand.

A refuted gradient, vjp or jvp is compared with derivatives that were changed on purpose: one path of the chain
rule left out, one factor forgotten, one value confused with another. A name is given only where the changed
derivative agrees with the candidate, to rounding, at every point tried, and the right one does not. `network` has
the chain rule as matrices at some points, `changes` the changes, `matching` what agrees, `words` the names of
values, and `naming` the certificate with the names.
"""
