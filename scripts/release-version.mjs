/*
 * `npm run release:version`: turns the changesets into a version of all packages and their changelogs, and writes the
 * version to the other files that contain it. It needs Node 22 or newer, as changesets does.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { install, PNPM } from "./install.mjs";
import { root, run, runNode, tool } from "./run.mjs";

/** Other files with the version. Each expression matches what stands before it. */
const PLACES = {
  "package.json": /^ {2}"version": "/m,
  "packages/core/src/version.ts": /^export const VERSION: string = "/m,
  "deploy/Dockerfile": /^ARG TRITONJS_VERSION=/gm,
  "deploy/compose/compose.yaml": /image: tritonjs:/,
  "deploy/helm/tritonjs/Chart.yaml": /^(?:version|appVersion): /gm,
  "deploy/kserve/cluster-serving-runtime.yaml": /image: tritonjs:/,
  "deploy/kserve/multi-model-runtime.yaml": /image: tritonjs:/,
  "deploy/kubernetes/base/kustomization.yaml": /newTag: /,
};

install();
runNode(tool("@changesets/cli", "bin.js"), ["version"]);
const { version } = JSON.parse(readFileSync(join(root, "packages", "core", "package.json"), "utf8"));
for (const [path, place] of Object.entries(PLACES)) {
  const file = join(root, path);
  const versions = new RegExp(`(${place.source})[\\w.-]+`, place.flags);
  const text = readFileSync(file, "utf8");
  if (!versions.test(text)) throw new Error(`${path}: expected the version after ${place}`);
  writeFileSync(
    file,
    text.replace(versions, (_, before) => before + version),
  );
}
run("npx", ["--yes", PNPM, "install", "--lockfile-only"], { shell: process.platform === "win32" });
