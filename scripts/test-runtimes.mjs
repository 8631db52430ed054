/*
 * `npm run test:runtimes`: runs the tests of core's behaviours, of whole servers, and a third of Triton's recorded answers
 * on Bun and Deno, with the binaries that npm brings. Names choose runtimes, and the arguments after them go to vitest
 * instead of the chosen files: `npm run test:runtimes -- bun test/e2e`. Both run, also after one that fails. With `--built`
 * first, the script neither installs nor builds.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { install } from "./install.mjs";
import { RUNTIMES, runtimeBinary } from "./node-lines.mjs";
import { build, root, tool } from "./run.mjs";

/**
 * Tests that run on each runtime. Batches, queues, caches and configurations are plain JavaScript, which no runtime changes:
 * their tests run on Node alone.
 */
const CHOSEN = [
  "packages/core/test/behaviours",
  "packages/core/test/instance",
  "packages/core/test/frontend-threads/serving.long.test.ts",
  "packages/core/test/frontend-threads/requests.long.test.ts",
  "packages/core/test/frontend-threads/thread-death.long.test.ts",
  "packages/core/test/web/hybrid.test.ts",
  "packages/backends/test/onnxruntime/wasm-engine.test.ts",
  "packages/backends/test/onnxruntime/onnx-engine.test.ts",
  "packages/backends/test/onnxruntime/onnx-batching.test.ts",
  "test/e2e",
  "test/golden/grpc.long.test.ts",
  "test/golden/http.long.test.ts",
];

/** Recorded answers that run: every third of each subject. A runtime changes sockets and streams, which all of them use. */
const UNCHOSEN_RECORDINGS = "(grpc|http)-\\d{3}[^0369]-(?!seq|stats|shm|cuda)";

/** Tests that cannot pass, as [file, beginning of the test's name; all of the file without one, reason]. */
const LEFT_OUT = {
  all: [
    [
      "packages/backends/test/onnxruntime/wasm-engine.test.ts",
      "is refused on a processor without",
      "an option of Node",
    ],
    ["packages/core/test/behaviours/released-memory.test.ts", undefined, "looks into V8"],
    ["packages/core/test/behaviours/event-loop.test.ts", "long strings", "sets the size of V8's heap"],
    [
      "test/e2e/opentelemetry.test.ts",
      "have the attributes of HTTP and gRPC servers",
      "the name of the runtime",
    ],
  ],
  bun: [
    ["packages/backends/test/onnxruntime/onnx-engine.test.ts", undefined, "no engine 'native'"],
    ["test/e2e/rollout.test.ts", "with (1 frontend threads|a frontend thread)", "no frontend threads"],
    ["packages/core/test/frontend-threads/serving.long.test.ts", undefined, "no frontend threads"],
    ["packages/core/test/frontend-threads/requests.long.test.ts", undefined, "no frontend threads"],
    ["packages/core/test/frontend-threads/thread-death.long.test.ts", undefined, "no frontend threads"],
    [
      "packages/core/test/behaviours/bad-callbacks.test.ts",
      "returns an ndarray over a detached",
      "its words",
    ],
    ["packages/core/test/behaviours/bad-callbacks.test.ts", "returns a revoked proxy", "its words"],
    [
      "packages/core/test/behaviours/callbacks.test.ts",
      "callback request info",
      "imports `file.mjs?query` empty",
    ],
    ["packages/core/test/behaviours/bad-callbacks.test.ts", "callback stacks", "the form of its stacks"],
    [
      "packages/core/test/behaviours/worker-modules.test.ts",
      "is reported by ready",
      "the form of its stacks",
    ],
    ["test/e2e/likely-mistakes.test.ts", undefined, "its words for reading a property of undefined"],
    ["test/e2e/applications.test.ts", "answers why it is not ready", "the form of its stacks"],
    ["test/e2e/close.test.ts", "ends requests that are not done", "its words of `fetch`"],
    ["test/e2e/serve.test.ts", "is undone by close", "frees a port a moment after the server closed"],
    ["test/e2e/close.test.ts", "exit delay", "never ends a kept connection of its own client"],
    [
      "test/e2e/request-memory.test.ts",
      "the memory of (the inputs of a request|outputs)",
      "looks at memory that was freed",
    ],
  ],
  deno: [
    [
      "packages/core/test/frontend-threads/thread-death.long.test.ts",
      "when one of two threads dies",
      "a dead thread still gets connections for a moment",
    ],
    [
      "packages/core/test/frontend-threads/requests.long.test.ts",
      "requests in flight are answered when the server closes",
      "the number of a thread that ended",
    ],
    [
      "packages/core/test/behaviours/callbacks.test.ts",
      "are callbacks bound to their object",
      "vitest's loader",
    ],
    ["packages/core/test/behaviours/decorators.test.ts", "work in PyTriton's order", "vitest's loader"],
    ["test/e2e/shared-memory.test.ts", undefined, "no shared memory"],
    ["test/e2e/serve.test.ts", "the program tritonjs", "signals to a process that ends with its own code"],
    ["test/e2e/request-traces.test.ts", "tritonjs serve", "signals to a process that ends with its own code"],
    [
      "test/e2e/close.test.ts",
      "exit delay",
      "aborts at times when a server takes leave of its HTTP/2 clients",
    ],
    [
      "test/e2e/close.test.ts",
      "close\\(\\) under requests",
      "aborts or hangs at times when a server takes leave of HTTP/2 clients that have requests in flight",
    ],
    [
      "test/e2e/full-queue.test.ts",
      "leaves its connection usable",
      "closes a connection with an unread body",
    ],
    ["test/golden/grpc.long.test.ts", "grpc-\\d+-(shm|cuda)", "no shared memory"],
    [
      "test/golden/http.long.test.ts",
      "http-(08[1-5]\\d|0094)",
      "no shared memory; methods that it does not know",
    ],
  ],
};

