// Settings: providers, who may come in, users and sessions, what is kept how long, where events go, and what this is.

import { sections } from "./sections.js";

export const draw = (context, here) => sections(context, here, "settings", [
  { id: "providers", label: "Providers", needs: ["providers:read"] },
  { id: "access", label: "Access list", needs: ["access:read"] },
  { id: "users", label: "Users", needs: ["users:read"] },
  { id: "sessions", label: "Sessions", needs: ["users:read"] },
  { id: "options", label: "Options", needs: ["settings:read"] },
  { id: "outputs", label: "Event outputs", needs: ["settings:read"] },
  { id: "about", label: "Connect and about", needs: ["settings:read"] },
]);
