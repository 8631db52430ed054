/*
 * `npm run bench`: runs the suite of docs/performance.md, or the benchmarks named: `npm run bench -- http`. `npm run bench --
 * compare <revision>` runs this tree against another revision.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { install } from "../scripts/install.mjs";
import { build, root, runNode } from "../scripts/run.mjs";

/** The other benchmarks run only by name. */
const SUITE = [
  ...["in-process", "http", "grpc", "frontend-threads", "onnx", "onnx-engines"],
  ...["overload", "scale", "memory", "startup"],
];

const folder = join(root, "bench");
const fileOf = (name) => join(folder, `${name}.bench.mjs`);
const chosen = process.argv.slice(2);
const names = chosen.length > 0 ? chosen : SUITE;
const unknown = chosen[0] === "compare" ? [] : names.filter((name) => !existsSync(fileOf(name)));
if (unknown.length > 0) {
  const known = readdirSync(folder).filter((file) => file.endsWith(".bench.mjs"));
  console.error(
    `no benchmark ${unknown.join(", ")}; there are compare, ${known.map((file) => file.replace(".bench.mjs", "")).join(", ")}`,
  );
  process.exit(1);
}
// Benchmarks that run ONNX Runtime without a server send no telemetry either.
process.env.ORT_DISABLE_TELEMETRY ||= "1";
install();
build();
if (chosen[0] === "compare") runNode(join(folder, "compare.mjs"), chosen.slice(1));
else {
  for (const name of names) {
    console.log(`\n# ${name}`);
    runNode(fileOf(name));
  }
}
