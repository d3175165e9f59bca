"""Program passes that rewrite the expression of one statement: constants, small powers, views as indices.

`folding` is the start. `numbers` says which expressions are numbers of the host language in printed code.
"""
