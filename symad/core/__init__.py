"""The data types on which all other folders build.

`graph` has nodes, ops and graphs; `questions` the generic functions that every op answers (shape, evaluate,
jvp, transpose, ...); `dims` symbolic sizes; `arguments` and `structures` the grouping of inputs.
"""
