import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
// The built package: processes cannot run sources.
import { analyze } from "@tritonjs/perf";
import { describe, expect, it } from "vitest";
import { irisModel } from "../../../../../test/support/iris.js";
import { temporaryFolder } from "../../support/analyze-command.js";
import { runTool } from "../../support/run-tool.js";

interface Result {
  readonly parameters: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly names: readonly string[];
  readonly satisfiesConstraints: boolean;
  readonly best: {
    readonly models: Readonly<Record<string, { failures: number; figures: Record<string, number> }>>;
  };
}

const QUICK = ["-p", "60", "-r", "1", "--warmup-request-count", "4", "--concurrency-range", "8"];

/** Measures every combination of a model `m` of a repository, and returns the results in their order. */
async function measured(repository: string, folder: string, args: readonly string[]) {
  const all = ["--model-repository", repository, "-m", "m", "--search", "brute", ...QUICK, "-e", folder];
  const ended = await runTool(analyze, [...all, ...args]);
  const analysis = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
  return { ...ended, results: analysis.results as readonly Result[] };
}

/** A repository with a model `m`, and a folder for the results. */
async function writeModel(config: string, write: (version: string) => Promise<void>) {
  const folder = await temporaryFolder();
  const version = join(folder, "models", "m", "1");
  await mkdir(version, { recursive: true });
  await writeFile(join(folder, "models", "m", "config.pbtxt"), config);
  await write(version);
  return { repository: join(folder, "models"), folder: join(folder, "results") };
}

describe("a real run", () => {
  it("varies the threads of ONNX Runtime and the target of adaptive batching", async () => {
    const { repository, folder } = await writeModel('backend: "onnxruntime" max_batch_size: 8', (version) =>
      copyFile(fileURLToPath(irisModel), join(version, "model.onnx")),
    );
    const space = ["--instances", "1", "--max-batch-sizes", "8", "--queue-delays", "0"];
    const { code, errors, results } = await measured(repository, folder, [
      ...[...space, "--threads", "0,1", "--target-latencies", "0,20"],
      ...["--num-configs-per-model", "8"],
    ]);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    const variants = results.filter(({ parameters }) => Object.keys(parameters.m!).length > 0);
    const pairs = variants.map(({ parameters: { m } }) => `${m!.threads} ${m!.targetLatencyMs}`);
    expect(pairs.toSorted()).toEqual(["0 0", "0 20", "1 0", "1 20"]);
    for (const { parameters, names, best } of variants) {
      expect(best.models.m!.failures).toBe(0);
      expect(best.models.m!.figures.perf_throughput).toBeGreaterThan(0);
      const config = await readFile(join(folder, "models", names[0]!, "config.pbtxt"), "utf8");
      const { threads, targetLatencyMs } = parameters.m!;
      expect(config.includes('"intra_op_thread_count"')).toBe(threads === 1);
      expect(config.includes('"target_latency_ms"')).toBe(targetLatencyMs === 20);
    }
  });

  it.skipIf(process.platform !== "linux")(
    "measures the memory of instances in processes, and finds the configuration within a limit on it",
    async () => {
      const tensor = "data_type: TYPE_FP32 dims: 1";
      const { repository, folder } = await writeModel(
        `backend: "javascript" max_batch_size: 4 input { name: "x" ${tensor} } output { name: "y" ${tensor} }`,
        // Each process holds 150 MB.
        (version) =>
          writeFile(
            join(version, "model.js"),
            `const held = Buffer.alloc(150e6, 1);
export default (requests) => requests.map(({ inputs }) => ({ y: held.length > 0 ? inputs.x : undefined }));
`,
          ),
      );
      const args = ["--isolation", "process", "--instances", "1,2", "--max-batch-sizes", "4"];
      args.push("--queue-delays", "0", "--preferred-batch-sizes", "0");
      const { code, errors, results } = await measured(repository, folder, [
        ...[...args, "--objective", "cpu_used_ram"],
      ]);
      expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
      const of = (all: readonly Result[], instances: number) =>
        all.find(({ parameters }) => parameters.m!.instances === instances)!;
      const memory = (instances: number) => of(results, instances).best.models.m!.figures.cpu_used_ram!;
      expect(memory(2) - memory(1)).toBeGreaterThan(100);
      expect(results.indexOf(of(results, 1))).toBeLessThan(results.indexOf(of(results, 2)));

      // The measurements are those of the first run: only the goal differs.
      const limit = (memory(1) + memory(2)) / 2;
      const limited = await measured(repository, folder, [
        ...[...args, "--constraint", `cpu_used_ram<${limit}`, "--resume"],
      ]);
      expect(limited.code).toBe(0);
      expect([1, 2].map((instances) => of(limited.results, instances).satisfiesConstraints)).toEqual([
        true,
        false,
      ]);
      expect(of(limited.results, 2).best).toEqual(of(results, 2).best);
      const none = await measured(repository, folder, [
        ...args,
        "--constraint",
        "cpu_used_ram<1",
        "--resume",
      ]);
      expect([none.code, none.output.replaceAll(/\n */g, " ")]).toEqual([
        1,
        expect.stringMatching(/No measured configuration meets .*: cpu_used_ram is \d+ MB, over 1 MB/),
      ]);
    },
  );
});
