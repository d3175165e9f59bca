"""The C compiler: finding it, calling what it made, and the private folder in which that is kept.

`c_compiler` is the start: text to a loaded library, once for each content. `private_folder` guards what is
kept, `quick_calls` and `c_calls` make calls cost less than the code, `c_header` writes the header.
"""
