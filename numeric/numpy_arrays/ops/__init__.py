"""The printer's rules for NumPy, one file for each family of ops.

`all_ops` is the start: the question `emit`, and the rules of most ops. `loops`, `row_blocks`, `nested` and
`root` print statements with bodies, `sparse`, `mosaic` and `spans` arrays that are assembled from parts.
Ops without a rule here are printed by `symad.numeric.targets`.
"""
