import type { TensorSpec } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { OrderedResponses } from "../../src/scheduler/dynamic/ordered-responses.js";
import { BatcherBench } from "../support/batcher-bench.js";
import { outcomeText, requestWith } from "../support/requests.js";
import { fp32, ones } from "../support/tensors.js";

const variable: readonly TensorSpec[] = [{ name: "x", dtype: "FP32", shape: [-1] }];

describe("without a dynamic batcher", () => {
  it("each request runs as its own batch in order of arrival, with its rows unchanged", async () => {
    const bench = await BatcherBench.open({ batcher: false, execMs: 10 });
    bench.send("a");
    bench.send("b", { rows: 3 });
    bench.send("c", { priority: 1 });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a @0", "b @10", "c @20"]);
    expect(bench.handle.statistics().batchStats.map(({ batchSize }) => batchSize)).toEqual([1, 3]);
  });
});

describe("preferred batch sizes", () => {
  it("default to the largest size alone", async () => {
    const bench = await BatcherBench.open({ batcher: { maxQueueDelayMicroseconds: 5000 } });
    expect(bench.handle.config().dynamicBatching?.preferredBatchSize).toEqual([4]);
    bench.sendAll("a b c");
    await bench.clock.advance(4);
    expect(bench.batches).toEqual([]);
    bench.send("d");
    await bench.clock.advance(0);
    expect(bench.batches).toEqual(["a b c d @4"]);
  });

  it("are superseded by larger ones reached later in the queue", async () => {
    const bench = await BatcherBench.open({ batcher: { preferredBatchSize: [2, 3] }, delayScheduler: 4 });
    bench.sendAll("a b c d");
    await bench.clock.settle();
    expect(bench.batches).toEqual(["a b c @0", "d @0"]);
  });
});

describe("the age of a batch", () => {
  it("is that of its oldest request, which is not the first one after a delay", async () => {
    const bench = await BatcherBench.open({
      batcher: {
        maxQueueDelayMicroseconds: 20_000,
        defaultQueuePolicy: { timeoutAction: "DELAY", defaultTimeoutMicroseconds: 5000 },
      },
    });
    bench.send("old");
    await bench.clock.advance(18);
    bench.send("young");
    await bench.clock.advance(2);
    expect(bench.batches).toEqual(["young old @20"]);
  });
});

describe("priority levels", () => {
  const levels = { priorityLevels: 3, defaultPriorityLevel: 2 };

  it("run the highest level first, 1 before 2, whatever the order of arrival", async () => {
    const bench = await BatcherBench.open({ batcher: levels, execMs: 10, maxBatchSize: 1 });
    bench.send("now");
    await bench.clock.advance(1);
    bench.send("c", { priority: 3 });
    bench.send("b", { priority: 2 });
    bench.send("a", { priority: 1 });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["now @0", "a @10", "b @20", "c @30"]);
  });

  it("put a request without a level or with an unknown level on the default level", async () => {
    const bench = await BatcherBench.open({ batcher: levels, execMs: 10, maxBatchSize: 1 });
    bench.send("now");
    await bench.clock.advance(1);
    bench.send("third", { priority: 3 });
    bench.send("none", { priority: 0 });
    bench.send("beyond", { priority: 4 });
    bench.send("first", { priority: 1 });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["now @0", "first @10", "none @20", "beyond @30", "third @40"]);
  });

  it("share batches: a batch continues with the next level", async () => {
    const bench = await BatcherBench.open({ batcher: levels, delayScheduler: 3 });
    bench.send("c", { priority: 3 });
    bench.send("a", { priority: 1 });
    bench.send("b", { priority: 2 });
    await bench.clock.settle();
    expect(bench.batches).toEqual(["a b c @0"]);
  });
});

