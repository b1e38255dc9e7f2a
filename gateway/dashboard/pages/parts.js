// The pages of several parts, and their tabs: name of the module, label, and what a role needs to see it.

export const PARTS = {
  shield: [["playground", "Playground", "shield:read"], ["rules", "Rules", "shield:read"], ["policies", "Policies", "policies:read"], ["detectors", "Detectors", "policies:read"], ["acceptances", "Accepted risks", "risk_acceptances:read"], ["suite", "Validation suite", "shield:read"]],
  posture: [["checks", "Trust audit", "posture:read"], ["scans", "Security scans", "shield:read"]],
  audit: [["log", "Audit log", "audit:read"], ["chain", "Hash chain", "audit:read"], ["reports", "Reports", "reports:read"]],
  settings: [["providers", "Providers", "providers:read"], ["access", "Access list", "access:read"], ["users", "Users", "users:read"], ["sessions", "Sessions", "users:read"], ["options", "Options", "settings:read"], ["outputs", "Event outputs", "settings:read"], ["about", "Connect and about", "settings:read"]],
};
