"""Whole experiments: figures of the documentation, each made again by one command."""
