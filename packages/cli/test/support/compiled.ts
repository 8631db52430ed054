import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const tsc = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");
/** The folder lies inside the repository, where the compiler finds the packages. */
const cache = fileURLToPath(new URL("../../../../node_modules/.cache/", import.meta.url));

/** Compiles files, which may lie in folders, and returns what the compiler reports. */
export async function compiled(files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(cache, { recursive: true });
  const project = await mkdtemp(join(cache, "types-"));
  try {
    const paths = Object.keys(files).map((name) => join(project, name));
    await Promise.all(
      Object.values(files).map(async (text, i) => {
        await mkdir(dirname(paths[i]!), { recursive: true });
        await writeFile(paths[i]!, text);
      }),
    );
    const options =
      "--noEmit --strict --target ES2022 --module NodeNext --skipLibCheck --types node --ignoreConfig";
    const { stdout } = await promisify(execFile)(process.execPath, [
      tsc,
      ...options.split(" "),
      ...paths,
    ]).catch((error: { stdout: string }) => error);
    return stdout;
  } finally {
    await rm(project, { recursive: true });
  }
}
