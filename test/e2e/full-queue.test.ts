import { InferenceServerClient } from "@tritonjs/client/grpc";
import type { ModelOptions, Triton } from "@tritonjs/core";
import { Exchange } from "@tritonjs/core/frontend";
import { describe, expect, it, onTestFinished } from "vitest";
import { EchoModel, echo } from "../support/echo-model.js";
import { openTriton, until } from "./support/open-triton.js";

const NOT_JSON = "this is no request";
const FULL = "Exceeds maximum queue size";

describe("a request to a full queue over HTTP", () => {
  it("is rejected before its body is decoded, with a retry time", async () => {
    const { post } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const answer = await post(NOT_JSON);
    expect(answer.status).toBe(503);
    expect(await answer.text()).toBe(`{"error":"[request id: <id_unknown>] ${FULL}"}`);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });

  it("is rejected before its body is decoded on the generate routes too", async () => {
    const { post } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    for (const action of ["generate", "generate_stream"]) {
      const answer = await post(NOT_JSON, action);
      expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining(FULL)]);
    }
  });

  it("leaves its connection usable", async () => {
    const { post, model, waiting } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    expect((await post(NOT_JSON.repeat(100_000))).status).toBe(503);
    model.releaseAll();
    await waiting;
    const body = { inputs: [{ name: "x", datatype: "INT32", shape: [1, 1], data: [7] }] };
    expect(await (await post(JSON.stringify(body))).json()).toMatchObject({ outputs: [{ data: [7] }] });
  });

  it("is decoded when another priority may have room", async () => {
    const { post } = await served({
      batcher: { priorityLevels: 2, defaultPriorityLevel: 1, defaultQueuePolicy: { maxQueueSize: 2 } },
    });
    expect((await post(NOT_JSON)).status).toBe(500);
  });

  it("is decoded when the response cache may have its answer", async () => {
    const { post } = await served({
      responseCache: true,
      batcher: { defaultQueuePolicy: { maxQueueSize: 2 } },
    });
    expect((await post(NOT_JSON)).status).toBe(500);
  });
});

describe("a request to a full queue over gRPC", () => {
  it("is rejected with its id and a retry time", async () => {
    const { infer } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const error = await infer().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining(`[request id: r1] ${FULL}`),
    });
    expect((error as { retryAfterMs?: number }).retryAfterMs).toBeGreaterThanOrEqual(1);
  });
});

/** The exchange of a request over a transport. */
function exchangeOf({ service }: Triton): Exchange {
  return new Exchange(service, undefined, service.model("echo", ""));
}

describe("many requests to a full queue at once", () => {
  it("are accepted when there is room at their turn, and otherwise rejected", async () => {
    const { triton, model, waiting } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const settled: string[] = [];
    // Most of them still wait when the queue has room, even if a turn of the event loop takes as long as a tick.
    const count = 200;
    for (let i = 0; i < count; i++) {
      void exchangeOf(triton)
        .turn("")!
        .then(
          () => settled.push("taken"),
          () => settled.push("refused"),
        );
    }
    await until(() => settled.length > 0);
    model.releaseAll();
    await waiting;
    await until(() => settled.length === count);
    expect(settled.slice(0, 8)).toEqual(Array(8).fill("refused"));
    expect(settled.at(-1)).toBe("taken");
    expect(exchangeOf(triton).turn("")).toBeUndefined();
  });
});

