import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
// @ts-expect-error: a module of JavaScript, which workers import as it is.
import { styles } from "./fixtures/tells-requests.mjs";

const STYLES = [
  "plain",
  "batch",
  "sample",
  "groupByKeys around a plain callback",
  "fillOptionals around a plain callback",
];

/** What is known of a request, as all callbacks are told of it. */
const INFO = [
  ...["id", "parameters", "priority", "queueTimeoutMicroseconds", "requestedOutputs", "batchSize", "ready"],
  ...["correlationId", "sequence", "sequenceStart", "sequenceEnd"],
];

const options = {
  id: "a",
  priority: 2,
  parameters: { n: 7, flag: true },
  queueTimeoutMicroseconds: 60_000_000,
};
const sequence = { sequence: { id: "s", start: true } } as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

const fixture = (style: string) =>
  new URL(`./fixtures/tells-requests.mjs?${encodeURIComponent(style)}`, import.meta.url);

/** What a callback of a style tells of one request: on this thread, or in a worker. */
async function told(style: string, where: "here" | "in a worker", config: ModelOptions = {}) {
  const inferFunc = where === "here" ? styles[style] : fixture(style);
  const handle = triton.bind({
    modelName: where === "here" ? "here" : "worker",
    inputs: [
      { name: "x", dtype: "INT32", shape: [1] },
      { name: "z", dtype: "INT32", shape: [1], optional: true },
    ],
    outputs: [{ name: "told", dtype: "BYTES", shape: [1] }],
    inferFunc,
    config: { ...(style === "sample" ? { batching: false } : {}), ...config },
  });
  await handle.ready();
  const x = style === "sample" ? [1] : [[1]];
  const given = config.sequence === undefined ? options : { ...options, ...sequence };
  const answer = await handle.infer({ x } as never, given);
  return JSON.parse(Buffer.from((answer as { told: { data: Uint8Array[] } }).told.data[0]!).toString());
}

describe("what a callback is told of a request", () => {
  for (const style of STYLES) {
    it(`is the same on the main thread and in a worker: ${style}`, async () => {
      const here = await told(style, "here");
      expect(await told(style, "in a worker")).toEqual(here);
      expect(here.inContext[0].data).toMatchObject({ id: "a", priority: 2, parameters: options.parameters });
    });
  }

  it("is the same on the main thread and in a worker for a request of a sequence", async () => {
    const config = { sequence: {} } satisfies ModelOptions;
    const here = await told("plain", "here", config);
    expect(await told("plain", "in a worker", config)).toEqual(here);
    expect(here.request.data).toMatchObject({ correlationId: "s", sequence: { correlationId: "s" } });
  });

  for (const style of STYLES) {
    it(`leads nowhere from which a request could be answered or given up: ${style}`, async () => {
      const { request, inContext } = await told(style, "here");
      const reachable = ["constructor", "runInContext"];
      const inInfo = [...INFO, "runInContext"].sort();
      expect(inContext.map(({ names }: { names: string[] }) => names)).toEqual([inInfo]);
      if (request === undefined) return;
      expect(request.names).toEqual([...INFO, ...reachable, "inputs", "signal"].sort());
      expect(request.data).toEqual(inContext[0].data);
    });
  }

  it("is the same for those that say how requests are grouped and what they cost", async () => {
    const seen: unknown[] = [];
    const note = (request: { readonly inputs: object }) => {
      const { inputs: _, ...info } = request;
      seen.push(Object.keys(info).sort());
      return 1;
    };
    const handle = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x.data })),
      config: { batcher: { batchBy: note, cost: note, maxBatchCost: 10 } },
    });
    await handle.infer({ x: [[1]] }, options);
    expect(seen).toEqual([[...INFO].sort(), [...INFO].sort()]);
  });
});
