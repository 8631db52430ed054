import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { analyze } from "@tritonjs/perf";
import { repository } from "@tritonjs/repository";

/*
 * A search for the largest batch that gives the highest throughput, and a server with the best configuration.
 *
 *   npm start
 */

const models = fileURLToPath(new URL("../models", import.meta.url));
const results = await mkdtemp(join(tmpdir(), "tuning-"));

// The command of a shell: tritonjs analyze --model-repository models -m embed ...
const search = ["--search", "brute", "--instances", "1", "--max-batch-sizes", "8,32", "--queue-delays", "0"];
const load = ["--concurrency-range", "32", "--measurement-interval", "200", "--stability-percentage", "50"];
const terminal = {
  write: (text: string) => void process.stdout.write(text),
  writeError: (text: string) => void process.stderr.write(text),
  stopRequested: () => new Promise<void>(() => {}),
};
const code = await analyze(
  ["--model-repository", models, "-m", "embed", ...search, ...load, "--export-path", results],
  terminal,
);
console.log(`exit code ${code}`);

const analysis = JSON.parse(await readFile(join(results, "analysis.json"), "utf8"));
const [best]: string[] = analysis.results[0].names;
const triton = new Triton({
  extensions: [
    repository({
      modelRepository: join(results, "models"),
      modelControlMode: "explicit",
      loadModel: [best!],
    }),
  ],
});
await triton.ready();
const { y } = await triton.infer(best!, { x: [[21]] });
console.log(`${best} is served, and answers ${y!.get(0, 0)}`);
await triton.close();
await rm(results, { recursive: true });
