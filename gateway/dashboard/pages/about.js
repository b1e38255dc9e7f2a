// How programs connect, and what this gateway is: version, file, matcher, and what it is made of.

import { api, can, save } from "../api.js";
import { fill, h, span } from "../dom.js";
import { button, code, facts, load, panel, snippet, status, tag, words } from "../ui.js";
import { table } from "../table.js";

export async function draw({ main, signal }) {
  const about = h("div");
  const origin = location.origin;
  load(about, () => api.get("/api/about", {}, signal), (found) => [
    facts(["Version", found.version], ["File", found.archive_sha256 ? code(found.archive_sha256) : "A checkout, no archive"], ["Python", found.python], ["Matcher", found.matcher], ["Rules", `${found.rules}, SHA-256 ${found.rules_digest.slice(0, 16)}…`], ["Up for", span(found.uptime_seconds)], ["Sign-in", found.rbac_enabled ? "Users and roles" : "Off: this host alone"], ...Object.entries(found.checks).map(([name, state]) => [words(name), status(state)])),
    found.components.length ? h("details.more", h("summary", `Made of ${found.components.length} bundled parts`), table({ label: "Bundled parts", rows: found.components, columns: [{ label: "Part", cell: (row) => row.name }, { label: "Version", cell: (row) => code(row.version) }, { label: "Package", low: 1, cell: (row) => code(row.purl) }] }).node) : null,
    button("Download the bill of materials", async () => { const { text } = await api.text("/api/about/sbom"); save("gateway.sbom.cdx.json", text, "application/vnd.cyclonedx+json"); }, { sign: "down", disabled: !found.archive_sha256 }),
    !found.archive_sha256 && tag("The archive carries it; a checkout has none."),
  ].map((node) => h("div.field", node)));
  const mcp = JSON.stringify({ mcpServers: { gateway: { command: "python3", args: ["/path/to/gateway.pyz", "mcp"] } } }, null, 2);
  const overHttp = JSON.stringify({ mcpServers: { gateway: { type: "http", url: "http://127.0.0.1:5002/mcp", headers: { Authorization: "Bearer …" } } } }, null, 2);
  fill(main, h("div.grid2",
    panel("Connect a program", h("div.stack", h("p", "Point an OpenAI client at this address and give it a key of this gateway."), snippet(`export OPENAI_BASE_URL=${origin}/api/v1\nexport OPENAI_API_KEY=svc_…`), h("p", "Or scan a text by itself:"), snippet(`curl -s ${origin}/api/v1/shield/scan -H 'X-Service-Key: svc_…' \\\n  -H 'Content-Type: application/json' -d '{"text": "…"}'`), h("div.row-line", can("api_keys:manage") && h("a.btn", { href: "#/keys?create=1" }, "Create a key"), h("a.btn", { href: "/api/v1/openapi.json" }, "OpenAPI document")))),
    panel("Connect an MCP client", h("div.stack", h("p", "Over stdio, on the host of the gateway:"), snippet(mcp), h("p", "Over HTTP, when the gateway runs with MCP_ENABLED=1 and MCP_API_KEY:"), snippet(overHttp))),
    panel("Back up", h("div.stack", h("p", "A backup is one file with all but typed-in provider keys. It is made while the gateway runs, on its host:"), snippet("python3 gateway.pyz backup gateway-backup.zip"), h("p", "And brought back into an empty data folder:"), snippet("python3 gateway.pyz restore gateway-backup.zip"))),
    panel("About this gateway", about)));
  return {};
}
