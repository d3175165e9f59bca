"""Elements of traced values: read, chosen by conditions, assigned to, and slices that share them.

`indexing` is the start: NumPy's indexing on nodes. `slices` are views that follow their array, `assigning`
writes elements, `chosen` are those at which a condition holds, `filled` arrays that the user's code makes
and fills.
"""
