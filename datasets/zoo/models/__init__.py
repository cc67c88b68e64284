"""Definitions of the zoo's networks, written from their papers; importing them needs torch (extra `zoo`)."""
