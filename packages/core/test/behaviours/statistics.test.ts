import { batch, type TensorFunc, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

/** A model whose batches take 7 ms; rows of -1 make it throw. */
async function served(maxBatchSize = 4) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, allowCpuMetrics: false });
  const run: TensorFunc<typeof echoInputs, typeof echoOutputs> = async ({ x }) => {
    await new Promise<void>((resolve) => clock.setTimer(7, resolve));
    if (x.data.includes(-1)) throw new TritonError("INTERNAL", "broken");
    return { y: x };
  };
  const handle = triton.bind({
    modelName: "echo",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: batch(run),
    config: { maxBatchSize },
  });
  await handle.ready();
  return { clock, triton, handle };
}

const ms = (milliseconds: number) => milliseconds * 1e6;

/** Series of models on the metrics page, labels sorted. */
async function series(triton: Triton): Promise<Record<string, number>> {
  const lines = (await triton.service.metrics())
    .split("\n")
    .filter((line) => /^(nv|tritonjs)_\w+\{.*model=/.test(line));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, labels, value] = /^(\w+)\{(.*)\} (.*)$/.exec(line)!;
      return [`${name}{${labels!.split(",").sort().join(",")}}`, Number(value)];
    }),
  );
}

const MODEL = 'model="echo"';
const VERSION = 'version="1"';

describe("statistics of successful requests", () => {
  it("count rows as inferences, batches as executions, and both by batch size", async () => {
    const { clock, handle } = await served();
    void handle.inferBatch({ x: [[1], [2], [3]] });
    void echo(handle, 4);
    await clock.advance(7);
    void echo(handle, 5);
    await clock.advance(7);
    const { inferenceCount, executionCount, batchStats, inferenceStats } = handle.statistics();
    expect([inferenceCount, executionCount, inferenceStats.success.count]).toEqual([5, 2, 3]);
    expect(batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer])).toEqual([
      [1, { count: 1, ns: ms(7) }],
      [4, { count: 1, ns: ms(7) }],
    ]);
  });

  it("measure waiting, computing and total time of each request", async () => {
    const { clock, handle } = await served(1);
    for (const value of [1, 2]) void echo(handle, value);
    await clock.advance(14);
    expect(handle.statistics().inferenceStats).toMatchObject({
      success: { count: 2, ns: ms(7 + 14) },
      queue: { count: 2, ns: ms(7) },
      computeInput: { count: 2, ns: 0 },
      computeInfer: { count: 2, ns: ms(14) },
      computeOutput: { count: 2, ns: 0 },
      fail: { count: 0, ns: 0 },
      cacheHit: { count: 0, ns: 0 },
    });
    expect(handle.statistics().lastInference).toBe(14);
  });

  it("count the time of the batch for each of its requests", async () => {
    const { clock, handle } = await served();
    for (const value of [1, 2, 3]) void echo(handle, value);
    await clock.advance(7);
    expect(handle.statistics().inferenceStats.computeInfer).toEqual({ count: 3, ns: ms(21) });
  });
});

describe("statistics of failed requests", () => {
  it("count the failure, and not the rows, the queue or the computation", async () => {
    const { clock, triton, handle } = await served();
    const sent = outcomesOf([-1, 2].map((value) => echo(handle, value)));
    await clock.advance(7);
    expect(await sent).toEqual(["INTERNAL broken", "INTERNAL broken"]);
    const { inferenceCount, executionCount, inferenceStats } = handle.statistics();
    expect([inferenceCount, executionCount]).toEqual([0, 1]);
    expect(inferenceStats).toMatchObject({
      success: { count: 0 },
      fail: { count: 2, ns: ms(14) },
      queue: { count: 0 },
      computeInfer: { count: 0 },
    });
    expect(await series(triton)).toMatchObject({
      [`nv_inference_request_failure{${MODEL},reason="BACKEND",${VERSION}}`]: 2,
    });
  });

  it("separate cancelled and timed out requests from other failures", async () => {
    const { clock, triton, handle } = await served(1);
    void echo(handle, 1);
    const giveUp = new AbortController();
    const cancelled = outcomeOf(echo(handle, 2, { signal: giveUp.signal }));
    const late = outcomeOf(echo(handle, 3, { timeoutMs: 2 }));
    await clock.advance(2);
    giveUp.abort();
    await clock.advance(5);
    expect([await cancelled, await late]).toEqual([
      "CANCELLED the request was cancelled",
      "UNAVAILABLE Request timeout expired",
    ]);
    expect(await series(triton)).toMatchObject({
      [`nv_inference_request_failure{${MODEL},reason="CANCELED",${VERSION}}`]: 1,
      [`nv_inference_request_failure{${MODEL},reason="REJECTED",${VERSION}}`]: 1,
      [`nv_inference_request_failure{${MODEL},reason="BACKEND",${VERSION}}`]: 0,
      [`nv_inference_request_success{${MODEL},${VERSION}}`]: 1,
    });
    expect(handle.statistics().inferenceStats.fail).toEqual({ count: 2, ns: ms(4) });
  });

  it("leave out requests that were rejected before they were queued", async () => {
    const { handle } = await served();
    await outcomeOf(handle.inferBatch({ x: [[1], [2], [3], [4], [5]] }));
    expect(handle.statistics().inferenceStats.fail.count).toBe(0);
  });
});

describe("metrics", () => {
  it("have every series of a model once it is loaded, and none after it is removed", async () => {
    const { triton, handle } = await served();
    const families = new Set(Object.keys(await series(triton)).map((name) => name.replace(/\{.*/, "")));
    expect(families).toEqual(
      new Set([
        "nv_inference_request_success",
        "nv_inference_request_failure",
        "nv_inference_count",
        "tritonjs_batch_cut_total",
        "tritonjs_instance_busy_seconds_total",
        "tritonjs_instance_count",
        "tritonjs_instance_restarts_total",
        "tritonjs_request_received_total",
        "tritonjs_request_refused_total",
        "nv_inference_exec_count",
        "nv_inference_request_duration_us",
        "nv_inference_queue_duration_us",
        "nv_inference_compute_input_duration_us",
        "nv_inference_compute_infer_duration_us",
        "nv_inference_compute_output_duration_us",
        "nv_inference_pending_request_count",
        "nv_model_load_duration_secs",
        ...["request", "queue"].flatMap((what) =>
          ["bucket", "sum", "count"].map((kind) => `tritonjs_${what}_duration_seconds_${kind}`),
        ),
      ]),
    );
    await handle.unbind();
    expect(await series(triton)).toEqual({});
  });

  it("count durations in microseconds", async () => {
    const { clock, triton, handle } = await served();
    void echo(handle, 1);
    await clock.advance(7);
    expect(await series(triton)).toMatchObject({
      [`nv_inference_request_duration_us{${MODEL},${VERSION}}`]: 7000,
      [`nv_inference_compute_infer_duration_us{${MODEL},${VERSION}}`]: 7000,
      [`nv_inference_count{${MODEL},${VERSION}}`]: 1,
      [`nv_inference_exec_count{${MODEL},${VERSION}}`]: 1,
    });
  });

  it("show waiting requests as pending, and not running ones", async () => {
    const { clock, triton, handle } = await served(1);
    for (const value of [1, 2, 3]) void echo(handle, value);
    await clock.settle();
    const pending = `nv_inference_pending_request_count{${MODEL},${VERSION}}`;
    expect((await series(triton))[pending]).toBe(2);
    await clock.advance(7);
    expect((await series(triton))[pending]).toBe(1);
    await clock.advance(14);
    expect((await series(triton))[pending]).toBe(0);
  });
});
