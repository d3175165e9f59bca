"""The data types on which all other folders build.

`graph` is the start: nodes, ops and graphs. `questions` has the generic functions that every op answers
(shape, evaluate, jvp, transpose, ...); `dims` symbolic sizes; `arguments`, `structures` and `signatures` the
grouping of inputs; `interning` equal nodes as one; `readers` who reads a node; `documents` what graphs show
of themselves.
"""
