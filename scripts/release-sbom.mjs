/*
 * `npm run release:sbom -- <folder>`: writes a software bill of materials in CycloneDX for each package, from the
 * lockfile: `tritonjs-core-1.0.0.cdx.json`. The default folder is `sbom`. Fails if a package has no bill, or if its
 * bill lacks one of its dependencies.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
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

const faults = readdirSync(join(root, "packages")).flatMap((name) => {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  const file = join(folder, `tritonjs-${name}-${manifest.version}.cdx.json`);
  if (!existsSync(file)) return [`there is no bill of materials ${file}`];
  const { bomFormat, components } = JSON.parse(readFileSync(file, "utf8"));
  if (bomFormat !== "CycloneDX") return [`${file}: expected the format CycloneDX, got ${bomFormat}`];
  const listed = new Set(components.map(({ group, name }) => (group ? `${group}/${name}` : name)));
  return Object.keys(manifest.dependencies ?? {})
    .filter((dependency) => !listed.has(dependency))
    .map((dependency) => `${file} does not list ${dependency}`);
});
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exitCode = 1;
}
