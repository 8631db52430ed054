import { batch, sequenceState, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { onTestFinished } from "vitest";
import type { DataOptions } from "../../src/data/data-set.js";
import { loadDataSet } from "../../src/data/load-data-set.js";
import type { LoadGenerator, LoadOptions } from "../../src/load/load-generator.js";
import { startLoadGenerator } from "../../src/load/load-generator.js";
import { readModel } from "../../src/target/read-model.js";
import type { OpenAiTargetOptions, TargetOptions } from "../../src/target/target-options.js";

/** One row of a request to the model "sum", as the model saw it. */
export interface SeenStep {
  readonly id: bigint | string | undefined;
  readonly start: boolean;
  readonly end: boolean;
  readonly value: number;
}

/** Models behind HTTP and gRPC on free ports. */
export interface ServedModels {
  readonly triton: Triton;
  readonly http: string;
  readonly grpc: string;
  /** First values of the requests to "double". */
  readonly seenValues: number[];
  readonly seenSteps: SeenStep[];
  /** Requests that the server has counted as answered. */
  successes(model: string): number;
  failures(model: string): number;
}

/**
 * Serves "double" (FP32, batches of up to 8), "picky" (fails for negative values), "count" (decoupled: `x` responses),
 * "sum" (sequences) and "text" (BYTES).
 */
export async function serveModels(): Promise<ServedModels> {
  const triton = new Triton({
    exitTimeoutSecs: 0.1,
    allowClientSharedMemory: true,
    security: { restrictedEndpoints: [] },
  });
  const seenValues: number[] = [];
  const seenSteps: SeenStep[] = [];
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
    inferFunc: batch(({ x }) => {
      for (let row = 0; row < x.shape[0]!; row++) seenValues.push(x.get(row, 0));
      return { y: { ...x, data: x.data.map((value) => 2 * value) } as typeof x };
    }),
    config: { maxBatchSize: 8 },
  });
  triton.bind({
    modelName: "picky",
    inputs: [{ name: "x", dtype: "INT64", shape: [-1] }],
    outputs: [{ name: "y", dtype: "INT64", shape: [-1] }],
    inferFunc: ([request]) => {
      const { x } = request!.inputs;
      return [x.data[0]! < 0n ? new Error(`negative: ${x.data[0]}`) : { y: x }];
    },
    config: { batching: false },
  });
  triton.bind({
    modelName: "count",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: async function* ([request]) {
      const [count] = request!.inputs.x.data;
      for (let i = 0; i < count!; i++) yield [{ y: Int32Array.of(i) }];
    },
    config: { decoupled: true, batching: false },
  });
  const totals = sequenceState(() => ({ sum: 0 }));
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x }, sequence, correlationId, sequenceStart, sequenceEnd }) => {
        seenSteps.push({ id: correlationId, start: sequenceStart, end: sequenceEnd, value: x.data[0]! });
        const total = totals(sequence);
        total.sum += x.data[0]!;
        return { y: [[total.sum]] };
      }),
    config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 } },
  });
  triton.bind({
    modelName: "text",
    inputs: [{ name: "s", dtype: "BYTES", shape: [2] }],
    outputs: [{ name: "t", dtype: "BYTES", shape: [2] }],
    inferFunc: batch(({ s }) => ({ t: s })),
    config: { maxBatchSize: 4 },
  });
  await triton.ready();
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  onTestFinished(() => triton.close());
  const counted = (model: string, kind: "success" | "fail") =>
    serviceOf(triton).statistics(model, "")[0]!.inferenceStats[kind].count;
  return {
    triton,
    http: addressOf(addresses.http!),
    grpc: addressOf(addresses.grpc!),
    seenValues,
    seenSteps,
    successes: (model) => counted(model, "success"),
    failures: (model) => counted(model, "fail"),
  };
}

/** Without a look-up of the name, which gives addresses of both families. */
const addressOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${port}`;

/** A generator for one of the models, closed at the end of the test. */
export async function generatorFor(
  target: Exclude<TargetOptions, OpenAiTargetOptions>,
  { data = {}, load = {} }: { readonly data?: DataOptions; readonly load?: LoadOptions } = {},
): Promise<LoadGenerator> {
  const set = await loadDataSet(await readModel(target), data);
  const generator = await startLoadGenerator(target, set, { threads: 0, ...load });
  onTestFinished(() => generator.close());
  return generator;
}
