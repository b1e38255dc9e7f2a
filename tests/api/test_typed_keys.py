"""A secret that was typed in is kept beside the database with its record, or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest
from open_site import open_site

from gateway.store.database import StoreUnavailable
from gateway.store.keyfile import KeyFile

PROVIDER = {"name": "lab", "base_url": "http://127.0.0.1:9/v1", "allow_private": True, "api_key": "sk-typed-in-1"}
PEER = {"name": "north", "url": "http://127.0.0.1:9", "allow_private": True, "api_key": "svc_" + "1" * 40}
HOOK = {"name": "chat", "kind": "webhook", "target": "http://127.0.0.1:9/hook", "allow_private": True}
SECRET = "whsec_" + "QUFB" * 8


def kept(folder: Path) -> list[str]:
    path = folder / "gateway.db.provider-keys"
    return sorted(json.loads(path.read_text()).values()) if path.exists() else []


@pytest.mark.parametrize(
    ("path", "fields"),
    [("/api/providers", PROVIDER), ("/api/fleet/peers", PEER), ("/api/event-outputs", HOOK | {"secret": SECRET})],
)
async def test_a_secret_whose_record_is_not_committed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, fields: dict[str, Any]
) -> None:
    data = tmp_path / "data"
    async with open_site(tmp_path, data_dir=str(data)) as site:
        put, was_there = KeyFile.put, []

        def put_and_fail(self: KeyFile, key_id: str, key: str) -> None:
            put(self, key_id, key)
            was_there.append(kept(data))
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patched:
            patched.setattr(KeyFile, "put", put_and_fail)
            assert (await site.ask("POST", path, fields))["status"] == 503
        assert len(was_there[0]) == 1 and kept(data) == []
        assert (await site.ask("POST", path, fields))["status"] == 201
        assert len(kept(data)) == 1


async def test_another_secret_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_site(tmp_path, data_dir=str(data)) as site:
        made = await site.make("/api/event-outputs", **HOOK)
        path = f"/api/event-outputs/{made['id']}"
        assert kept(data) == [made["secret"]]
        assert (await site.ask("PATCH", path, {"secret": SECRET}))["status"] == 200
        assert kept(data) == [SECRET]
        assert (await site.ask("PATCH", path, {"name": "talk"}))["status"] == 200
        assert kept(data) == [SECRET]
        assert (await site.ask("PATCH", path, {"secret": "env:GATEWAY_PROVIDER_HOOK"}))["status"] == 200
        assert kept(data) == []
        assert (await site.ask("PATCH", path, {"secret": SECRET}))["status"] == 200
        assert (await site.ask("DELETE", path))["status"] == 200
        assert kept(data) == []
