"""Starts the worker: `python -I <folder>/kernelbench_worker/__main__.py --fd N`.

`-I` keeps the environment, the user's site-packages and the current folder out of the imports, so
that nothing shadows torch. It also leaves this folder out of sys.path, hence the line below;
`python -m kernelbench_worker --fd N` works as well where the package can be found.

`… __main__.py profile REQUEST OUT` runs one model for a profiler instead: profiled.py.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if sys.argv[1:2] == ["profile"]:
    from kernelbench_worker.profiled import main
else:
    from kernelbench_worker.main import main

sys.exit(main())
