"""opgym: the decisions that an ML compiler makes about a computation graph, as Gymnasium environments."""

from importlib.metadata import version as _version

__version__ = _version("opgym")
