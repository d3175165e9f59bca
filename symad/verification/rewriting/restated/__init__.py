"""A claim in another form, for claims that the basis alone does not decide.

`by_regions` is the start: one input, interval by interval. `by_whole_parts` goes through the cases of whole
parts; `by_elements` writes small arrays out by elements; `by_exponentials` and `by_spectra` change variables:
inputs by exponentials, matrices by their eigenvectors; `by_injective` applies a one-to-one function to both
sides.
"""
