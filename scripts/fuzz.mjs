/*
 * `npm run fuzz -- <target>`: bundles the fuzzer of `test/fuzz` with the sources that its targets import, and runs it.
 * `--help` lists the targets and options.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { rolldown } from "rolldown";
import { build, root, runNode } from "./run.mjs";

const folder = join(root, "test", "fuzz");
const output = join(root, "node_modules", ".cache", "tritonjs-fuzz");

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
runNode(join(dirname(join(output, "command.js")), "command.js"), process.argv.slice(2));
