"""The C compiler: finding it, calling the compiled code, and the private folder that stores it.

`c_compiler` turns source text into a loaded library, once for each content. `private_folder` protects the
stored libraries, `c_calls` makes calls cheap, `c_header` lays out the vectors of a function; `math` has
vectorized elementary functions.
"""