describe("queue policies", () => {
  const timeout = (policy: object) => ({
    defaultQueuePolicy: { defaultTimeoutMicroseconds: 5000, ...policy },
  });

  it("end a request on timeout with REJECT, even when no instance is free", async () => {
    const bench = await BatcherBench.open({ batcher: timeout({}), execMs: 50 });
    bench.send("a");
    await bench.clock.advance(1);
    bench.send("b");
    await bench.clock.advance(20);
    expect(bench.outcomes).toEqual(["b: UNAVAILABLE Request timeout expired @6"]);
    expect(bench.batches).toEqual(["a @0"]);
  });

  it("run a request after all others of its level with DELAY, without any further timeout", async () => {
    const bench = await BatcherBench.open({
      batcher: { ...timeout({ timeoutAction: "DELAY" }), priorityLevels: 2, defaultPriorityLevel: 1 },
      execMs: 20,
      maxBatchSize: 1,
    });
    bench.send("a");
    await bench.clock.advance(1);
    bench.send("late");
    await bench.clock.advance(18);
    bench.send("fresh");
    bench.send("second", { priority: 2 });
    await bench.clock.advance(200);
    expect(bench.batches).toEqual(["a @0", "fresh @20", "late @40", "second @60"]);
    expect(bench.outcomes.every((outcome) => outcome.includes("response"))).toBe(true);
  });

  it("let a request wait forever without a default timeout", async () => {
    const bench = await BatcherBench.open({ execMs: 1_000_000 });
    bench.send("a");
    await bench.clock.advance(1);
    bench.send("b");
    await bench.clock.advance(900_000);
    expect(bench.outcomes).toEqual([]);
  });

  it("let a request's own timeout shorten the default, never lengthen it, and only when overriding is allowed", async () => {
    const outcomesOf = async (allowTimeoutOverride: boolean) => {
      const bench = await BatcherBench.open({ batcher: timeout({ allowTimeoutOverride }), execMs: 50 });
      bench.send("a");
      await bench.clock.advance(1);
      bench.send("short", { queueTimeoutMicroseconds: 2000 });
      bench.send("long", { queueTimeoutMicroseconds: 9000 });
      await bench.clock.advance(20);
      return bench.outcomes;
    };
    expect(await outcomesOf(true)).toEqual([
      "short: UNAVAILABLE Request timeout expired @3",
      "long: UNAVAILABLE Request timeout expired @6",
    ]);
    expect(await outcomesOf(false)).toEqual([
      "short: UNAVAILABLE Request timeout expired @6",
      "long: UNAVAILABLE Request timeout expired @6",
    ]);
  });

  it("apply a request's own timeout when there is no default", async () => {
    const batcher = { defaultQueuePolicy: { allowTimeoutOverride: true } };
    const bench = await BatcherBench.open({ batcher, execMs: 50 });
    bench.send("a");
    await bench.clock.advance(1);
    bench.send("short", { queueTimeoutMicroseconds: 2000 });
    bench.send("none");
    await bench.clock.advance(20);
    expect(bench.outcomes).toEqual(["short: UNAVAILABLE Request timeout expired @3"]);
  });

  it("replace the default policy of one level at that level only", async () => {
    const bench = await BatcherBench.open({
      batcher: {
        ...timeout({}),
        priorityLevels: 2,
        defaultPriorityLevel: 2,
        priorityQueuePolicy: { 1: { defaultTimeoutMicroseconds: 10_000 } },
      },
      execMs: 50,
    });
    bench.send("now");
    await bench.clock.advance(1);
    bench.send("own", { priority: 1 });
    bench.send("default", { priority: 2 });
    await bench.clock.advance(20);
    expect(bench.outcomes).toEqual([
      "default: UNAVAILABLE Request timeout expired @6",
      "own: UNAVAILABLE Request timeout expired @11",
    ]);
  });

  it("limit the size of each level separately, including delayed requests", async () => {
    const bench = await BatcherBench.open({
      batcher: {
        ...timeout({ timeoutAction: "DELAY", maxQueueSize: 2 }),
        priorityLevels: 2,
        defaultPriorityLevel: 2,
      },
      execMs: 50,
    });
    bench.send("now");
    await bench.clock.advance(1);
    bench.send("a");
    await bench.clock.advance(10);
    bench.sendAll("b c");
    bench.send("other", { priority: 1 });
    await bench.clock.settle();
    expect(bench.outcomes).toEqual(["c: UNAVAILABLE [request id: c] Exceeds maximum queue size @11"]);
    expect(bench.handle.queue().levels).toMatchObject([
      { priorityLevel: 1, queued: 1 },
      { priorityLevel: 2, queued: 2, delayed: 1 },
    ]);
  });
});

