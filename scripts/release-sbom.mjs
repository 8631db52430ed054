/*
 * `npm run release:sbom -- <folder>`: writes a software bill of materials in CycloneDX for each package, from the
 * lockfile: `tritonjs-core-1.0.0.cdx.json`. The default folder is `sbom`.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { PNPM } from "./install.mjs";
import { root, run } from "./run.mjs";

const folder = resolve(root, process.argv[2] ?? "sbom");
mkdirSync(folder, { recursive: true });
run(
  "npx",
  [
    ...["--yes", PNPM, "sbom", "--sbom-format", "cyclonedx", "--prod", "--lockfile-only"],
    ...["--split", "--filter", "./packages/*", "--out", join(folder, "%s-%v.cdx.json")],
  ],
  { shell: process.platform === "win32" },
);
