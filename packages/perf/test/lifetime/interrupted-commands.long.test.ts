import { spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { Program } from "../../../../test/support/program.js";
import { record } from "../replay/support/record.js";
import { temporaryFolder } from "../support/analyze-command.js";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** Starts the command with a folder of its own for temporary files. */
async function start(...args: string[]) {
  const folder = await temporaryFolder();
  const temporary = join(folder, "tmp");
  await mkdir(temporary);
  const program = new Program(process.execPath, [MAIN, ...args], { cwd: folder, env: { TMPDIR: temporary } });
  onTestFinished(() => program.signal("SIGKILL"));
  return { program, folder, temporary };
}

/** Serves a model that answers after `answer` resolves. */
async function serve(answer: () => Promise<void>) {
  const triton = new Triton({
    exitTimeoutSecs: 0.1,
    allowClientSharedMemory: true,
    security: { restrictedEndpoints: [] },
  });
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
    inferFunc: async (requests) => {
      await answer();
      return requests.map(({ inputs }) => ({ y: inputs.x }));
    },
    config: { batching: false, instanceGroup: [{ count: 4 }] },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  const counts = () => serviceOf(triton).statistics("slow", "")[0]!.inferenceStats;
  return { url: `127.0.0.1:${addresses.http!.port}`, counts };
}

// Windows of requests, since on a busy machine none may end in a short time.
const WINDOWS = ["--measurement-mode", "count_windows", "--measurement-request-count", "20"];
const PERF = ["perf", "-m", "slow", ...WINDOWS, "-r", "3", "-s", "9999", "--max-threads", "1"];
const INTERRUPTED = "A second Ctrl-C ends the command at once";

describe("tritonjs perf", () => {
  it("lets requests in flight finish after Ctrl-C, reports all levels, and ends with 130", async () => {
    const { url, counts } = await serve(async () => {});
    const { program, folder } = await start(
      ...PERF,
      ...["-u", url, "--concurrency-range", "1:1000", "--json", "perf.json"],
    );
    await program.untilOutput("Request concurrency: 1\n");
    program.signal("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    expect([code, stderr.includes(INTERRUPTED), stdout.includes("(interrupted)")]).toEqual([130, true, true]);
    const { levels } = JSON.parse(await readFile(join(folder, "perf.json"), "utf8"));
    expect(levels.length).toBeGreaterThan(1);
    expect(levels[0].stable).toBe(true);
    expect(counts().fail.count).toBe(0);
  });

  it.skipIf(!existsSync("/dev/shm"))(
    "ends at once after the second Ctrl-C, and leaves no shared memory behind",
    async () => {
      const events = new EventEmitter();
      onTestFinished(() => void events.emit("answer"));
      const { url } = await serve(async () => {
        events.emit("request");
        await once(events, "answer");
      });
      const reached = once(events, "request");
      const { program } = await start(
        ...PERF,
        ...["-u", url, "-p", "600000", "--concurrency-range", "2", "--shared-memory", "system"],
      );
      await Promise.race([reached, program.ended]);
      const regions = async () =>
        (await readdir("/dev/shm")).filter((name) => name.startsWith(`tritonjs_perf_${program.pid}_`));
      expect((await regions()).length).toBe(2);
      program.signal("SIGINT");
      await program.untilOutput(INTERRUPTED, "stderr");
      expect((await regions()).length).toBe(2);
      program.signal("SIGINT");
      expect(await program.ended).toMatchObject({ code: 130, signal: null });
      expect(await regions()).toEqual([]);
    },
  );
});

/** A repository with a model in threads of its own. Each batch takes 20 ms. */
async function writeRepository(): Promise<string> {
  const repository = join(await temporaryFolder(), "models");
  await mkdir(join(repository, "m", "1"), { recursive: true });
  const tensor = "data_type: TYPE_FP32 dims: 1";
  await writeFile(
    join(repository, "m", "config.pbtxt"),
    `backend: "javascript" max_batch_size: 4 input { name: "x" ${tensor} } output { name: "y" ${tensor} }`,
  );
  await writeFile(
    join(repository, "m", "1", "model.js"),
    `const flag = new Int32Array(new SharedArrayBuffer(4));
export default (requests) => {
  Atomics.wait(flag, 0, 0, 20);
  return requests.map(({ inputs }) => ({ y: inputs.x }));
};
`,
  );
  return repository;
}

describe("tritonjs analyze", () => {
  const search = [
    "-m",
    "m",
    "--search",
    "brute",
    "--instances",
    "1,2",
    "--max-batch-sizes",
    "1,2",
    "--queue-delays",
    "0",
    "-p",
    "200",
    "-r",
    "1",
    "-e",
    "results",
  ];

  it("reports what was measured after Ctrl-C, ends with 130, and continues with --resume", async () => {
    const repository = await writeRepository();
    const args = ["analyze", "--model-repository", repository, ...search, "--concurrency-range", "4"];
    const { program, folder, temporary } = await start(...args);
    await program.untilOutput("infer/s", "stderr");
    program.signal("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    expect([code, stderr.includes(INTERRUPTED)]).toEqual([130, true]);
    expect(stderr).toContain("Continue with --resume: results/checkpoint.json has the measurements.");
    expect(stdout).toContain("the search ended early: it was interrupted");
    expect(await readdir(join(folder, "results"))).toEqual(
      expect.arrayContaining(["report.html", "summary.md", "analysis.json", "checkpoint.json", "models"]),
    );
    expect((await readdir(temporary)).filter((name) => name.startsWith("tritonjs-"))).toEqual([]);

    const read = async () => JSON.parse(await readFile(join(folder, "results", "analysis.json"), "utf8"));
    const before = await read();
    expect([before.endedBy, before.measurements < 5]).toEqual(["interrupted", true]);
    const resumed = await new Program(process.execPath, [MAIN, ...args, "--resume"], { cwd: folder }).ended;
    expect({ code: resumed.code, stdout: resumed.stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining("5 measurements in"),
    });
    const after = await read();
    // What was measured before is kept as it was.
    const best = (all: readonly { names: string[]; best: unknown }[]) =>
      Object.fromEntries(all.map((one) => [one.names[0], one.best]));
    const kept = after.results.filter(
      ({ names: [name] }: { names: string[] }) => name! in best(before.results),
    );
    expect(best(kept)).toEqual(best(before.results));
    expect(after.results.length).toBe(5);
  });

  it("ends at once after the second Ctrl-C, removes its folders, and keeps the checkpoint", async () => {
    const repository = await writeRepository();
    const { program, folder, temporary } = await start(
      ...["analyze", "--model-repository", repository, ...search, "--concurrency-range", "4:8:4"],
    );
    // The checkpoint has the default configuration before the next one is measured.
    await program.untilOutput("1 instance, batch 1: ", "stderr");
    program.signal("SIGINT");
    await program.untilOutput(INTERRUPTED, "stderr");
    program.signal("SIGINT");
    expect((await program.ended).code).toBe(130);
    expect((await readdir(temporary)).filter((name) => name.startsWith("tritonjs-"))).toEqual([]);
    const { results } = JSON.parse(await readFile(join(folder, "results", "checkpoint.json"), "utf8"));
    expect(results.length).toBeGreaterThan(0);
  });
});

describe("tritonjs replay", () => {
  /** Starts a replay of eight configurations, and waits for the second one. */
  async function startReplay() {
    const batcher = { maxQueueDelayMicroseconds: 3000 };
    const trace = await record({ maxBatchSize: 16, batcher, instances: 2, perMs: 0.9, count: 20_000 });
    const config = join(await temporaryFolder(), "as-is.pbtxt");
    await writeFile(config, "max_batch_size: 16 dynamic_batching { } instance_group { count: 2 }");
    const started = await start(
      ...["replay", trace, ...Array.from({ length: 8 }, () => ["--config", config]).flat()],
    );
    await started.program.untilOutput("(2 of 8)", "stderr");
    return started;
  }

  it("reports the finished configurations after Ctrl-C, and ends with 130", async () => {
    const { program, temporary } = await startReplay();
    program.signal("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    expect(code).toBe(130);
    expect(stderr).toMatch(/interrupted: [1-7] of 8 configurations were replayed/);
    expect(stdout).toMatch(/^Requests answered +20000 +20000/m);
    expect((await readdir(temporary)).filter((name) => name.startsWith("tritonjs-"))).toEqual([]);
  });

  it("ends at once after the second Ctrl-C, and removes its folders", async () => {
    const { program, temporary } = await startReplay();
    program.signal("SIGINT");
    await program.untilOutput(INTERRUPTED, "stderr");
    program.signal("SIGINT");
    expect(await program.ended).toMatchObject({ code: 130, signal: null });
    expect((await readdir(temporary)).filter((name) => name.startsWith("tritonjs-"))).toEqual([]);
  });
});

describe("tritonjs optimize", () => {
  const stories = fileURLToPath(
    new URL("../../../../examples/text-generation/models/stories/1/model.onnx", import.meta.url),
  );
  const optimize = ["optimize", stories, "--forms", "clean", "--samples", "2", "--batch-sizes", "1"];

  it("ends at once after the second Ctrl-C, and leaves no temporary files behind", async () => {
    const { program, folder, temporary } = await start(...optimize, "-p", "600000");
    await program.untilOutput("measuring", "stderr");
    program.signal("SIGINT");
    await program.untilOutput(INTERRUPTED, "stderr");
    program.signal("SIGINT");
    expect(await program.ended).toMatchObject({ code: 130, signal: null });
    expect(await readdir(temporary)).toEqual([]);
    expect(await readdir(folder)).toEqual(["tmp"]);
  });

  const canMount = process.platform === "linux" && process.getuid?.() === 0;
  const withoutMount = canMount ? "" : " (skipped: only root of Linux can mount a small disk)";

  it.skipIf(!canMount)(`keeps the served model when the disk is full${withoutMount}`, async () => {
    const small = join(await temporaryFolder(), "small");
    await mkdir(small);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=400k", "tmpfs", small]);
    onTestFinished(() => void spawnSync("umount", [small]));
    expect(String(mounted.stderr)).toBe("");
    const model = join(small, "models", "model", "1", "model.onnx");
    await mkdir(join(model, ".."), { recursive: true });
    await writeFile(model, "the old model");
    const { program } = await start(...optimize, "-p", "20", "-e", small);
    const { code, stderr } = await program.ended;
    expect(code).toBe(99);
    expect(stderr).toContain(`cannot write '${model}': ENOSPC`);
    expect(await readFile(model, "utf8")).toBe("the old model");
    expect(await readdir(join(model, ".."))).toEqual(["model.onnx"]);
    // The measurements are kept, so that --resume need not repeat them.
    expect(await readdir(small)).toContain("checkpoint.json");
  });
});
