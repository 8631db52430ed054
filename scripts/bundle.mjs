/*
 * `node scripts/bundle.mjs [package ...]`: joins the modules of each package, several hundred sources, to a few
 * JavaScript files in `dist`, beside the compiler's declarations. Node resolves, reads and compiles each file
 * separately, so importing a few files takes half the time. A package that is up to date is skipped: tests may pack a
 * package while others import it.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, posix, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./run.mjs";

/** Matches the URL of a thread's or process's program in a module. */
const PROGRAM = /new URL\(\s*"(\.[^"]+\.js)",\s*import\.meta\.url/g;

/** Placeholder for the URL of a module, until the output file of its code is known. */
const PLACE = /__PLACE_OF__\("([^"]+)"\)/g;

/** Packages that become part of a package of ours: src/protobuf.ts of `grpc-messages` says why. */
const JOINED = /^protobufjs\//;
const JOINED_FOLDER = /^.*\/node_modules\/(protobufjs|long)(?=\/)/;
const isJoined = (importer) => importer !== undefined && JOINED_FOLDER.test(slashed(importer));

/** Files of other packages that a package of ours has in it, by their paths there. Git ignores them. */
const COPIED = {
  http: {
    "page/preact.js": ["htm", "preact/standalone.module.js"],
    "page/uplot.js": ["uplot", "dist/uPlot.iife.min.js"],
    "page/uplot.css": ["uplot", "dist/uPlot.min.css"],
  },
  "onnxruntime-wasm": Object.fromEntries(
    [
      "ort.node.min.mjs",
      "ort.wasm.bundle.min.mjs",
      "ort-wasm-simd-threaded.mjs",
      "ort-wasm-simd-threaded.wasm",
    ].map((file) => [`ort/${file}`, ["onnxruntime-web", `dist/${file}`]]),
  ),
};

/** Modules of other packages that a page of ours loads, each as one file with all that it needs. Git ignores them. */
const FOR_PAGES = { http: { "page/time-travel.js": "operations/src/time-travel/explain.ts" } };

/** Files that are copied byte for byte: the licence is in a file beside them. */
const UNCHANGED = /^ort\//;

/** Its modification time is the time of the last bundling. */
const STAMP = ".bundled";

/** Resolves the place of a module against the file that has its code. */
const PLACE_OF = String.raw`function __placeOf(path) {
	return new URL(path, import.meta.url ?? "file:///" + encodeURI(__filename.replace(/\\/g, "/").replace(/^\//, ""))).href;
}
`;

const slashed = (path) => path.split(sep).join("/");
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const isSource = (file) => file.endsWith(".ts") && !file.endsWith(".d.ts");

/** Files of a target in a manifest, which may differ by condition. */
function filesOf(target) {
  if (typeof target === "string") return [target];
  const { types, ...others } = target;
  return Object.values(others).flatMap(filesOf);
}

/**
 * Entry points: paths in `dist`, without extension, of files that users import, commands, and programs of threads and
 * processes.
 */
