"""Stands in for torch.utils.cpp_extension.load and load_inline while a candidate is executed.

A candidate compiles its extensions as it likes: when its module is executed, in a constructor, in
its first call, the same one again for each layer. The compile sandbox (prebuild.py) executes it
once and builds; candidate workers execute it again and are given what was built, by module name.
Both sides name modules as torch does: calls of one name that differ in anything build name, name_v1,
name_v2, in order of first use, whether or not the build succeeds.
"""
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import inspect
import os


def mentioned_in(source):
    """Tells whether a candidate may build extensions."""
    return "cpp_extension" in source or "load_inline" in source


def install(provider):
    """Replaces both functions by calls of `provider.get(real, arguments)`.

    `arguments` is a dict of the named arguments as given, defaults left out, `name` made unique. What
    a call returned or raised, it returns or raises again for the same arguments.
    """
    from torch.utils import cpp_extension

    outcomes, versions = {}, {}
    for function in (cpp_extension.load, cpp_extension.load_inline):
        setattr(cpp_extension, function.__name__, _replacement(function, provider, outcomes, versions))


def _replacement(real, provider, outcomes, versions):
    signature = inspect.signature(real)

    def replacement(*args, **kwargs):
        # Lists are copied: torch's load_inline writes to those that it is given.
        arguments = {name: list(value) if isinstance(value, list) else value
                     for name, value in signature.bind(*args, **kwargs).arguments.items()}
        key = _fingerprint(real.__name__, arguments)
        if key not in outcomes:
            name = arguments["name"]
            version = versions[name] = versions.get(name, -1) + 1
            if version:
                arguments["name"] = f"{name}_v{version}"
            try:
                outcomes[key] = provider.get(real, arguments), None
            except Exception as exception:
                outcomes[key] = None, exception
        result, exception = outcomes[key]
        if exception is not None:
            raise exception
        return result

    replacement.__name__ = real.__name__
    replacement.__doc__ = real.__doc__
    replacement.__signature__ = signature
    return replacement


def _fingerprint(function, arguments):
    """Names what a call builds: all that it passes but places, with the contents of source files."""
    parts = [function]
    for name, value in sorted(arguments.items()):
        if name in ("build_directory", "verbose"):
            continue
        if name == "sources":
            value = [_contents(path) for path in ([value] if isinstance(value, str) else value)]
        parts.append(f"{name}={value!r}")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return os.fspath(path)


class Prebuilt:
    """Loads extensions that exist already, from open files."""

    def __init__(self, fds):
        self._fds = fds  # by module name

    def get(self, real, arguments):
        name = arguments["name"]
        if name not in self._fds:
            raise ImportError(f'there is no prebuilt module for the extension "{name}": it was not built when the '
                              "candidate was executed in the compile sandbox, and a worker does not compile")
        return load_extension(name, f"/proc/self/fd/{self._fds[name]}", arguments.get("is_python_module", True))


def load_extension(name, path, is_python_module):
    """Loads the shared library as the Python module `name`, or for its registrations alone."""
    if not is_python_module:
        # What torch.ops.load_library does, except that it resolves the path, which is a descriptor's.
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        return path
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
