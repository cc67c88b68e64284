"""Agents beside each other at equal budgets: cases, contestants, judging, tables."""
