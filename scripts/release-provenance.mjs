/*
 * Checks that `.github/workflows/release.yml` publishes with provenance: a signed statement which says what commit and
 * what workflow built a package. pnpm itself is asked, with the environment of the step that publishes.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { PNPM } from "./install.mjs";
import { root } from "./run.mjs";

const WORKFLOW = ".github/workflows/release.yml";
const read = (...path) => readFileSync(join(root, ...path), "utf8");

const faults = [];
function expectEqual(what, expected, actual) {
  if (actual !== expected) faults.push(`${what}: expected ${expected}, got ${actual}`);
}

const jobs = Object.values(parse(read(WORKFLOW)).jobs);
const publishes = (step) => step.with?.["publish-script"] !== undefined;
const job = jobs.find(({ steps }) => steps?.some(publishes));
if (job === undefined) faults.push(`${WORKFLOW}: expected a step with publish-script, got none`);
else {
  // Signing needs a token of the workflow's identity.
  expectEqual(
    `${WORKFLOW}: permission id-token of the job that publishes`,
    "write",
    job.permissions?.["id-token"],
  );
  const setting = pnpmSetting("provenance", job.steps.find(publishes).env);
  expectEqual(`${WORKFLOW}: pnpm's setting provenance in the step that publishes`, "true", setting);
}

// npm accepts a statement only if the manifest names the repository of the workflow.
const { repository } = JSON.parse(read("package.json"));
for (const name of readdirSync(join(root, "packages"))) {
  const manifest = JSON.parse(read("packages", name, "package.json"));
  expectEqual(`${manifest.name}: repository.url`, repository.url, manifest.repository?.url);
  expectEqual(`${manifest.name}: publishConfig.access`, "public", manifest.publishConfig?.access);
  expectEqual(`${manifest.name}: publishConfig.provenance`, undefined, manifest.publishConfig?.provenance);
}

if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
console.log("provenance: pnpm signs each package in the release workflow");

/** A setting as pnpm reads it from the repository and an environment, without that of this process. */
function pnpmSetting(name, env) {
  const own = Object.entries(process.env).filter(([key]) => !/^p?npm_config_provenance$/i.test(key));
  return execFileSync("npx", ["--yes", PNPM, "config", "get", name], {
    cwd: root,
    encoding: "utf8",
    env: { ...Object.fromEntries(own), ...env },
    stdio: ["ignore", "pipe", "inherit"],
    shell: process.platform === "win32",
  }).trim();
}
