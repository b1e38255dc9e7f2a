// The shield: try a text, see the rules, write policies, look at accepted risks, run the validation suite.

import { sections } from "./sections.js";

export const draw = (context, here) => sections(context, here, "shield", [
  { id: "playground", label: "Playground", needs: ["shield:read"] },
  { id: "rules", label: "Rules", needs: ["shield:read"] },
  { id: "policies", label: "Policies", needs: ["policies:read"] },
  { id: "acceptances", label: "Accepted risks", needs: ["risk_acceptances:read"] },
  { id: "suite", label: "Validation suite", needs: ["shield:read"] },
]);
