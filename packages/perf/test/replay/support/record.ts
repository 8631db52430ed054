import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InferOptions, ModelOptions } from "@tritonjs/core";
import { Triton } from "@tritonjs/core";
import type { Backend } from "@tritonjs/core/backend";
import ndarray from "ndarray";
import { KEPT } from "../../../../../test/support/temporary-folder.js";
import { Random } from "../../../src/data/random.js";
import { SimulationClock } from "../../../src/simulate/simulation-clock.js";

/** A model under load on a virtual clock. */
export interface RecordedLoad {
  readonly maxBatchSize: number;
  readonly batcher: NonNullable<ModelOptions["batcher"]>;
  readonly instances: number;
  /** Requests a millisecond, as a Poisson process. */
  readonly perMs: number;
  readonly count: number;
  readonly rate?: number;
  /** Milliseconds of a batch before noise. @default 4 ms and 0.5 ms for each row */
  readonly tookMs?: (rows: number) => number;
  /** Options of request number `i`, which then has one row. */
  readonly options?: (i: number) => InferOptions;
  /** Texts that an instance generates at a time; each takes `tookMs` of its number. @default none */
  readonly concurrency?: number;
}

const folder = mkdtempSync(join(tmpdir(), `${KEPT}recordings-`));
let recordings = 0;

/**
 * Serves the load with a model whose batches take 4 ms and 0.5 ms for each row, and returns the trace file, which
 * stays until the end of the run.
 */
export async function record({
  maxBatchSize,
  batcher,
  instances,
  perMs,
  count,
  rate = 1,
  tookMs = (rows) => 4 + 0.5 * rows,
  options,
  concurrency = 1,
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
      capacity: concurrency,
      async start() {},
      async stop() {},
      execute: ({ requests }) =>
        new Promise((resolve) => {
          const rows = requests.reduce((sum, one) => sum + one.rows, 0);
          const results = requests.map(({ inputs }) => new Map([["y", inputs.get("x")!]]));
          const size = concurrency === 1 ? rows : Number(requests[0]!.parameters.tokens);
          clock.setTimer(tookMs(size) * (0.9 + 0.2 * noise.uniform()), () => resolve(results));
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
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += random.exponential() / perMs;
    await clock.advanceTo(at);
    const rows = options === undefined ? 1 + Math.floor(2 * random.uniform()) : 1;
    const sent =
      maxBatchSize === 0
        ? model.infer({ x: [0] }, options?.(i))
        : model.infer({ x: ndarray(new Uint8Array(rows), [rows, 1]) }, options?.(i));
    void sent.catch(() => {});
    clock.runDeferred();
  }
  // Batches whose requests were given up end too. Then no timer is left that would cut short the writing of the file.
  await clock.drain();
  const closed = triton.close();
  await clock.drain();
  await closed;
  return file;
}
