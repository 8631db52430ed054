/*
 * Hooks of Node's module loader: a program runs the packages from their sources instead of the bundles, and each function
 * that is entered adds its file to `globalThis.entered`, if that is an array.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseSync, transformSync } from "rolldown/utils";

/** Root of the tree whose packages run. `npm run bench -- way` also measures other revisions. */
const root = process.env.WAY_TREE ?? fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = /\/packages\/[^/]+\/src\//;

/** The source of a file in a package's `dist`, if there is one. */
function sourceOf(folder, target) {
  const source = join(folder, target.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts"));
  return pathToFileURL(existsSync(source) ? source : join(folder, target)).href;
}

function packageJson(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

export function resolve(specifier, context, next) {
  const [, name, subpath = ""] = /^@tritonjs\/([^/]+)(\/.*)?$/.exec(specifier) ?? [];
  if (name !== undefined) {
    let folder = join(root, "packages", name);
    let entry = `.${subpath}`;
    // Before the packages were joined, `@tritonjs/llm/openai` was the package `openai`.
    if (!existsSync(folder)) {
      folder = join(root, "packages", subpath.slice(1));
      entry = ".";
    }
    const target = packageJson(folder).exports[entry].default;
    return { url: sourceOf(folder, target), shortCircuit: true };
  }
  if (specifier.startsWith("#") && SOURCE.test(context.parentURL)) {
    const folder = fileURLToPath(context.parentURL).replace(/(\/packages\/[^/]+)\/.*/, "$1");
    const { node, default: target } = packageJson(folder).imports[specifier];
    return { url: sourceOf(folder, node?.default ?? target), shortCircuit: true };
  }
  // The compiler's helper for `using`.
  if (specifier.startsWith("@oxc-project/runtime/")) {
    return { url: new URL("using-context.mjs", import.meta.url).href, shortCircuit: true };
  }
  if (/^(\.|file:)/.test(specifier) && specifier.endsWith(".js")) {
    const source = new URL(specifier.replace(/\.js$/, ".ts"), context.parentURL);
    if (SOURCE.test(source.pathname) && existsSync(source)) return { url: source.href, shortCircuit: true };
  }
  return next(specifier, context);
}

export function load(url, context, next) {
  if (!SOURCE.test(url) || !url.endsWith(".ts")) return next(url, context);
  // Threads are started by the path of a program, which must exist.
  const source = readFileSync(fileURLToPath(url), "utf8").replace(
    /(new URL\("\.[^"]+)\.js(", import\.meta\.url\))/g,
    "$1.ts$2",
  );
  const { code } = transformSync(url, source, { lang: "ts", sourceType: "module", target: "es2022" });
  return {
    format: "module",
    source: withEntries(code, url.replace(/.*\/packages\//, "")),
    shortCircuit: true,
  };
}

/** Adds to each function a statement that notes its entry. */
function withEntries(code, file) {
  const note = `globalThis.entered?.push(${JSON.stringify(file)})`;
  const insertions = [];
  const visit = (node) => {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) {
      for (const one of node) visit(one);
      return;
    }
    const { type, body } = node;
    if (typeof type === "string" && type.includes("Function") && body != null) {
      if (body.type === "BlockStatement") insertions.push([body.start + 1, `${note};`]);
      else insertions.push([body.start, `(${note},`], [body.end, ")"]);
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseSync(file, code).program);
  insertions.sort(([one], [other]) => one - other);
  let noted = "";
  let end = 0;
  for (const [place, text] of insertions) {
    noted += code.slice(end, place) + text;
    end = place;
  }
  return noted + code.slice(end);
}
