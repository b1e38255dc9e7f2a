// Posture: what the trust audit checks, how to mend what fails, how that went over time; and scans of what is pointed at.

import { sections } from "./sections.js";

export const draw = (context, here) => sections(context, here, "posture", [
  { id: "checks", label: "Trust audit", needs: ["posture:read"] },
  { id: "scans", label: "Security scans", needs: ["shield:read"] },
]);
