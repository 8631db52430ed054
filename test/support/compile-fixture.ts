import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { repositoryRoot } from "./repository.js";

const tsc = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");

/**
 * Compiles one TypeScript file as users do and imports it: for syntax that the test runner does not know, such as
 * decorators.
 *
 * @param decorators "classic" for `experimentalDecorators`
 */
export async function importCompiled<T>(
  source: URL,
  decorators: "standard" | "classic" = "standard",
): Promise<T> {
  const folder = join(repositoryRoot, "node_modules/.cache/compiled-fixtures", decorators);
  await mkdir(folder, { recursive: true });
  const options = "--target ES2022 --module NodeNext --skipLibCheck --strict --types node --ignoreConfig";
  const classic = decorators === "classic" ? ["--experimentalDecorators", "--emitDecoratorMetadata"] : [];
  const args = [tsc, ...options.split(" "), ...classic, "--outDir", folder, fileURLToPath(source)];
  await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot });
  return import(pathToFileURL(join(folder, basename(source.pathname).replace(/\.ts$/, ".js"))).href);
}
