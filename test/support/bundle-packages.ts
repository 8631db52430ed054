import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { repositoryRoot } from "./repository.js";

/** Runs once before the tests: they import packages whose sources may be newer than their bundles. */
export default function bundlePackages(): void {
  execFileSync(process.execPath, [join(repositoryRoot, "scripts", "bundle.mjs")], { stdio: "inherit" });
}
