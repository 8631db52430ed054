// Generates the static codec in src/generated from proto/*.proto. `node scripts/generate-proto.mjs [folder]`
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { descriptorsModule } from "./proto-descriptors.mjs";

const run = promisify(execFile);
const packageFolder = join(dirname(fileURLToPath(import.meta.url)), "..");
const pbjs = join(
  dirname(createRequire(import.meta.url).resolve("protobufjs-cli/package.json")),
  "bin",
  "pbjs",
);

const OPTIONS = [
  ...["--target", "static-module", "--wrap", "esm", "--es6", "--dts"],
  ...["--dependency", "#protobuf"],
  // An own root: all static modules of the process share the default one.
  ...["--root", "tritonjs"],
  ...["--no-verify", "--no-delimited", "--no-typeurl", "--no-service", "--no-create"],
];
const SOURCES = ["grpc_service.proto", "health.proto", "reflection.proto"];

const folder = process.argv[2] ?? join(packageFolder, "src", "generated");
const script = join(folder, "index.js");
const types = join(folder, "index.d.ts");
const protoFolder = join(packageFolder, "proto");
const sources = SOURCES.map((name) => join(protoFolder, name));

await mkdir(folder, { recursive: true });
await run(process.execPath, [pbjs, ...OPTIONS, "--path", protoFolder, "--out", script, ...sources]);
const plain = await plainObjects();
await writeFile(script, slimScript(await readFile(script, "utf8")));
await writeFile(types, slimTypes(await readFile(types, "utf8")));
await writeFile(join(folder, "descriptors.js"), await descriptorsModule(protoFolder));
await writeFile(
  join(folder, "descriptors.d.ts"),
  `/** A file of the protocol. \`bytes\`: its google.protobuf.FileDescriptorProto in base64. */
export interface FileDescriptor {
  readonly name: string;
  readonly services: readonly string[];
  readonly symbols: readonly string[];
  readonly bytes: string;
}
export const descriptors: readonly FileDescriptor[];
`,
);

/**
 * Names of the messages that are converted to plain objects: those of the model configuration, whose enums have names.
 */
async function plainObjects() {
  const text = await readFile(join(protoFolder, "model_config.proto"), "utf8");
  return new Set([...text.matchAll(/^ *message (\w+)/gm)].map(([, name]) => name));
}

/**
 * Removes comments, and conversions to plain objects that the packages do not call. Makes 64-bit zeros numbers. The
 * values of tensor contents are read without boxing them: see src/packed-values.ts.
 */
function slimScript(text) {
  return withoutBlankRuns(
    text
      .replace(/^ *\/\*\*[\s\S]*?\*\/\n/gm, "")
      .replace(/^( *)(\w+)\.(?:toObject|prototype\.toJSON) = function[\s\S]*?^\1\};\n/gm, (whole, _, name) =>
        plain.has(name) && whole.includes(".toObject = ") ? whole : "",
      )
      .replaceAll(
        /reader\.(\w+)s\(message\.(\w+Contents)\);/g,
        'message.$2 = reader.packed("$1", message.$2);',
      )
      .replaceAll(
        /message\.((?!bytes|raw)\w+Contents)\.push\((reader\.\w+\(\))\);/g,
        "message.$1 = reader.added(message.$1, $2);",
      )
      .replaceAll(
        "message.bytesContents.push(reader.bytes());",
        "message.bytesContents = reader.strings(message.bytesContents, 66);",
      )
      .replaceAll(/\$util\.Long \? \$util\.Long\.fromBits\(0,0,(?:true|false)\) : 0/g, "0")
      .replace(/^( +)/gm, (indent) => " ".repeat(indent.length / 2)),
  );
}

/** Types 64-bit fields as numbers if those are exact, and as bigints otherwise: see src/message-reader.ts. */
function slimTypes(text) {
  return withoutBlankRuns(
    text
      .replace(/^import Long = require\("long"\);\n/m, "")
      .replace(/^ *\/\*\*[\s\S]*?\*\/\n/gm, "")
      .replace(/^ *(?:public )?(?:static )?toObject\(message: inference\.(\w+).*\n/gm, (whole, name) =>
        plain.has(name) ? whole : "",
      )
      .replace(/^ *(?:public )?(?:static )?(?:toObject\(message: grpc|toJSON)\b.*\n/gm, "")
      .replaceAll(/\bLong\b/g, "bigint"),
  );
}

function withoutBlankRuns(text) {
  return text
    .replace(/\n{2,}/g, "\n\n")
    .replace(/\{\n\n/g, "{\n")
    .replace(/\n\n( *\})/g, "\n$1");
}
