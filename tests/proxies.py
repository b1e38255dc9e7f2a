"""Real proxies in front of a gateway, with TLS."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

NAME = "gateway.example.com"


def adapted(file: Path, changes: dict[str, str]) -> str:
    """Return a configuration with ports, paths and addresses of the test in place of its own. Each occurs once."""
    text = file.read_text("utf-8")
    for theirs, mine in changes.items():
        assert text.count(theirs) == 1, theirs
        text = text.replace(theirs, mine)
    return text


class Proxies:
    """Real proxies, each on a port of this host, until the test ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen] = []

    def nginx(self, servers: str, port: int) -> None:
        """Start nginx with these `server` blocks, and return when it listens."""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {self._folder}/{kind};" for kind in kinds)
        first = f"daemon off; master_process off; pid {self._folder}/{port}.pid; error_log stderr; events {{}}\n"
        config = self._write(f"{first}http {{ access_log off; {paths}\n{servers}\n}}\n", port)
        self._run(port, "nginx", "-p", str(self._folder), "-c", config, "-e", "stderr")

    def haproxy(self, text: str, port: int) -> None:
        """Start HAProxy with a configuration, and return when it listens."""
        self._run(port, "haproxy", "-db", "-f", self._write(text, port))

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
            process.wait(10)

    def _write(self, text: str, port: int) -> str:
        config = self._folder / f"{port}.conf"
        config.write_text(text)
        return str(config)

    def _run(self, port: int, name: str, *words: str) -> None:
        program = shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        if program is None:
            pytest.skip(f"no {name} on this host (Debian: apt-get install nginx-light haproxy)")
        command = [program, *words]
        self._running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"{name} does not listen")