function entryNames({ folder, source }) {
  const { exports, imports = {}, bin = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const targets = [...Object.values(exports), ...Object.values(imports)].flatMap(filesOf);
  const named = [...targets, ...Object.values(bin)]
    .filter((file) => /^(\.\/)?dist\/.*\.js$/.test(file))
    .map((file) => slashed(relative("dist", file)));
  const programs = filesIn(source)
    .filter(isSource)
    .flatMap((file) => {
      const code = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
      return [...code.matchAll(PROGRAM)].map(([, program]) =>
        slashed(relative(source, resolve(dirname(file), program))),
      );
    })
    // Files beside the sources, such as modules for browsers, are published as they are.
    .filter((program) => !program.startsWith("../"));
  return [...new Set([...named, ...programs])].map((file) => file.replace(/\.js$/, ""));
}

/**
 * Keeps `import.meta.url` at the module's place in the tree, wherever its code goes. Modules use it to find other
 * files. Bundlers of applications take a `new URL("x", import.meta.url)` for a file to copy, so the place is the
 * argument of a function. A bundle of CommonJS has no `import.meta.url`.
 */
const keepPlaces = (source) => ({
  name: "keep-places",
  transform(code, id) {
    return code.replaceAll("import.meta.url", `__PLACE_OF__("${slashed(relative(source, id))}")`);
  },
  renderChunk(code, { fileName }) {
    if (code.search(PLACE) < 0) return null;
    const placed = code.replace(PLACE, (_, place) => {
      const path = posix.relative(posix.dirname(fileName), place.replace(/\.ts$/, ".js"));
      return `__placeOf("${path.startsWith(".") ? path : `./${path}`}")`;
    });
    return `${placed}\n${PLACE_OF}`;
  },
});

/** Puts the licences of packages that became part of a file before its code. */
const keepLicences = {
  name: "keep-licences",
  renderChunk(code, { moduleIds }) {
    const joined = new Set(moduleIds.map((id) => JOINED_FOLDER.exec(slashed(id))?.[0]).filter(Boolean));
    return [...joined].map(licenceOf).join("") + code;
  },
};

/** The licence of a package, as a comment of JavaScript or CSS. */
function licenceOf(folder) {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const text = readFileSync(join(folder, "LICENSE"), "utf8").trim();
  return `/*!\nThis file contains ${name} ${version}. Its licence:\n\n${text.replaceAll("*/", "* /")}\n*/\n`;
}

function isUpToDate({ folder, source, target }) {
  const stamp = statSync(join(target, STAMP), { throwIfNoEntry: false });
  if (stamp === undefined) return false;
  const forPages = Object.values(FOR_PAGES[basename(folder)] ?? {}).flatMap((file) =>
    filesIn(join(root, "packages", dirname(file))),
  );
  const made = [
    ...filesIn(source),
    ...forPages,
    join(folder, "package.json"),
    fileURLToPath(import.meta.url),
  ];
  return made.every((file) => statSync(file).mtimeMs < stamp.mtimeMs);
}

/** Removes files without a source, so that they are not published. */
function removeOthers({ source, target }, written) {
  for (const file of filesIn(target)) {
    const name = slashed(relative(target, file));
    const isDeclaration = name.endsWith(".d.ts") && existsSync(join(source, name.replace(/\.d\.ts$/, ".ts")));
    if (!written.has(name) && !isDeclaration && name !== ".tsbuildinfo") rmSync(file);
  }
}

function writeChanged(file, text) {
  if (existsSync(file) && readFileSync(file, "utf8") === text) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function bundle(place) {
  const { rolldown } = await import("rolldown");
  const { folder, source, target } = place;
  const started = new Date();
  const build = await rolldown({
    input: Object.fromEntries(entryNames(place).map((name) => [name, join(source, `${name}.ts`)])),
    platform: "node",
    tsconfig: join(folder, "tsconfig.json"),
    transform: { target: "es2022" },
    resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
    // Other packages, and `#names` of the package itself, are external. Helpers for the syntax of the sources are part
    // of the bundle, and so are the packages of JOINED with what they import.
    external: (id, importer) =>
      !/^([./\0]|[A-Za-z]:|@oxc-project\/)/.test(id) && !JOINED.test(id) && !isJoined(importer),
    plugins: [keepPlaces(source), keepLicences],
  });
  const { output } = await build.generate({
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    // The declarations have the doc comments.
    comments: { jsdoc: false },
  });
  await build.close();
  for (const { fileName, code } of output) writeChanged(join(target, fileName), code);
  for (const [fileName, [name, file]] of Object.entries(COPIED[basename(folder)] ?? {})) {
    const from = join(folder, "node_modules", name);
    if (UNCHANGED.test(fileName)) copyFileSync(join(from, file), join(folder, fileName));
    else writeChanged(join(folder, fileName), licenceOf(from) + readFileSync(join(from, file), "utf8"));
  }
  for (const [fileName, file] of Object.entries(FOR_PAGES[basename(folder)] ?? {})) {
    const code = await bundleForPage(join(root, "packages", file));
    writeChanged(join(folder, fileName), code);
  }
  removeOthers(place, new Set(output.map(({ fileName }) => fileName)));
  // The stamp is older than a source that was saved during the bundling.
  writeFileSync(join(target, STAMP), "");
  utimesSync(join(target, STAMP), started, started);
}

/** A module and all that it needs as one file for browsers. */
async function bundleForPage(input) {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input,
    platform: "browser",
    transform: { target: "es2022" },
    resolve: {
      alias: { "@tritonjs/protocol": join(root, "packages/protocol/src/triton-error.ts") },
      extensionAlias: { ".js": [".ts", ".js"] },
    },
    external: /^node:/,
  });
  const { output } = await build.generate({ minify: true });
  await build.close();
  return output[0].code;
}

const packages = join(root, "packages");
const names = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(packages);
for (const name of names) {
  const folder = join(packages, name);
  const place = { folder, source: join(folder, "src"), target: join(folder, "dist") };
  if (!isUpToDate(place)) await bundle(place);
}
