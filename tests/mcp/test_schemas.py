"""The tools' schemas, as clients in other languages read them: with zod and by what they hand to a model."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.mcp.tools import TOOLS

SCHEMAS = {tool.name: {"inputSchema": tool.input_schema(), "outputSchema": tool.gives()} for tool in TOOLS}
ZOD = """
import * as z from "zod";
import { jsonSchemaToZod } from "json-schema-to-zod";
const faults = [];
const tools = JSON.parse(process.argv[1]);
for (const [name, schemas] of Object.entries(tools)) for (const [side, schema] of Object.entries(schemas)) {
  try { z.fromJSONSchema(schema); } catch (error) { faults.push(`fromJSONSchema ${name} ${side}: ${error.message}`); }
  try { new Function("z", "return " + jsonSchemaToZod(schema, { module: "none" }))(z); }
  catch (error) { faults.push(`json-schema-to-zod ${name} ${side}: ${error.message}`); }
}
const access = z.fromJSONSchema(tools.manage_access.inputSchema);
const entry = { action: "add", list_type: "deny", entry_type: "DOMAIN", value: "évil.example", reason: "Überfall 🦊" };
for (const expires_at of ["12h", "2030-01-31T12:00:00Z", null])
  if (!access.safeParse({ ...entry, expires_at }).success) faults.push(`manage_access refuses ${expires_at}`);
console.log(JSON.stringify(faults));
"""


def patterns_in(schema: Any) -> Iterator[str]:
    """Give every pattern of a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for part in schema.values():
            yield from patterns_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from patterns_in(part)


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_argument_has_a_pattern_and_no_other_pattern_needs_a_flag(name: str) -> None:
    assert list(patterns_in(SCHEMAS[name]["inputSchema"])) == []
    for pattern in patterns_in(SCHEMAS[name]["outputSchema"]):
        assert pattern.isascii() and "\\u" not in pattern and "\\p" not in pattern


def test_zod_reads_every_schema() -> None:
    folder = os.environ.get("MCP_NODE_MODULES")
    if not folder:
        pytest.skip("MCP_NODE_MODULES names no folder in which `npm i zod@4 json-schema-to-zod` was run")
    command = ["node", "--input-type=module", "-e", ZOD, json.dumps(SCHEMAS)]
    done = subprocess.run(command, cwd=Path(folder), capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == []
