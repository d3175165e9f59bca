// Nothing of it is used on the CPU.
