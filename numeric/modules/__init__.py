"""The frame of generated code: names, the module's text, its entry point, checks of sizes, packing.

`entry_point` prints the function that users call, which takes structures of arguments. `names` makes
identifiers, `module_text` the frame of a module, `packing` one vector of all inputs, and `bad_arguments` the
error messages.
"""
