import { join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { servedFiles } from "../repository/models.mjs";
import { writeFiles } from "../repository/write-files.mjs";
import { ServerProcess } from "./server-process.mjs";

/** Megabytes of the heap of each server and of its JavaScript processes. */
const HEAP_MB = 192;
/**
 * Megabytes of a half of the young generation. V8 doubles it up to 16 while a heap lives, in each thread. In an hour this
 * looks like a leak.
 */
const YOUNG_MB = 2;
/** Limits of V8's heaps in a server. */
export const HEAP_LIMITS = [`--max-old-space-size=${HEAP_MB}`, `--max-semi-space-size=${YOUNG_MB}`];
/** Bytes that the requests in flight may take, so that a flood reaches the limit. */
export const REQUEST_MEMORY = 12 * 2 ** 20;

/** `tritonjs serve` on a polled repository in `folder`, with traces in the same folder. */
export function startServeCommand({ folder, python, logFile, env }) {
  const repository = join(folder, "models");
  writeFiles(repository, servedFiles({ python }));
  const args = [
    ...HEAP_LIMITS,
    join(root, "packages", "cli", "dist", "main.js"),
    ...["serve", `--model-repository=${repository}`, "--model-control-mode=poll", "--repository-poll-secs=1"],
    ...["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"],
    ...["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--allow-gpu-metrics=false"],
    ...["--allow-client-shm=true", `--request-memory-byte-size=${REQUEST_MEMORY}`],
    ...[
      "--trace-config=level=TIMESTAMPS",
      "--trace-config=rate=20",
      "--trace-config=triton,log-frequency=500",
    ],
    `--trace-config=triton,file=${join(folder, "trace.json")}`,
    "--backend-config=python,stub-timeout-seconds=120",
  ];
  const server = new ServerProcess("serve", args, { env, services: 3, logFile });
  return Object.assign(server, { repository });
}
