"""How each server of the comparison is found, started and asked. Installs nothing."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from bench.http.load import LOAD_CORE, SERVER_CORE, Shot, ask, on_core
from bench.http.payload import MODEL, chat_body, completion, prompt, scan_body

HERE = Path(__file__).parent
START_SECONDS = 180.0
SCAN, CHAT, HEALTH = "/api/v1/shield/scan", "/api/v1/chat/completions", "/api/v1/health"
OURS, UNAUDITED, UNRECORDED = "serve", "serve, audit off", "serve, nothing recorded"
OURS_TWO, OURS_THREE = "serve, 2 workers", "serve, 3 workers"
OURS_BESIDE = "serve, beside the other"
BARE, BEFORE, BEFORE_BARE = "serve, no shield", "serve before", "serve before, no shield"
OURS_LARGE = "serve, a large database"
_WORKERS = {OURS_TWO: "2", OURS_THREE: "3"}
_LEFT_OUT = {UNAUDITED: "event", UNRECORDED: "records", BARE: "shield"}
_OURS = (OURS, OURS_BESIDE, OURS_LARGE, OURS_TWO, OURS_THREE, BEFORE, BEFORE_BARE, *_LEFT_OUT)
H11, COMPILED = "uvicorn h11 + Starlette", "uvicorn httptools uvloop + Starlette"
LITELLM, PORTKEY, NGINX, DIRECT = "LiteLLM", "Portkey", "nginx", "mock upstream"
KEYS = 4
_NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/{name}.pid; error_log {folder}/{name}.log crit;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s; default_type application/json;
  client_body_temp_path {folder}/{name}-1; proxy_temp_path {folder}/{name}-2; fastcgi_temp_path {folder}/{name}-3;
  uwsgi_temp_path {folder}/{name}-4; scgi_temp_path {folder}/{name}-5;
  {rest}
}}
"""
_MOCK = """server {{ listen 127.0.0.1:{port};
    location / {{ return 200 '{body}'; }} }}"""
_PROXY = """upstream mock {{ server 127.0.0.1:{mock}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://mock; }} }}"""
_LITELLM = """
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "http://127.0.0.1:{mock}/v1", api_key: upstream}}
litellm_settings: {{num_retries: 0, request_timeout: 30}}
general_settings: {{master_key: {key}}}
"""


@dataclass(frozen=True, slots=True)
class Peers:
    """Which programs there are; None for what was not found. python: of the environment with Starlette."""

    python: Path | None
    litellm: Path | None
    portkey: Path | None
    node: str | None
    nginx: str | None

    @classmethod
    def find(cls, folder: Path) -> "Peers":
        """Look into the folder of peers and, for nginx and node, into PATH."""

        def there(path: str) -> Path | None:
            return folder / path if (folder / path).exists() else None

        return cls(
            python=there("ve_fast/bin/python"),
            litellm=there("ve_lite/bin/litellm"),
            portkey=there("portkey/node_modules/@portkey-ai/gateway/build/start-server.js"),
            node=shutil.which("node"),
            nginx=shutil.which("nginx"),
        )

    def report(self) -> str:
        """Say what was found and what was not."""
        rows = {
            "uvicorn, Starlette, aiohttp": self.python,
            LITELLM: self.litellm,
            PORTKEY: self.portkey and self.node,
            NGINX: self.nginx,
        }
        found = ", ".join(name for name, path in rows.items() if path)
        missing = ", ".join(name for name, path in rows.items() if not path)
        return f"peers found: {found or 'none'}; not found: {missing or 'none'}"