describe("batches formed ahead", () => {
  const loaded = async (batcher: object, instances = 1) => {
    const bench = await BatcherBench.open({ batcher, execMs: 50, maxBatchSize: 1, instances });
    for (let i = 0; i < 9; i++) bench.send(String(i));
    await bench.clock.settle();
    const { queued, payloads } = bench.handle.queue();
    return { queued, formed: payloads.length };
  };

  it("are two for each instance while no policy could act on their requests", async () => {
    expect(await loaded({})).toEqual({ queued: 6, formed: 2 });
    expect(await loaded({}, 2)).toEqual({ queued: 3, formed: 4 });
  });

  it.each([
    ["a timeout", { defaultQueuePolicy: { defaultTimeoutMicroseconds: 1_000_000 } }],
    ["an override", { defaultQueuePolicy: { allowTimeoutOverride: true } }],
    ["a limit of size", { defaultQueuePolicy: { maxQueueSize: 100 } }],
    ["priorities", { priorityLevels: 1, defaultPriorityLevel: 1 }],
  ])("are none with %s: only an idle instance gets a batch", async (_, batcher) => {
    expect(await loaded(batcher)).toEqual({ queued: 8, formed: 0 });
  });
});

describe("requests that cannot share a batch", () => {
  it("end it, and matching requests behind them are not pulled forward", async () => {
    const bench = await BatcherBench.open({ inputs: variable, delayScheduler: 4, execMs: 10 });
    bench.send("a", { columns: 2 });
    bench.send("b", { columns: 3 });
    bench.sendAll("c d", { columns: 2 });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a @0", "b @10", "c d @20"]);
  });

  it("end the delay for themselves and for the requests before them", async () => {
    const bench = await BatcherBench.open({
      inputs: variable,
      batcher: { maxQueueDelayMicroseconds: 10_000 },
    });
    bench.send("a", { columns: 2 });
    await bench.clock.advance(1);
    bench.send("b", { columns: 3 });
    await bench.clock.advance(20);
    expect(bench.batches).toEqual(["a @1", "b @11"]);
  });

  it("do not include requests with other ragged shapes", async () => {
    const inputs = [{ ...variable[0]!, allowRaggedBatch: true }];
    const bench = await BatcherBench.open({ inputs, delayScheduler: 2 });
    bench.send("a", { columns: 2 });
    bench.send("b", { columns: 3 });
    await bench.clock.settle();
    expect(bench.batches).toEqual(["a b @0"]);
  });

  it("include requests with another value of a shape tensor of the same shape", async () => {
    const inputs: TensorSpec[] = [
      { name: "x", dtype: "FP32", shape: [2] },
      { name: "size", dtype: "FP32", shape: [2], isShapeTensor: true },
    ];
    const bench = await BatcherBench.open({ inputs, delayScheduler: 3, execMs: 10 });
    for (const [id, height] of [
      ["a", 1],
      ["b", 1],
      ["c", 3],
    ] as const) {
      bench.send(id, { inputs: { x: ones(1, 2), size: fp32([2], [height, 2]) } });
    }
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a b @0", "c @10"]);
  });

  it("include requests with other optional inputs", async () => {
    const inputs: TensorSpec[] = [
      { name: "x", dtype: "FP32", shape: [2] },
      { name: "maybe", dtype: "FP32", shape: [2], optional: true },
    ];
    const bench = await BatcherBench.open({ inputs, delayScheduler: 4, execMs: 10 });
    bench.sendAll("a b");
    bench.send("c", { inputs: { x: ones(1, 2), maybe: ones(1, 2) } });
    bench.send("d", { inputs: { x: ones(1, 2), maybe: ones(1, 2) } });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a b @0", "c d @10"]);
  });
});

describe("payloads that wait for an instance", () => {
  it("grow with each new request up to the largest size, without delay", async () => {
    const bench = await BatcherBench.open({
      batcher: { maxQueueDelayMicroseconds: 5000 },
      execMs: 50,
    });
    bench.sendAll("a b c d");
    await bench.clock.advance(1);
    bench.send("e");
    await bench.clock.advance(6);
    for (const id of ["f", "g", "h", "i"]) {
      bench.send(id);
      await bench.clock.advance(1);
    }
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a b c d @0", "e f g h @50", "i @100"]);
  });

  it("are merged when an instance takes them after they have waited longer than the delay", async () => {
    const bench = await BatcherBench.open({
      batcher: { maxQueueDelayMicroseconds: 2000, preferredBatchSize: [2] },
      execMs: 50,
    });
    bench.sendAll("a b");
    await bench.clock.advance(1);
    bench.sendAll("c d");
    await bench.clock.advance(1);
    bench.sendAll("e f");
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["a b @0", "c d e f @50"]);
  });
});

