"""Hosts of their own on this machine: network namespaces on one bridge, which nftables can cut off.

A host has its own loopback, and reaches the others over the bridge. Root and the programs `ip` and `nft` are needed.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of setns(2)
_CUT = """
table inet cut {
    chain input { type filter hook input priority 0; policy drop; iif lo accept; }
    chain output { type filter hook output priority 0; policy drop; oif lo accept; }
}
"""


def _do(*words: str, stdin: str = "") -> None:
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)


@contextlib.contextmanager
def within(host: str) -> Iterator[None]:
    """Let this thread open its sockets on a host. "": where the thread is."""
    if not host:
        yield
        return
    setns = ctypes.CDLL(None, use_errno=True).setns
    with Path("/proc/thread-self/ns/net").open() as here, Path(f"/run/netns/{host}").open() as there:
        assert setns(there.fileno(), _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert setns(here.fileno(), _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())


class Network:
    """A bridge, and the hosts on it. address: of this machine on the bridge. subnet: of all."""

    def __init__(self) -> None:
        number = os.getpid()
        self._name, self._hosts = f"gw{number}", 0
        self._net = f"10.{200 + number % 50}.{number // 50 % 256}"
        self.address, self.subnet = f"{self._net}.1", f"{self._net}.0/24"
        _do("ip", "link", "add", self._name, "type", "bridge")
        _do("ip", "address", "add", f"{self.address}/24", "dev", self._name)
        _do("ip", "link", "set", self._name, "up")

    def host(self) -> str:
        """Make one more host and return its name."""
        self._hosts += 1
        host, cable = f"{self._name}-{self._hosts}", f"{self._name}.{self._hosts}"
        _do("ip", "netns", "add", host)
        _do("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host)
        _do("ip", "link", "set", cable, "master", self._name, "up")
        _do("ip", "-n", host, "address", "add", f"{self._net}.{self._hosts + 1}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _do("ip", "-n", host, "link", "set", device, "up")
        return host

    @staticmethod
    def cut(host: str) -> None:
        """Let nothing of a host reach another one, nor the other way. Nobody is told."""
        _do("ip", "netns", "exec", host, "nft", "-f", "-", stdin=_CUT)

    @staticmethod
    def heal(host: str) -> None:
        _do("ip", "netns", "exec", host, "nft", "delete", "table", "inet", "cut")

    def close(self) -> None:
        for number in range(1, self._hosts + 1):
            _do("ip", "netns", "delete", f"{self._name}-{number}")
        _do("ip", "link", "delete", self._name)


@contextlib.contextmanager
def network() -> Iterator[Network | None]:
    """Give a network as long as the `with` block runs, or None where this machine can have none."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft"))):
        yield None
        return
    try:
        made = Network()
        made.host()  # that the tests do not use
    except AssertionError:  # a container that may not
        yield None
        return
    try:
        yield made
    finally:
        made.close()
