"""Two sides restated as others: if those are equal, so are these.

`by_elements` writes small arrays out, `by_one_element` lets one element stand for all, `by_spectra` writes a
matrix by its eigenvectors or singular vectors, and `by_regions` has the cases of numbers: by signs of inputs
and on intervals, by whole parts (`by_whole_parts`), and after injective functions (`by_injective`).
"""
