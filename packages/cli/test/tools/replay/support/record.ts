import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BatcherOptions } from "@tritonjs/core";
import { Triton } from "@tritonjs/core";
import type { Backend } from "@tritonjs/core/backend";
import ndarray from "ndarray";
import { afterAll } from "vitest";
import { Random } from "../../../../src/data/random.js";
import { SimulationClock } from "../../../../src/simulate/simulate.js";

/** A model under load on a virtual clock. */
export interface RecordedLoad {
  readonly maxBatchSize: number;
  readonly batcher: BatcherOptions;
  readonly instances: number;
  /** Requests a millisecond, as a Poisson process. */
  readonly perMs: number;
  readonly count: number;
  readonly rate?: number;
}

const folder = mkdtempSync(join(tmpdir(), "tritonjs-recordings-"));
afterAll(() => rmSync(folder, { recursive: true }));
let recordings = 0;

/**
 * Serves the load with a model whose batches take 4 ms and 0.5 ms for each row, and returns the trace file, which is
 * removed after the tests of the file.
 */
export async function record({
  maxBatchSize,
  batcher,
  instances,
  perMs,
  count,
  rate = 1,
}: RecordedLoad): Promise<string> {
  const file = join(folder, `trace-${recordings++}.json`);
  const clock = new SimulationClock();
  const noise = new Random(7);
  const backend: Backend = {
    backendName: "timed",
    platform: "",
    describe: () => undefined,
    createExecutor: () => ({
      details: {},
      mustFinish: false,
      async start() {},
      async stop() {},
      execute: ({ requests }) =>
        new Promise((resolve) => {
          const rows = requests.reduce((sum, one) => sum + one.rows, 0);
          const results = requests.map(({ inputs }) => new Map([["y", inputs.get("x")!]]));
          clock.setTimer((4 + 0.5 * rows) * (0.9 + 0.2 * noise.uniform()), () => resolve(results));
        }),
    }),
  };
  const triton = new Triton({ clock, trace: { level: "TIMESTAMPS", rate, file } });
  const tensor = { dtype: "UINT8", shape: [1] } as const;
  const model = triton.bind({
    modelName: "timed",
    inputs: [{ name: "x", ...tensor }],
    outputs: [{ name: "y", ...tensor }],
    inferFunc: backend,
    config: { maxBatchSize, batcher, instanceGroup: [{ count: instances }] },
  });
  await model.ready();
  const random = new Random(3);
  let [at, open] = [0, 0];
  for (let i = 0; i < count; i++) {
    at += random.exponential() / perMs;
    await clock.advanceTo(at);
    const rows = 1 + Math.floor(2 * random.uniform());
    open++;
    void model.infer({ x: ndarray(new Uint8Array(rows), [rows, 1]) }).finally(() => open--);
    clock.runDeferred();
  }
  await clock.runUntil(() => open === 0);
  const closed = triton.close();
  await clock.drain();
  await closed;
  return file;
}
