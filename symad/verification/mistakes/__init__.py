"""The names of mistakes in derivatives that were written by hand.

A refuted gradient, vjp or jvp is compared with derivatives that were changed on purpose: one path of the
chain rule left out, one factor forgotten, one value confused with another. A name is given only where the
changed derivative agrees with the candidate, to rounding, at every point tried, and the right one does not.

`local` has the derivatives of single operations, `network` the chain rule at some points and what compares.
`whole`, `changes`, `slopes` and `elements` make the changes, `words` tells values by the user's names,
`naming` chooses the name, and `asking` is called by `verify`.
"""
