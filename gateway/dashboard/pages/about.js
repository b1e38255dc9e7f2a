// How programs connect, and what this gateway is: version, file, matcher, and what it is made of.

import { api, can, save } from "../api.js";
import { fill, h, span } from "../dom.js";
import { button, code, facts, load, panel, snippet, status, tag, words } from "../ui.js";
import { table } from "../table.js";
import { scanLine } from "./keys.js";

export async function draw({ main, signal }) {
  const body = h("div.grid2");
  load(body, () => api.get("/api/about", {}, signal), (found) => {
    const { archive_sha256: sha256, checks, components, data_dir, local_rules, mcp_url, program } = found, [command, ...args] = program;
    return [
      panel("Connect a program", h("div.stack", h("p", "Point an OpenAI client at this address, with an API key of this gateway."), snippet(`export OPENAI_BASE_URL=${location.origin}/api/v1\nexport OPENAI_API_KEY=svc_…`), h("p", "Or scan a text:"), snippet(scanLine("svc_…", "…")), h("div.row-line", can("api_keys:manage") && h("a.btn", { href: "#/keys?create=1" }, "Create a key"), h("a.btn", { href: "/api/v1/openapi.json" }, "OpenAPI document")))),
      panel("Connect an MCP client", h("div.stack",
        h("p", "Over stdio, on the gateway’s host:"),
        snippet(client({ command, args: [...args, "mcp", ...folder(data_dir)] })),
        h("p", mcp_url ? "Over HTTP, with the key in MCP_API_KEY:" : "Over HTTP, when you start the gateway with MCP_ENABLED=1 and MCP_API_KEY:"),
        snippet(client({ type: "http", url: mcp_url || "http://127.0.0.1:5002/mcp", headers: { Authorization: "Bearer …" } })))),
      panel("Back up", h("div.stack",
        h("p", "A backup is one file. It contains everything except provider keys that you entered directly. Run this on the gateway’s host, while the gateway runs:"),
        snippet(shell([...program, "backup", ...folder(data_dir), "gateway-backup.zip"])),
        h("p", "Restore it into an empty data folder:"),
        snippet(shell([...program, "restore", "--data-dir", "/path/to/an/empty/folder", "gateway-backup.zip"])))),
      panel("About this gateway", h("div.stack",
        facts(["Version", found.version], ["Build", code(found.build)], ["File", sha256 ? code(sha256) : "A checkout, not an archive"], ["Python", found.python], ["Matcher", found.matcher], ["Rules", `${found.rules}${local_rules ? `, ${local_rules} of them local` : ""}, SHA-256 ${found.rules_digest.slice(0, 16)}…`], ["Uptime", span(found.uptime_seconds)], ["Sign-in", found.rbac_enabled ? "Users and roles" : "Off: this host only"], ...Object.entries(checks).map(([name, state]) => [words(name), status(state)])),
        components.length > 0 && h("details.more", h("summary", `${components.length} bundled components`), table({ label: "Bundled components", rows: components, columns: [{ label: "Component", of: "name" }, { of: "version", as: code }, { label: "Package", of: "purl", as: code, low: 1 }] }).node),
        button("Download the bill of materials", async () => { const { text } = await api.text("/api/about/sbom"); save("gateway.sbom.cdx.json", text, "application/vnd.cyclonedx+json"); }, { sign: "down", disabled: !sha256 }),
        !sha256 && tag("Only the archive contains it; a checkout does not."))),
    ];
  });
  fill(main, body);
  return {};
}

/** The settings of an MCP client that knows this gateway as `service`, as docs/reference/mcp-tools.md does. */
const client = (service) => JSON.stringify({ mcpServers: { service } }, null, 2);
/** The flag that names the data folder; a gateway in memory has none. */
const folder = (path) => (path === ":memory:" ? [] : ["--data-dir", path]);
/** Words as a line for a shell, quoted where a shell would read them otherwise. */
const shell = (list) => list.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
