import { batch, sample, type TensorFunc, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { Registry } from "prom-client";
import { describe, expect, it, onTestFinished } from "vitest";
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
  const lines = (await serviceOf(triton).metrics())
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

describe("response statistics", () => {
  const none = { count: 0, ns: 0 };
  const ms = (count: number, milliseconds: number) => ({ count, ns: milliseconds * 1e6 });

  /**
   * A model that answers each of `steps` after 5 ms: with the number, an error for -1, or no further response for 0.
   */
  async function counting() {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      modelName: "steps",
      inputs: [{ name: "steps", dtype: "INT32", shape: [-1] }],
      outputs: [{ name: "n", dtype: "INT32", shape: [1] }],
      inferFunc: async function* ([request]) {
        for (const step of request!.inputs.steps.data) {
          if (step === 0) return;
          await new Promise<void>((resolve) => clock.setTimer(5, resolve));
          yield [step === -1 ? new TritonError("INTERNAL", "broken") : { n: [step] }];
        }
      },
      config: { decoupled: true, batching: false },
    });
    await handle.ready();
    const infer = (steps: number[], signal?: AbortSignal) => {
      const answers = handle.stream({ steps }, { signal })[Symbol.asyncIterator]();
      return {
        next: async () => {
          const next = answers.next().catch((error: unknown) => error);
          // A slow generator gives the event loop a turn before it continues.
          await clock.settle();
          await clock.advance(5);
          return next;
        },
      };
    };
    return { handle, infer };
  }

  describe("response statistics", () => {
    it("are kept by the index of the response in its request", async () => {
      const { handle, infer } = await counting();
      for (const steps of [[7, 8], [9]]) {
        const answers = infer(steps);
        for (const _ of [...steps, "end"]) await answers.next();
      }
      const success = (count: number) => ({
        computeInfer: ms(count, 5 * count),
        computeOutput: ms(count, 0),
        success: ms(count, 5 * count),
        fail: none,
        emptyResponse: none,
        cancel: none,
      });
      expect(handle.statistics().responseStats).toEqual({ 0: success(2), 1: success(1) });
      expect(handle.statistics().inferenceStats.success.count).toBe(2);
    });

    it("separate errors and requests without a response", async () => {
      const { handle, infer } = await counting();
      await infer([0]).next();
      expect(handle.statistics().responseStats).toMatchObject({
        0: { emptyResponse: ms(1, 0), success: none },
      });
      await infer([-1]).next();
      expect(handle.statistics().responseStats[0]).toMatchObject({ fail: ms(1, 5), computeOutput: none });
    });

    it("record the response at which a request was cancelled", async () => {
      const { handle, infer } = await counting();
      const left = new AbortController();
      const answers = infer([1, 2, 3], left.signal);
      await answers.next();
      left.abort();
      await answers.next();
      const { 0: first, 1: second, 2: third } = handle.statistics().responseStats;
      expect(first).toMatchObject({ success: ms(1, 5), cancel: none });
      expect(second).toMatchObject({ success: none, cancel: ms(1, 0) });
      expect(third).toBeUndefined();
    });

    it("count a request cancelled while it runs as an execution and a failure, not as an inference", async () => {
      const { handle, infer } = await counting();
      const left = new AbortController();
      const given = infer([1, 2, 3], left.signal);
      await given.next();
      left.abort();
      await given.next();
      const kept = infer([4]);
      for (let i = 0; i < 2; i++) await kept.next();
      const { executionCount, inferenceCount, inferenceStats } = handle.statistics();
      expect({ executionCount, inferenceCount }).toEqual({ executionCount: 2, inferenceCount: 1 });
      expect([inferenceStats.success.count, inferenceStats.fail.count]).toEqual([1, 1]);
    });

    it("are empty for a model with one response to a request", async () => {
      const triton = new Triton();
      onTestFinished(() => triton.close());
      const handle = triton.bind({
        modelName: "one",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
        inferFunc: (requests: readonly { inputs: { x: unknown } }[]) =>
          requests.map(({ inputs }) => ({ y: inputs.x })) as never,
      });
      await handle.infer({ x: [[1]] });
      expect(handle.statistics().responseStats).toEqual({});
    });

    it("are kept for the first responses of a long stream", async () => {
      const triton = new Triton();
      onTestFinished(() => triton.close());
      const handle = triton.bind({
        modelName: "many",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
        inferFunc: function* () {
          for (let i = 0; i < 1500; i++) yield [{ y: [i] }];
        },
        config: { decoupled: true, batching: false },
      });
      let answers = 0;
      for await (const _ of handle.stream({ x: [1] })) answers++;
      expect([answers, Object.keys(handle.statistics().responseStats).length]).toEqual([1500, 1024]);
    });
  });
});

const spec = { dtype: "FP32", shape: [1] } as const;

function open(options: ConstructorParameters<typeof Triton>[0]) {
  const triton = new Triton(options);
  onTestFinished(() => triton.close());
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", ...spec }],
    outputs: [{ name: "y", ...spec }],
    inferFunc: sample(({ x }) => ({ y: x.data })),
  });
  return { triton, model };
}

describe("the metrics of a Triton", () => {
  it("are in triton.metrics, as on the page", async () => {
    const { triton, model } = open({});
    await model.infer({ x: [1] });
    const text = await triton.metrics.metrics();
    expect(text).toContain('nv_inference_request_success{model="m",version="1"} 1');
    expect(text).toMatch(/^nv_cpu_memory_total_bytes [1-9]/m);
    expect(await serviceOf(triton).metrics()).toContain('nv_inference_count{model="m",version="1"} 1');
  });

  it("are in the registry of the program until the Triton is closed", async () => {
    const registry = new Registry();
    const { triton, model } = open({ metrics: { registry, labels: { server: "a" } } });
    expect(triton.metrics).toBe(registry);
    await model.infer({ x: [1] });
    const line = 'nv_inference_count{server="a",model="m",version="1"} 1';
    expect(await registry.metrics()).toContain(line);
    expect(() => open({ metrics: { registry, labels: { server: "a" } } })).toThrow(
      "another Triton already reports",
    );
    await triton.close();
    expect(await registry.metrics()).not.toContain("nv_");
    open({ metrics: { registry, labels: { server: "a" } } });
  });

  it("include the process and its event loop on the page only", async () => {
    const { triton } = open({});
    const page = await serviceOf(triton).metrics();
    for (const family of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "nodejs_heap_size_used_bytes",
      "nodejs_eventloop_utilization",
      "nodejs_eventloop_lag_p99_seconds",
    ]) {
      expect(page).toMatch(new RegExp(`^${family} \\d`, "m"));
      expect(await triton.metrics.metrics()).not.toContain(family);
    }
  });

  it("are not left in the registry by a Triton with invalid options", async () => {
    const registry = new Registry();
    const rateLimit = "sometimes" as never;
    expect(() => new Triton({ metrics: { registry }, rateLimit })).toThrow("rateLimit: expected");
    expect(registry.getMetricsAsArray()).toEqual([]);
  });
});