describe("the delayScheduler option", () => {
  it("holds the first batch until the given number of requests wait, and only once", async () => {
    const bench = await BatcherBench.open({ delayScheduler: 2 });
    bench.send("a");
    await bench.clock.advance(1000);
    bench.send("b");
    await bench.clock.advance(1);
    bench.send("c");
    await bench.clock.settle();
    expect(bench.batches).toEqual(["a b @1000", "c @1001"]);
  });
});

describe("cancelled requests", () => {
  it("leave the queue, and other requests take their place in the batch", async () => {
    const bench = await BatcherBench.open({ delayScheduler: 5 });
    const sent = bench.sendAll("a b c d");
    sent[1]?.cancel();
    bench.sendAll("e f");
    await bench.clock.settle();
    expect(bench.batches).toEqual(["a c d e @0", "f @0"]);
  });
});

const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: new Map() };

/** Admitted requests, and what was delivered so far. */
function admitted(count: number): { requests: InferenceRequest[]; delivered: string[] } {
  const ordered = new OrderedResponses();
  const delivered: string[] = [];
  const requests = Array.from({ length: count }, (_, i) =>
    requestWith({}, { onResponse: (outcome) => delivered.push(`${i} ${outcomeText(outcome)}`) }),
  );
  for (const request of requests) {
    ordered.admit(request);
    request.startExecution();
  }
  return { requests, delivered };
}

describe("ordered responses", () => {
  it("are held back until all earlier requests are answered", () => {
    const { requests, delivered } = admitted(3);
    requests[2]!.respond(response);
    requests[1]!.respond(response);
    expect(delivered).toEqual([]);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["0 response", "1 response", "2 response"]);
  });

  it("do not wait for a cancelled request", () => {
    const { requests, delivered } = admitted(3);
    requests[1]!.respond(response);
    requests[0]!.cancel();
    expect(delivered).toEqual(["1 response", "0 CANCELLED the request was cancelled"]);
  });

  it("are passed on as they are produced once it is the turn of their request", () => {
    const { requests, delivered } = admitted(2);
    requests[1]!.respond(response, false);
    requests[0]!.respond(response, false);
    expect(delivered).toEqual(["0 response"]);
    requests[0]!.finish();
    requests[1]!.respond(response, false);
    expect(delivered).toEqual(["0 response", "0 nothing", "1 response", "1 response"]);
  });

  it("are replaced by an error at once when their request is cancelled while they are held back", () => {
    const { requests, delivered } = admitted(3);
    requests[2]!.respond(response);
    requests[1]!.respond(response);
    expect(requests[1]!.cancel()).toBe(true);
    expect(delivered).toEqual(["1 CANCELLED the request was cancelled"]);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["1 CANCELLED the request was cancelled", "0 response", "2 response"]);
    expect(requests[2]!.cancel()).toBe(false);
  });

  it("are delivered once, even if the model responds again while the first is held back", () => {
    const { requests, delivered } = admitted(2);
    expect(requests[1]!.respond(response)).toBe(true);
    expect(requests[1]!.respond(response)).toBe(false);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["0 response", "1 response"]);
  });

  it("keep their order when a delivery cancels other requests", () => {
    const ordered = new OrderedResponses();
    const delivered: string[] = [];
    const requests: InferenceRequest[] = Array.from({ length: 4 }, (_, i) =>
      requestWith(
        {},
        {
          onResponse: (outcome) => {
            delivered.push(`${i} ${outcomeText(outcome)}`);
            if (i === 0) requests[1]!.cancel();
          },
        },
      ),
    );
    for (const request of requests) {
      ordered.admit(request);
      request.startExecution();
    }
    for (const request of requests.slice(2)) request.respond(response);
    requests[0]!.respond(response);
    expect(delivered).toEqual([
      "0 response",
      "1 CANCELLED the request was cancelled",
      "2 response",
      "3 response",
    ]);
  });
});