class Field:
    """The servers of one run: started once, asked in turn, stopped at the end.

    archive: gateway.pyz. work: an empty folder for data, keys and logs. before: a checkout of an older commit
    to compare with.
    """

    def __init__(self, archive: Path, peers: Peers, work: Path, before: Path | None = None) -> None:
        self.archive = archive
        self._before = before
        self.peers = peers
        self.work = work
        self.pids: dict[str, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, int] = {}
        self._mock = free_port()
        self._sources = work / "sources"
        _unpack(archive, self._sources)
        self._bodies = {SCAN: work / "scan.json", CHAT: work / "chat.json"}
        self._bodies[SCAN].write_bytes(scan_body())
        self._bodies[CHAT].write_bytes(chat_body())
        self._text = work / "text.txt"
        self._text.write_text(prompt())
        self._peer_key = "sk-bench-" + secrets.token_hex(16)
        self._data = work / "data"
        self._keys = work / "keys.txt"

    def start(self, name: str, *, has_all_cores: bool = False) -> bool:
        """Start a server and wait until it answers; say whether it could be started."""
        if name in self.pids:
            return True
        command = self._command(name)
        if command is None:
            return False
        with on_core(None if has_all_cores else LOAD_CORE if name == DIRECT else SERVER_CORE):
            process = self._spawn(name, command)
        self._processes.append(process)
        self.pids[name] = process.pid
        path = CHAT if name in (LITELLM, PORTKEY, NGINX, DIRECT) else HEALTH
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                if ask(self.shot(name, path))[0] == 200:
                    return True
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"bench/http: {name} does not answer; see {self._log(name)}")
                time.sleep(0.1)

    def end(self, name: str) -> None:
        """Stop one of our servers, so that it can be started anew."""
        pid = self.pids.pop(name)
        _end([process for process in self._processes if process.pid == pid])
        shutil.rmtree(self._folder(name))

    def stop(self) -> None:
        """Stop everything."""
        _end(self._processes)

    def shot(self, name: str, path: str, *, is_anonymous: bool = False) -> Shot:
        """Return what to ask a server for `path`, in its own words. Scans and chats have another text each time."""
        url = f"http://127.0.0.1:{self._ports[name]}"
        body = self._bodies.get(path)
        text = self._text if path in (SCAN, CHAT) else None
        if name in _OURS:
            return Shot(url + path, body, None if is_anonymous else self._keys, text=text)
        if path == CHAT and name not in (H11, COMPILED):
            path = "/v1/chat/completions"
        headers = f"X-Service-Key: {self._peer_key}"
        if name in (LITELLM, PORTKEY):
            headers = f"Authorization: Bearer {self._peer_key}"
        if name == PORTKEY:
            headers += f"|x-portkey-provider: openai|x-portkey-custom-host: http://127.0.0.1:{self._mock}/v1"
        return Shot(url + path, body, None, headers, text)

    def ask_peer(self, name: str, path: str) -> bytes:
        """Ask a peer once."""
        return ask(self.shot(name, path))[1]

    def make_keys(self) -> None:
        """Make the data folder and API keys that no rate limit stops, by the oldest commit, which all others read."""
        made = []
        start = self._changed(self._before, "nothing") if self._before else [sys.executable, str(self.archive)]
        for number in range(KEYS):
            command = [*start, "keys", "create", "--data-dir", str(self._data)]
            command += ["--name", f"bench {number}", "--rate-limit", "10000000"]
            command += ["--scopes", "shield:scan,chat:completions"]
            made.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        self._keys.write_text("\n".join(made) + "\n")

    def _command(self, name: str) -> list[str] | None:
        port = self._ports[name] = self._mock if name == DIRECT else free_port()
        python, nginx = self.peers.python, self.peers.nginx
        if name in (NGINX, DIRECT):
            return self._nginx(name, port) if nginx else None
        if name in _OURS:
            return self._ours(name, port)
        if name == LITELLM and self.peers.litellm:
            config = self.work / "litellm.yaml"
            config.write_text(_LITELLM.format(model=MODEL, mock=self._mock, key=self._peer_key))
            return [str(self.peers.litellm), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        if name == PORTKEY and self.peers.portkey and self.peers.node:
            return [self.peers.node, str(self.peers.portkey), "--headless", f"--port={port}"]
        if name in (H11, COMPILED) and python:
            kind = (
                ["--http", "h11", "--loop", "asyncio"] if name == H11 else ["--http", "httptools", "--loop", "uvloop"]
            )
            command = [str(python), "-m", "uvicorn", "--app-dir", str(HERE), "peer_app:app", *kind]
            return [*command, "--port", str(port), "--no-access-log", "--log-level", "warning"]
        return None

    def _ours(self, name: str, port: int) -> list[str] | None:
        if not self._keys.exists():
            self.make_keys()
        upstream = f"http://127.0.0.1:{self._mock}/v1"
        options = ["serve", "--port", str(port), "--upstream-url", upstream]
        start = [sys.executable, str(self.archive)]
        if name in (BEFORE, BEFORE_BARE):
            if self._before is None:
                return None
            start = self._changed(self._before, "shield" if name == BEFORE_BARE else "nothing")
        elif name in _LEFT_OUT:
            start = self._changed(self._sources, _LEFT_OUT[name])
        folder = self._folder(name)
        shutil.copytree(self._data, folder)  # the same keys, and no server waits for the locks of another
        return [*start, *options, "--workers", _WORKERS.get(name, "1"), "--data-dir", str(folder)]

    def _changed(self, sources: Path, what: str) -> list[str]:
        return [sys.executable, str(HERE / "without.py"), str(sources), what]

    def _folder(self, name: str) -> Path:
        return self.work / f"data-{_OURS.index(name)}"

    def _nginx(self, name: str, port: int) -> list[str]:
        short = "mock" if name == DIRECT else "proxy"
        body = completion().replace("'", "")
        rest = (_MOCK if name == DIRECT else _PROXY).format(port=port, mock=self._mock, body=body)
        config = self.work / f"{short}.conf"
        config.write_text(_NGINX.format(folder=self.work, name=short, rest=rest))
        return [str(self.peers.nginx), "-c", str(config), "-p", str(self.work)]

    def _spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        environment: Mapping[str, str] = os.environ | {
            "BENCH_KEY": self._peer_key,
            "BENCH_UPSTREAM": f"http://127.0.0.1:{self._mock}/v1",
            "PYTHONPATH": str(self._sources) if name in (H11, COMPILED) else "",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
            "LITELLM_LOG": "ERROR",
            "NODE_ENV": "production",
            "NO_PROXY": "127.0.0.1",
        }
        with open(self._log(name), "wb") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self.work, start_new_session=True
            )

    def _log(self, name: str) -> Path:
        return self.work / f"{name.replace(' ', '-').replace(',', '')}.txt"


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop processes and what they have started."""
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """Return a port of the loopback that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _unpack(archive: Path, folder: Path) -> None:
    """Lay out the gateway that an archive holds, so that another Python imports the same shield from there."""
    with ZipFile(archive) as whole:
        whole.extractall(folder, [name for name in whole.namelist() if name.startswith(("rules.", "gateway/"))])
