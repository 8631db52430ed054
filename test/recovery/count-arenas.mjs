/*
 * Prints the number of arenas that glibc's malloc has for many threads, as JSON. With the argument `limited`, the process
 * has the limits of `tritonjs serve`.
 */
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { limitMalloc } from "@tritonjs/cli/process-memory";

const limited = process.argv[2] === "limited" && limitMalloc({});
const threads = Array.from(
  { length: 2 * availableParallelism() + 8 },
  () => new Worker("setInterval(() => {}, 1000)", { eval: true }),
);
await Promise.all(threads.map((thread) => once(thread, "online")));
console.log(JSON.stringify({ limited, arenas: countArenas() }));
process.exit();

/** Counts the arenas in what glibc writes about itself. */
function countArenas() {
  const core = createRequire(import.meta.resolve("@tritonjs/core"));
  const library = core("koffi").load(null);
  const path = join(tmpdir(), `arenas-${process.pid}.xml`);
  const file = library.func("void *fopen(const char *path, const char *mode)")(path, "w");
  library.func("int malloc_info(int options, void *file)")(0, file);
  library.func("int fclose(void *file)")(file);
  try {
    return readFileSync(path, "utf8").match(/<heap nr=/g).length;
  } finally {
    rmSync(path);
  }
}
