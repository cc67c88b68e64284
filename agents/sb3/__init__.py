"""Agents of Stable-Baselines3, and what they see of a graph."""
