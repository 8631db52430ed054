import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-command.js";

const RESPONSES = 5;

let folder: string;
let triton: Triton;
let url: string;

const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-periodic-"));
  triton = new Triton({ security: { restrictedEndpoints: [] }, exitTimeoutSecs: 0.1 });
  const tensors = {
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
  } as const;
  triton.bind({
    modelName: "count",
    ...tensors,
    inferFunc: async function* () {
      for (let i = 0; i < RESPONSES; i++) yield [{ y: Int32Array.of(i) }];
    },
    config: { decoupled: true, batching: false, instanceGroup: [{ count: 2 }] },
  });
  triton.bind({ modelName: "echo", ...tensors, inferFunc: batch(({ x }) => ({ y: x })) });
  const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
  url = `127.0.0.1:${addresses.grpc!.port}`;
});

afterAll(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

const run = (model: string, options: string) =>
  runCommand(
    `-m ${model} -i grpc --streaming -u ${url} --profile-export-file ${file("profile.json")} ${options}`,
  );

interface ProfiledRequest {
  readonly timestamp: number;
  readonly response_timestamps: readonly number[];
}

describe("tritonjs perf with a periodic concurrency", () => {
  it("sends each step after the responses of the step before", async () => {
    const { code, errors, output } = await run(
      "count",
      "--periodic-concurrency-range 3:8:2 --request-period 4",
    );
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    expect(output).toContain("Periodic concurrency: 8");
    expect(serviceOf(triton).statistics("count", "")[0]!.inferenceStats.success.count).toBe(8);
    const { experiments } = JSON.parse(await readFile(file("profile.json"), "utf8"));
    expect(experiments[0].experiment).toEqual({ mode: "concurrency", value: 8 });
    const requests: ProfiledRequest[] = experiments[0].requests.toSorted(
      (a: ProfiledRequest, b: ProfiledRequest) => a.timestamp - b.timestamp,
    );
    expect(requests).toHaveLength(8);
    const steps = [requests.slice(0, 3), requests.slice(3, 5), requests.slice(5, 7), requests.slice(7)];
    for (const [i, step] of steps.slice(1).entries()) {
      const reached = Math.max(...steps[i]!.map((request) => request.response_timestamps[3]!));
      for (const { timestamp } of step) expect(timestamp).toBeGreaterThanOrEqual(reached);
    }
  });

  it("warns of requests that end before their period, and sends the others", async () => {
    const { code, errors, output } = await run(
      "count",
      "--periodic-concurrency-range 1:4 --request-period 9",
    );
    expect(code).toBe(0);
    expect(output).toContain("Request count: 4");
    expect(errors).toContain("[WARNING] 4 requests ended with fewer than 9 responses");
  });

  it("refuses a model that is not decoupled", async () => {
    expect(await run("echo", "--periodic-concurrency-range 1:4")).toMatchObject({
      code: 99,
      errors: expect.stringContaining("expected a decoupled model without sequences, 'echo' is not"),
    });
  });
});