const given = process.argv.slice(2);
const isBuilt = given[0] === "--built";
if (isBuilt) given.shift();
const firstOther = given.findIndex((argument) => !(argument in RUNTIMES));
const named = firstOther < 0 ? given : given.slice(0, firstOther);
const rest = given.slice(named.length);
const runtimes = named.length > 0 ? named : Object.keys(RUNTIMES);

if (!isBuilt) {
  install();
  build();
}
const failed = [];
for (const runtime of runtimes) {
  console.log(`\n${runtime} ${RUNTIMES[runtime]}`);
  if (!run(runtime)) failed.push(runtime);
}
if (failed.length > 0) {
  console.error(`\ntest:runtimes: tests failed on ${failed.join(" and ")}`);
  process.exitCode = 1;
}

function run(runtime) {
  const leftOut = [...LEFT_OUT.all, ...LEFT_OUT[runtime]];
  const withoutFiles = leftOut.flatMap(([file, name]) => (name === undefined ? file : []));
  const withoutNames = [...leftOut.flatMap(([, name]) => name ?? []), UNCHOSEN_RECORDINGS];
  const files = CHOSEN.flatMap(testFiles).filter((file) => !withoutFiles.includes(file));
  const engine = runtime === "bun" ? ["--bun"] : ["run", "--allow-all"];
  const pattern = `^(?!.*(${withoutNames.join("|")}))`;
  const args = [...engine, tool("vitest", "vitest.mjs"), "run", "--no-isolate", "-t", pattern];
  const { status } = spawnSync(runtimeBinary(runtime), [...args, ...(rest.length > 0 ? rest : files)], {
    cwd: root,
    stdio: "inherit",
  });
  return status === 0;
}

/** The file, or the tests of behaviours in the folder. */
function testFiles(path) {
  if (path.endsWith(".ts")) return [path];
  return readdirSync(join(root, path))
    .filter((name) => name.endsWith(".test.ts") && !name.endsWith(".long.test.ts"))
    .map((name) => `${path}/${name}`);
}
