"""Run by each Python of a build, alone: sources on stdin, what it compiled on stdout. See gateway/cli/packs.py."""

import dataclasses
import importlib
import importlib.util
import marshal
import re
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
methods, regexes = {}, {}


def write_method(text, names=None, places=None):
    """Run what `dataclasses` wrote, as its own `exec` would, and keep the text under the module it is run in."""
    methods.setdefault(names["__name__"], set()).add(text)
    exec(text, names, places)  # noqa: S102


def compile_regex(pattern, flags=0, *, usual=re.compile):
    """Do what `re.compile` does, and keep the regex under the module that asks."""
    regexes.setdefault(sys._getframe(1).f_globals["__name__"], set()).add((pattern, int(flags)))
    return usual(pattern, flags)


dataclasses.exec, re.compile = write_method, compile_regex
from gateway.cli.bytecode import Made, module_of  # noqa: E402 - itself made with records
from gateway.cli.packs import compile_all  # noqa: E402

for file in sorted(sources):
    if file not in ("__main__.py", "_boot.py"):
        try:
            importlib.import_module(module_of(file))
        except ImportError:
            continue  # for another system than this one; its records are compiled when they are made
own = {module_of(file) for file in sources} & (methods.keys() | regexes.keys())
made = {name: Made(frozenset(methods.get(name, ())), frozenset(regexes.get(name, ()))) for name in own}
done = compile_all(sources, made)
fields = (done.magic, done.engine, done.boot, done.modules, done.made)
sys.stdout.buffer.write(marshal.dumps((sys.implementation.cache_tag, fields), 2))
