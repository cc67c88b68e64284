"""Learners on Stable-Baselines3; importing them needs none of it, training and playing do (extra ``train``)."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables.
from .ppo import PPO
from .maskable_ppo import MaskablePPO
from .a2c import A2C
from .dqn import DQN

__all__ = ["A2C", "DQN", "PPO", "MaskablePPO"]
