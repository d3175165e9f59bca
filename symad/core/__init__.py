"""The data types that everything stands on.

`graph` has nodes, ops and graphs; `questions` the generic functions that every op answers (shape, evaluate,
jvp, transpose, ...); `dims` symbolic sizes; `arguments` and `structures` how inputs are grouped.
"""
