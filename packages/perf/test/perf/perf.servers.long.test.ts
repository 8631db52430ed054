import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";
// The built package: its threads cannot run sources.
import { perf } from "@tritonjs/perf";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runTool } from "../support/run-tool.js";

let folder: string;
let triton: Triton;
let unstick: () => void;
const ports: Record<"http" | "grpc" | "metrics", number> = { http: 0, grpc: 0, metrics: 0 };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
  triton = new Triton({ security: { restrictedEndpoints: [] } });
  triton.bind({
    modelName: "echo",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
    inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
    config: { maxBatchSize: 8 },
  });
  triton.bind({
    modelName: "count",
    inputs: [{ name: "n", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "i", dtype: "INT32", shape: [1] }],
    async *inferFunc(requests) {
      for (const i of [1, 2, 3]) yield requests.map(() => ({ i: Int32Array.of(i) }));
    },
    config: { batching: false, decoupled: true },
  });
  const stuck = new Promise<void>((resolve) => {
    unstick = resolve;
  });
  triton.bind({
    modelName: "stuck",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: async (requests) => {
      await stuck;
      return requests.map(({ inputs }) => ({ y: inputs.x }));
    },
    config: { batching: false },
  });
  const frontends = [http({ port: 0 }), grpc({ port: 0 }), metrics({ port: 0 })];
  const { addresses } = await triton.serve({ frontends });
  for (const name of ["http", "grpc", "metrics"] as const) ports[name] = addresses[name]!.port;
});

afterAll(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

const run = (...args: string[]) => runTool(perf, args);

const successes = (model: string) => {
  const [report] = serviceOf(triton).statistics(model, "");
  return [report!.inferenceStats.success.count, report!.inferenceCount];
};

describe("tritonjs perf and real servers", () => {
  it.each(["http", "grpc"] as const)(
    "agree over %s on the number of requests and inferences",
    async (protocol) => {
      const [requestsBefore, rowsBefore] = successes("echo");
      const json = join(folder, `${protocol}.json`);
      const { code, output, errors } = await run(
        ...[
          "-m",
          "echo",
          "-i",
          protocol,
          "-u",
          `localhost:${ports[protocol]}`,
          "-b",
          "2",
          "--max-threads",
          "1",
        ],
        ...["--concurrency-range", "4", "--request-count", "57", "--json", json],
        ...["--collect-metrics", "--metrics-url", `localhost:${ports.metrics}`],
      );
      expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
      expect(output).toContain("Request count: 57\n");
      const [requestsAfter, rowsAfter] = successes("echo");
      expect([requestsAfter! - requestsBefore!, rowsAfter! - rowsBefore!]).toEqual([57, 114]);
      const figures = JSON.parse(await readFile(json, "utf8"));
      expect(figures.server).toMatchObject({ success_count: 57, inference_count: 114, fail_count: 0 });
      const rows = figures.server.batch_sizes.reduce(
        (sum: number, one: { batch_size: number; count: number }) => sum + one.batch_size * one.count,
        0,
      );
      expect(rows).toBe(114);
      const cuts: number[] = Object.values(figures.server.batch_cuts);
      expect(cuts.reduce((sum, count) => sum + count, 0)).toBe(figures.server.execution_count);
    },
  );

  it("count the responses of a decoupled model as tokens", async () => {
    const profile = join(folder, "count.json");
    const { code, output } = await run(
      ...["-m", "count", "-i", "grpc", "--streaming", "-u", `localhost:${ports.grpc}`, "--max-threads", "1"],
      ...["--request-count", "10", "--profile-export-file", profile],
    );
    expect(code).toBe(0);
    expect(output).toContain("Output Sequence Length (tokens): avg 3,");
    const { experiments } = JSON.parse(await readFile(profile, "utf8"));
    expect(experiments[0].requests.length).toBe(10);
    expect(experiments[0].requests[0].response_outputs).toEqual([{ i: 1 }, { i: 2 }, { i: 3 }]);
    expect(experiments[0].requests[0].response_timestamps.length).toBe(3);
  });

  it("measure the models of a module that exports a Triton", async () => {
    const module = join(folder, "program.mjs");
    const core = import.meta.resolve("@tritonjs/core");
    await writeFile(
      module,
      `import { Triton } from ${JSON.stringify(core)};
      export const triton = new Triton();
      const tensor = { dtype: "INT32", shape: [1] };
      triton.bind({
        modelName: "same",
        inputs: [{ name: "x", ...tensor }],
        outputs: [{ name: "y", ...tensor }],
        inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
      });`,
    );
    const args = [
      "-m",
      "same",
      "--service-kind",
      "triton_c_api",
      "--module",
      module,
      "--request-count",
      "20",
    ];
    const { code, output, errors } = await run(...args);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    expect(output).toContain("Request count: 20\n");
    expect(output).toContain("Successful request count: 20\n");
    await writeFile(join(folder, "empty.mjs"), "export const other = 1;");
    expect(await run(...args.slice(0, 5), join(folder, "empty.mjs"))).toMatchObject({
      code: 99,
      errors: expect.stringContaining("to export a Triton as 'triton' or as default, got other"),
    });
  });

  it("end with exit code 3 when no request ends within a window", async () => {
    const url = `localhost:${ports.http}`;
    const { code, output } = await run("-m", "stuck", "-u", url, "-p", "50", "--max-threads", "1");
    unstick();
    expect(code).toBe(3);
    expect(output).toContain("[ERROR] No valid requests recorded within time interval.");
  });

  it("warn that the generator is the bottleneck when the rate is higher than it can send", async () => {
    const { code, output } = await run(
      ...["-m", "echo", "-u", `localhost:${ports.http}`, "--max-threads", "1", "--request-count", "2000"],
      ...["--request-rate-range", "1000000"],
    );
    expect(code).toBe(0);
    expect(output).toContain(
      "[WARNING] Perf Analyzer was not able to keep up with the desired request rate.",
    );
  });

  it("tell which mistake was made", async () => {
    const url = `localhost:${ports.http}`;
    expect(await run("-m", "nope", "-u", url)).toMatchObject({
      code: 99,
      errors: expect.stringContaining("unknown model: 'nope'"),
    });
    expect(await run("-m", "echo", "-u", url, "-b", "9")).toMatchObject({
      code: 99,
      errors: expect.stringContaining("batch size: expected at most 8"),
    });
    expect(await run("-m", "count", "-u", url)).toMatchObject({
      code: 99,
      errors: expect.stringContaining("model 'count' is decoupled: expected gRPC with streaming"),
    });
  });
});
