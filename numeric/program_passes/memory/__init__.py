"""Program passes that decide in which memory a value is stored, and when memory is freed.

`allocation` is the start: which values are views, which allocate, and which operands may be overwritten.
`result_places` and `boxes` compute a part in its position in a larger array; `sparse_places` does so for the
entries of sparse matrices, by the layout of `sparse_plan`. `reuse` overwrites operands, keeps large arrays
from call to call and frees memory early, `dead` removes statements that nothing reads.
"""
