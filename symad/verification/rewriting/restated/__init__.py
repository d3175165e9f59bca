"""Two sides restated as others: if those are equal, so are these.

`by_elements` writes small arrays out, `by_one_element` lets one element stand for all, `by_spectra` writes a
matrix by its eigenvectors or singular vectors, and `by_regions` has the cases of numbers: by the signs of
inputs and injective functions (`by_injective`), by whole parts (`by_whole_parts`), and on intervals.
"""
