/*
 * `npm run release:dry-run`: releases the last commit, up to the upload, in a temporary clone. It checks that changesets
 * announce the changes of the API and that the workflow signs; sets the version; builds and packs; checks the packages
 * and their types; installs the tarballs on every supported line of Node and runs the tutorial there; writes the bills
 * of materials to `sbom`; and prints what would be published. It fails on the first step that fails.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { PNPM } from "./install.mjs";
import { LINES, nodeBinary } from "./node-lines.mjs";
import { root } from "./run.mjs";

/** Line of Node that the release workflow uses. Changesets needs 22 or newer. */
const RELEASE_LINE = "24";

/** Tests of what a release publishes, and of the files that name its version. */
const TESTS = [
  ...["published-packages", "api-reports", "installed-packages", "tutorial"].map(
    (name) => `test/package/${name}.long.test.ts`,
  ),
  ...["repository/repository", "deploy/manifests", "docs/pages"].map((name) => `test/${name}.test.ts`),
];

const shell = process.platform === "win32";
const node = nodeBinary(RELEASE_LINE);
const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
const temporary = mkdtempSync(join(tmpdir(), "tritonjs-release-"));
const clone = join(temporary, "tritonjs");

/** Runs a program in the clone with the release's Node. Throws if it fails. */
function run(title, command, args) {
  console.log(`\n${title}`);
  execFileSync(command, args, { cwd: clone, env, stdio: "inherit", shell });
}

/** The packages of the clone that are on their way to npm, with their manifests. */
function packages() {
  return readdirSync(join(clone, "packages")).map((name) =>
    JSON.parse(readFileSync(join(clone, "packages", name, "package.json"), "utf8")),
  );
}

const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

try {
  if (git("status", "--porcelain") !== "") console.warn("changes that are not committed are left out");
  git("clone", "--quiet", root, clone);
  const released = new Map(packages().map(({ name, version }) => [name, version]));
  // Without these, the tests would skip the lines of Node that they lack.
  mkdirSync(join(clone, "node_modules", ".cache"), { recursive: true });
  for (const line of LINES) {
    nodeBinary(line);
    const cached = join("node_modules", ".cache", `node-${line}`);
    symlinkSync(join(root, cached), join(clone, cached), "junction");
  }

  run("Dependencies and build", node, ["scripts/build.mjs"]);
  run("Changesets of API changes", node, ["scripts/release-api.mjs"]);
  run("Provenance", node, ["scripts/release-provenance.mjs"]);
  // Without changesets, the commit itself has the version that is released.
  if (readdirSync(join(clone, ".changeset")).some((file) => file.endsWith(".md") && file !== "README.md")) {
    run("Version", node, ["scripts/release-version.mjs"]);
    run("Build of the version", node, ["scripts/build.mjs"]);
  }
  run("Bills of materials", node, ["scripts/release-sbom.mjs", join(root, "sbom")]);
  run(`Tests on Node ${LINES.join(", ")}`, node, ["node_modules/vitest/vitest.mjs", "run", ...TESTS]);
  // The packages are built; their `prepack` would build each of them again.
  const publish = [
    "--filter",
    "./packages/*",
    "--config.ignore-scripts=true",
    "publish",
    "--dry-run",
    "--no-git-checks",
  ];
  run("Packing as a release does", "npx", ["--yes", PNPM, "--recursive", ...publish]);

  console.log(
    "\nA release of this commit would publish these packages with the tag latest, and tag the commit with each:",
  );
  for (const { name, version } of packages()) {
    console.log(`  ${name}@${version} (now ${released.get(name)})`);
  }
} catch (error) {
  // The program itself has said what failed.
  console.error(`\nthe dry run failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
