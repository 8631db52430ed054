/*
 * `npm run fuzz -- <target>`: bundles the fuzzer of `test/fuzz` with the sources that its targets import, and runs it.
 * `--help` lists the targets and options.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { build, root, runNode } from "./run.mjs";

const folder = join(root, "test", "fuzz");
// A folder of this process, as several runs may bundle at the same time.
const output = join(root, "node_modules", ".cache", "tritonjs-fuzz", String(process.pid));

/** Imports of packages' sources are resolved as in their packages, which the bundle is not part of. */
const resolveInPackages = {
  name: "resolve-in-packages",
  async resolveId(source, importer, { isEntry }) {
    if (isEntry || /^([./\0]|node:|@oxc-project\/)/.test(source)) return undefined;
    if (importer?.startsWith(join(root, "packages")) !== true || source.startsWith("@tritonjs/")) {
      return { id: source, external: true };
    }
    const found = await this.resolve(source, importer, { skipSelf: true });
    return { id: found?.id ?? source, external: true };
  },
};

if (!existsSync(join(root, "packages", "cli", "dist", "main.js"))) build();
const bundle = await rolldown({
  input: { command: join(folder, "command.ts"), "fuzz-process": join(folder, "engine", "fuzz-process.ts") },
  platform: "node",
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
  plugins: [resolveInPackages],
});
await bundle.write({
  dir: output,
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  sourcemap: true,
});
await bundle.close();
process.once("exit", () => rmSync(output, { recursive: true, force: true }));
runNode(join(output, "command.js"), process.argv.slice(2));
