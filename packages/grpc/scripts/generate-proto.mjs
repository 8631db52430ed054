// Makes the static codec of src/proto/generated from proto/*.proto. `node scripts/generate-proto.mjs [folder]`
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const packageFolder = join(dirname(fileURLToPath(import.meta.url)), "..");
const pbjs = join(
  dirname(createRequire(import.meta.url).resolve("protobufjs-cli/package.json")),
  "bin",
  "pbjs",
);

const OPTIONS = [
  ...["--target", "static-module", "--wrap", "esm", "--es6", "--dts"],
  ...["--dependency", "protobufjs/minimal.js"],
  // A root of our own: the default one is shared by every static module in the process.
  ...["--root", "tritonjs"],
  ...["--no-verify", "--no-delimited", "--no-typeurl", "--no-service", "--no-create"],
];
const SOURCES = ["grpc_service.proto", "health.proto"];

const folder = process.argv[2] ?? join(packageFolder, "src", "proto", "generated");
const script = join(folder, "index.js");
const types = join(folder, "index.d.ts");
const sources = SOURCES.map((name) => join(packageFolder, "proto", name));

await mkdir(folder, { recursive: true });
await run(process.execPath, [
  pbjs,
  ...OPTIONS,
  "--path",
  join(packageFolder, "proto"),
  "--out",
  script,
  ...sources,
]);
await writeFile(script, slimScript(await readFile(script, "utf8")));
await writeFile(types, slimTypes(await readFile(types, "utf8")));

/** Leaves out comments and the conversions to plain objects, which nothing here calls; 64-bit zeros are numbers. */
function slimScript(text) {
  return withoutBlankRuns(
    text
      .replace(/^ *\/\*\*[\s\S]*?\*\/\n/gm, "")
      .replace(/^( *)[\w.]+\.(?:toObject|prototype\.toJSON) = function[\s\S]*?^\1\};\n/gm, "")
      .replaceAll(/\$util\.Long \? \$util\.Long\.fromBits\(0,0,(?:true|false)\) : 0/g, "0")
      .replace(/^( +)/gm, (indent) => " ".repeat(indent.length / 2)),
  );
}

/** 64-bit fields are numbers where those are exact and bigints elsewhere: see src/proto/message-reader.ts. */
function slimTypes(text) {
  return withoutBlankRuns(
    text
      .replace(/^import Long = require\("long"\);\n/m, "")
      .replace(/^ *\/\*\*[\s\S]*?\*\/\n/gm, "")
      .replace(/^ *(?:public )?(?:static )?(?:toObject|toJSON)\(.*\n/gm, "")
      .replaceAll(/\bLong\b/g, "bigint"),
  );
}

function withoutBlankRuns(text) {
  return text
    .replace(/\n{2,}/g, "\n\n")
    .replace(/\{\n\n/g, "{\n")
    .replace(/\n\n( *\})/g, "\n$1");
}
