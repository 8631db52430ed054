/*
 * Checks that no exported name has two meanings: each name is declared in one source file. TWINS lists the exceptions.
 * CONTRACTS lists names that several modules must export, because the same code loads these modules.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { root as repository } from "./run.mjs";

/** Root of the checked repository: this one, or the path in the first argument. */
const root = process.argv[2] ?? repository;

/** Names, each with the interface that requires it. */
const CONTRACTS = {
  defaultFrontends: "a package of frontends (core/src/frontend/serve-frontends.ts)",
  repositoryBackends: "a package of backends (repository/src/backends/find-backend.ts)",
  readModelFile: "the import `#model-file` of backends, which is another one in browsers",
  load: "a program of a worker (core/src/worker)",
  read: "a program of a worker that reads a file of a model (backends/src/description/description-program.ts)",
  describe: "a program of a worker that describes a model (backends/src/description/description-program.ts)",
};

/** Folders that offer the same over HTTP and gRPC. A name in files of the same name there has one meaning. */
const TWINS = [
  ["packages/client/src/http/", "packages/client/src/grpc/"],
  ["packages/http/src/", "packages/grpc/src/"],
];

/** Files that offer the same on different hosts. */
const FORMS = ["host.ts", "host-web.ts", "files.ts"].map((file) =>
  join("packages", "core", "src", "system", file),
);

const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;

function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith(".d.ts")) yield path;
  }
}

const files = new Map();
for (const name of readdirSync(join(root, "packages"))) {
  for (const path of sources(join(root, "packages", name, "src"))) {
    const code = readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    for (const [, declared] of code.matchAll(DECLARATION)) {
      const where = files.get(declared) ?? new Set();
      files.set(declared, where.add(relative(root, path)));
    }
  }
}

const areForms = (where) => where.every((file) => FORMS.includes(file));

const areTwins = ([one, other, ...more]) =>
  more.length === 0 &&
  basename(one) === basename(other) &&
  TWINS.some((folders) => folders.every((folder) => [one, other].some((file) => file.startsWith(folder))));

const faults = [...files].filter(
  ([name, where]) => where.size > 1 && !(name in CONTRACTS) && !areTwins([...where]) && !areForms([...where]),
);
for (const [name, where] of faults)
  console.error(`${name} is exported by ${[...where].join(" and ")}: rename one`);
if (faults.length > 0) process.exit(1);
console.log("each exported name has one meaning");
