"""Launchers of sweeps: how jobs are run. All of them check every job first, report each as it ends, and go on."""

from __future__ import annotations

from ..plugin import PluginKind
from .in_process import BasicLauncher, BasicSettings
from .local import JoblibLauncher, JoblibSettings
from .ray import RayLauncher, RaySettings
from .slurm import SubmititLauncher, SubmititSettings

_GROUP = "hydra/launcher"
#: Every launcher of this package.
PLUGINS = (
    PluginKind(_GROUP, "basic", BasicLauncher, BasicSettings),
    PluginKind(_GROUP, "joblib", JoblibLauncher, JoblibSettings),
    PluginKind(_GROUP, "ray", RayLauncher, RaySettings),
    PluginKind(_GROUP, "submitit", SubmititLauncher, SubmititSettings),
)

__all__ = ["PLUGINS", "BasicLauncher", "JoblibLauncher", "RayLauncher", "SubmititLauncher"]
