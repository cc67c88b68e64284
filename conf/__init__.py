"""Settings of agents by name: files that say which solver, and with which options.

A file names a registered solver and its options and nothing else: whatever is loaded here can only be a solver that
was installed on purpose.
"""

from .agents import agent, agent_names, make_agent

__all__ = ["agent", "agent_names", "make_agent"]
