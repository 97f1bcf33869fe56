"""Starts the worker: `python -I <folder>/kernelbench_worker/__main__.py --fd N`.

`-I` keeps the environment, the user's site-packages and the current folder out of the imports, so
that nothing shadows torch. It also leaves this folder out of sys.path, hence the line below;
`python -m kernelbench_worker --fd N` works as well where the package can be found.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from kernelbench_worker.main import main  # noqa: E402

sys.exit(main())
