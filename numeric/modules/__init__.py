"""What surrounds generated code: names, the module's text, its entry point, checks of sizes, packing."""