describe("a request in the line at a full queue", () => {
  it("leaves it when its client has gone, and is not counted as a rejection", async () => {
    const { triton } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const exchanges = Array.from({ length: 20 }, () => exchangeOf(triton));
    const outcomes = Promise.allSettled(exchanges.map((exchange) => exchange.turn("")));
    exchanges.at(-1)!.cancel();
    const reasons = (await outcomes).map((outcome) => outcome.status === "rejected" && outcome.reason.code);
    expect(reasons).toEqual([...Array(19).fill("UNAVAILABLE"), "CANCELLED"]);
    expect(await triton.service.metrics()).toContain(
      'tritonjs_request_refused_total{model="echo",version="1"} 19\n',
    );
  });

  it("is rejected when the server stops", async () => {
    const { triton, model } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const turns = Array.from({ length: 2000 }, () => exchangeOf(triton).turn("")!);
    const outcomes = Promise.allSettled(turns);
    const closed = triton.close();
    const reasons = (await outcomes).map(
      (outcome) => outcome.status === "rejected" && outcome.reason.message,
    );
    expect(reasons.at(-1)).toBe("Server not ready");
    model.releaseAll();
    await closed;
  });
});

describe("a stream of requests to a full queue", () => {
  it("has an answer or a rejection for each of them, in order", async () => {
    const { triton, model, client } = await served({ batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } });
    const requests = Array.from({ length: 60 }, (_, i) => ({
      modelName: "echo",
      id: `${i}`,
      inputs: { x: { datatype: "INT32", shape: [1, 1], data: [i] } } as const,
    }));
    const ids: string[] = [];
    let answered = 0;
    for await (const { id, result, error } of client.streamInfer(requests)) {
      ids.push(id);
      if (result !== undefined) answered++;
      else expect(error!.message).toContain(FULL);
      // From here on the model answers.
      if (ids.length === 20) {
        model.held = false;
        model.releaseAll();
      }
    }
    expect(ids).toEqual(requests.map(({ id }) => id));
    expect(answered).toBeGreaterThan(0);
    const page = await triton.service.metrics();
    expect(page).toContain(`tritonjs_request_refused_total{model="echo",version="1"} ${60 - answered}\n`);
  });
});

describe("rejections", () => {
  it("have a counter of their own, because Triton does not count them as failures", async () => {
    const { triton, post, infer, handle } = await served({
      batcher: { defaultQueuePolicy: { maxQueueSize: 2 } },
    });
    await post(NOT_JSON);
    await infer().catch(() => {});
    await echo(handle, 1).catch(() => {});
    const page = await triton.service.metrics();
    expect(page).toContain('tritonjs_request_refused_total{model="echo",version="1"} 3\n');
    expect(page).toContain('nv_inference_request_failure{model="echo",reason="REJECTED",version="1"} 0\n');
  });

  it("are counted for each priority level without room", async () => {
    const { triton, handle } = await served({
      batcher: { priorityLevels: 2, defaultPriorityLevel: 1, defaultQueuePolicy: { maxQueueSize: 2 } },
    });
    const refusal = await echo(handle, 1).catch((thrown: unknown) => thrown);
    expect(refusal).toMatchObject({ message: FULL });
    expect((refusal as { retryAfterMs?: number }).retryAfterMs).toBeGreaterThanOrEqual(1);
    expect(await triton.service.metrics()).toContain(
      'tritonjs_request_refused_total{model="echo",version="1"} 1\n',
    );
  });
});

/** A model whose only instance holds its first request, with a queue filled by two more. */
async function served(config: ModelOptions) {
  const triton: Triton = openTriton({ responseCache: { byteSize: 1 << 20 } });
  const model = new EchoModel();
  model.held = true;
  const handle = await model.bind(triton, { maxBatchSize: 1, ...config });
  const { addresses } = await triton.serve();
  const first = echo(handle, 100);
  await until(() => model.batches.length === 1);
  const waiting = Promise.all([first, echo(handle, 101), echo(handle, 102)]);
  onTestFinished(() => model.releaseAll());
  const client = new InferenceServerClient(`localhost:${addresses.grpc!.port}`);
  onTestFinished(() => client.close());
  const post = (body: string, action = "infer") =>
    fetch(`http://localhost:${addresses.http!.port}/v2/models/echo/${action}`, { method: "POST", body });
  const infer = () =>
    client.infer("echo", { inputs: { x: { datatype: "INT32", shape: [1, 1], data: [1] } }, id: "r1" });
  return { triton, model, handle, waiting, post, infer, client };
}
