/*
 * `npm run audit`: fails if a dependency of a package has a published vulnerability of level high or critical. If the
 * registry does not answer, it warns and ends without a failure: a release must not depend on that service.
 */
import { spawnSync } from "node:child_process";
import { PNPM } from "./install.mjs";
import { root } from "./run.mjs";

/** Faults of the way to the registry, as pnpm and npx report them. */
const UNREACHABLE =
  /ERR_PNPM_AUDIT_BAD_RESPONSE|ERR_PNPM_META_FETCH_FAIL|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|E(?:403|404|405|5\d\d)\b/;

const { status, stdout, stderr } = spawnSync(
  "npx",
  ["--yes", PNPM, "audit", "--prod", "--audit-level", "high"],
  { cwd: root, encoding: "utf8", shell: process.platform === "win32" },
);
process.stdout.write(stdout ?? "");
process.stderr.write(stderr ?? "");
if (status !== 0) {
  const isUnreachable = UNREACHABLE.test(`${stdout}${stderr}`);
  if (isUnreachable)
    console.warn("::warning::the dependencies were not audited: the registry did not answer");
  process.exitCode = isUnreachable ? 0 : 1;
}
