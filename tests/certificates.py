"""Throw-away certificates that sign themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest


def certificate(folder: Path, name: str = "DNS:localhost", file: str = "cert") -> tuple[str, str]:
    """Make a certificate for a name such as DNS:localhost or IP:127.0.0.1; return its file and that of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a throw-away certificate")
    made = str(folder / f"{file}.pem"), str(folder / f"{file}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName={name}"]
    subprocess.run([*command, "-keyout", made[1], "-out", made[0]], check=True, capture_output=True)
    return made
