"""Run by each Python of a build, alone: sources on stdin, its byte-code pack on stdout. See gateway/cli/bytecode.py."""

import importlib
import importlib.util
import marshal
import sys

sources = dict(marshal.loads(sys.stdin.buffer.read()))  # noqa: S302 - written by the build


class Sources:
    """Imports from the given sources and from nowhere else but the standard library."""

    def find_spec(self, name, path=None, target=None):
        for file in (name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"):
            if file in sources:
                is_package = file.endswith("/__init__.py")
                return importlib.util.spec_from_loader(name, self, origin="/" + file, is_package=is_package)
        return None

    def create_module(self, spec):
        spec.has_location = True
        return None

    def exec_module(self, module):
        text = self.get_source(module.__name__)
        exec(compile(text, module.__spec__.origin, "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def get_source(self, name):
        return sources[self.find_spec(name).origin[1:]].decode("utf-8")


sys.path[:] = [path for path in sys.path if path and "-packages" not in path]
sys.meta_path.insert(0, Sources())
texts = {}


def remember(text, names=None, places=None):
    """Run what `dataclasses` wrote, as its own `exec` would, and keep the text under the module it is run in."""
    texts.setdefault(names["__name__"], set()).add(text)
    exec(text, names, places)  # noqa: S102


import dataclasses  # noqa: E402 - what it imports is not ours

dataclasses.exec = remember
from gateway.cli.bytecode import make_pack, module_of  # noqa: E402 - itself made with records

for file in sorted(sources):
    if file not in ("__main__.py", "_boot.py"):
        try:
            importlib.import_module(module_of(file))
        except ImportError:
            continue  # for another system than this one; its records are compiled when they are made
own = {module_of(file) for file in sources}
sys.stdout.buffer.write(make_pack(sources, {name: found for name, found in texts.items() if name in own}))
