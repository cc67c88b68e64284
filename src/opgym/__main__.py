"""``python -m opgym``: the command line without its script on the path."""

from opgym.cli import main

raise SystemExit(main())
