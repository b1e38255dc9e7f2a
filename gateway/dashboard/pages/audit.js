// The audit log with its chain and export, and reports made of what the gateway keeps.

import { sections } from "./sections.js";

export const draw = (context, here) => sections(context, here, "audit", [
  { id: "log", label: "Audit log", needs: ["audit:read"] },
  { id: "chain", label: "Chain", needs: ["audit:read"] },
  { id: "reports", label: "Reports", needs: ["reports:read"] },
]);
