"""The bill of materials of an archive (CycloneDX 1.5): each project with license, supplier and hashes. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PYTHON = ">=3.11"
OWN = {"supplier": {"name": "Security Gateway"}, "licenses": [{"license": {"id": "Apache-2.0"}}]}
SUBSTITUTE = "typing_extensions.py"
_PROJECT = re.compile(r"^([a-z0-9-]+) +([0-9][^ ]*) +([A-Za-z0-9.-]+) +(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel that went into the archive. requires_python: as its metadata has it."""

    name: str
    sha256: str
    requires_python: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """What NOTICE says about a project. license: SPDX identifier."""

    version: str
    license: str
    supplier: str


def noticed(notice: str) -> dict[str, Noticed]:
    """Return what the text of NOTICE says about each project."""
    return {project: Noticed(*rest) for project, *rest in _PROJECT.findall(notice)}


def sbom(
    version: str,
    build: str,
    wheels: Mapping[tuple[str, str], Sequence[Wheel]],
    notice: str,
    substitute: bytes,
) -> bytes:
    """Return the bill of materials as JSON, the same for the same inputs.

    wheels: by project and version. substitute: the module that takes the place of typing_extensions.

    Raises:
        ValueError: NOTICE lacks a project, or names another version of it.
    """
    known = noticed(notice)
    parts = []
    for (project, release), files in sorted(wheels.items()):
        if project not in known or known[project].version != release:
            raise ValueError(f"NOTICE must name {project} {release} with its license and supplier")
        parts.append(_library(project, release, files, known[project]))
    parts.append(
        {
            "type": "file",
            "bom-ref": SUBSTITUTE,
            "name": SUBSTITUTE,
            "version": version,
            "description": "Takes the place of the project typing_extensions, of which it is no copy.",
            "hashes": [_hash(hashlib.sha256(substitute).hexdigest())],
            **OWN,
        }
    )
    root = {"type": "application", "bom-ref": "gateway", "name": "gateway", "version": version, **OWN}
    root["properties"] = [_property("build", build), _property("requires-python", PYTHON)]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root, "supplier": OWN["supplier"]},
        "components": parts,
        "dependencies": [{"ref": "gateway", "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    return json.dumps(bill, sort_keys=True, indent=1, ensure_ascii=False).encode()


def _library(project: str, version: str, wheels: Sequence[Wheel], known: Noticed) -> dict[str, Any]:
    purl = f"pkg:pypi/{project}@{version}"
    files = [{"type": "file", "name": one.name, "hashes": [_hash(one.sha256)]} for one in wheels]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": project,
        "version": version,
        "purl": purl,
        "supplier": {"name": known.supplier},
        "licenses": [{"license": {"id": known.license}}],
        "hashes": [_hash(one.sha256) for one in wheels],
        "components": files,  # which wheel each hash is of
        "properties": [_property("requires-python", one) for one in sorted({one.requires_python for one in wheels})],
    }


def _hash(sha256: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": sha256}


def _property(name: str, value: str) -> dict[str, str]:
    return {"name": f"gateway:{name}", "value": value}
