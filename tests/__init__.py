"""The tests, by room; packages, so that they can share the strategies and the cases of tests/reference."""
