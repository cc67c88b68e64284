"""The C++ core."""
