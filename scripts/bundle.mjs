/*
 * `node scripts/bundle.mjs core`: joins the compiled modules of a package, several hundred, to a few files in its folder
 * `bundle`. Node looks up, reads and compiles each file for itself, so that a few are imported in half the time. This is what
 * is published: `pnpm pack` runs it (`prepack`), and .pnpmfile.mjs has the package's names lead there. In the workspace
 * everything imports the modules as they are.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, posix, relative, resolve, sep } from "node:path";
import { rolldown } from "rolldown";
import { root } from "./run.mjs";

/** Where a module names the program of a thread or a process. */
const PROGRAM = /new URL\(\s*"(\.[^"]+\.js)",\s*import\.meta\.url/g;

/** Stands for the URL of a module until it is known which file its code has gone to. */
const PLACE = /__PLACE_OF__\("([^"]+)"\)/g;

const slashed = (path) => path.split(sep).join("/");

/** Files of a package that are imported or started by their names: public ones, commands, programs of threads and processes. */
function entriesOf(folder, dist) {
  const { exports, bin = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const named = [...Object.values(exports).map((target) => target.default), ...Object.values(bin)];
  const files = named.filter((file) => file?.endsWith(".js")).map((file) => join(folder, file));
  for (const name of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".js")) continue;
    const file = join(dist, name);
    const code = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    for (const [, program] of code.matchAll(PROGRAM)) files.push(resolve(dirname(file), program));
  }
  return Object.fromEntries(files.map((file) => [slashed(relative(dist, file)).replace(/\.js$/, ""), file]));
}

/** Wherever the code of a module goes, `import.meta.url` stays its place in the tree, from which it finds other files. */
const keepPlaces = (dist) => ({
  name: "keep-places",
  transform(code, id) {
    return code.replaceAll("import.meta.url", `__PLACE_OF__("${slashed(relative(dist, id))}")`);
  },
  renderChunk(code, { fileName }) {
    return code.replace(PLACE, (_, place) => {
      const path = posix.relative(posix.dirname(fileName), place);
      return `new URL("${path.startsWith(".") ? path : `./${path}`}", import.meta.url).href`;
    });
  },
});

const bundle = async (name) => {
  const folder = join(root, "packages", name);
  const [dist, target] = [join(folder, "dist"), join(folder, "bundle")];
  const build = await rolldown({
    input: entriesOf(folder, dist),
    platform: "node",
    // Other packages, and `#names` of the package itself.
    external: (id) => !/^([./]|[A-Za-z]:)/.test(id),
    plugins: [keepPlaces(dist)],
  });
  rmSync(target, { recursive: true, force: true });
  await build.write({ dir: target, entryFileNames: "[name].js", chunkFileNames: "chunks/[name].js" });
  await build.close();
};

for (const name of process.argv.slice(2)) await bundle(name);
