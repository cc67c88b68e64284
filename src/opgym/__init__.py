"""opgym: the decisions that an ML compiler makes about a computation graph, as Gymnasium environments."""

from importlib.metadata import version as _version

from .envs import register_environments as _register_environments

__version__ = _version("opgym")

_register_environments()
