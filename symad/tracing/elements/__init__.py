"""Elements of traced values: read, selected by conditions, assigned to; and slices that are views.

Start with `indexing`: NumPy's indexing on nodes. `slices` are views of their array, `assigning`
writes elements, `chosen` are the elements at which a condition holds, `filled` arrays that the user's code
makes and fills.
"""
