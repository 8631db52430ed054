/*
 * `npm run audit`: fails if a dependency of a package has a published vulnerability of level high or critical,
 * and with another exit code if the registry does not answer: dependencies that nobody has checked do not pass.
 */
import { spawnSync } from "node:child_process";
import { PNPM } from "./install.mjs";
import { root } from "./run.mjs";

/** The exit code for dependencies that could not be checked. */
const NOT_AUDITED = 2;

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
  if (isUnreachable) console.error("::error::the dependencies were not audited: the registry did not answer");
  process.exitCode = isUnreachable ? NOT_AUDITED : 1;
}
