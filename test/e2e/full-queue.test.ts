import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { batch, type ModelOptions, type Triton } from "@tritonjs/core";
import { Exchange, serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Element, NamedTensor } from "../conformance/clients/client.js";
import { EchoModel, echo } from "../support/echo-model.js";
import { flowers, irisModel } from "../support/iris.js";
import { openTriton, serveAndConnect, until } from "./support/open-triton.js";

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
function exchangeOf(triton: Triton): Exchange {
  const service = serviceOf(triton);
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
    expect(await serviceOf(triton).metrics()).toContain(
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
    const page = await serviceOf(triton).metrics();
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
    const page = await serviceOf(triton).metrics();
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
    expect(await serviceOf(triton).metrics()).toContain(
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

/** A batch that is not full waits longer than any test may take: only full ones are executed. */
const UNTIL_FULL = { maxQueueDelayMicroseconds: 600_000_000 };

async function inferOneByOne(rows: readonly (readonly number[])[]) {
  const triton = openTriton();
  const iris = triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: irisModel }),
    config: { maxBatchSize: 1, batcher: false },
  });
  const answers: { species: Element[]; probabilities: Element[] }[] = [];
  for (const measurements of rows) {
    const { species, probabilities } = await iris.inferSample({ measurements });
    answers.push({
      species: [...(species!.data as Iterable<Element>)],
      probabilities: [...(probabilities!.data as Iterable<Element>)],
    });
  }
  expect(iris.statistics().executionCount).toBe(rows.length);
  return answers;
}

function elementsOf(outputs: readonly NamedTensor[], name: string): readonly Element[] {
  return outputs.find((output) => output.name === name)!.elements;
}

describe("batches across transports", () => {
  it("one batch holds requests of all clients, and each client gets its own rows back", async () => {
    const triton = openTriton();
    const rowsSeen: number[] = [];
    const double = triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP64", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP64", shape: [2] }],
      inferFunc: batch(({ x }) => {
        rowsSeen.push(x.shape[0]!);
        return { y: x.data.map((value) => 2 * value) };
      }),
      config: { maxBatchSize: 15, batcher: UNTIL_FULL },
    });
    const clients = await serveAndConnect(triton);
    const inputs = clients.map((_client, i): NamedTensor => {
      const rows = i + 1;
      const elements = Array.from({ length: 2 * rows }, (_, k) => 100 * i + k);
      return { name: "x", datatype: "FP64", shape: [rows, 2], elements };
    });
    const answers = await Promise.all(
      clients.map((client, i) => client.infer({ model: "double", inputs: [inputs[i]!] })),
    );
    for (const [i, { outputs }] of answers.entries()) {
      const elements = inputs[i]!.elements.map((element) => 2 * Number(element));
      expect(outputs).toEqual([{ ...inputs[i], name: "y", elements }]);
    }
    expect(rowsSeen).toEqual([15]);
    expect(double.statistics()).toMatchObject({ inferenceCount: 15, executionCount: 1 });
  });
});

describe("64 single requests to an ONNX model in a worker, in process, over HTTP and over gRPC at once", () => {
  it("are merged into four executions of 16, and each answer equals the unbatched one", async () => {
    const triton = openTriton();
    const iris = triton.bind({
      modelName: "iris",
      inferFunc: onnxruntime({ model: irisModel }),
      config: { maxBatchSize: 16, batcher: UNTIL_FULL },
    });
    const clients = await serveAndConnect(triton);
    const rows = Array.from({ length: 64 }, (_, i) => flowers[(i * 7) % flowers.length]!);
    const answers = await Promise.all(
      rows.map(async (row, i) => {
        const input = { name: "measurements", datatype: "FP32", shape: [1, 4], elements: row } as const;
        return clients[i % clients.length]!.infer({ model: "iris", inputs: [input] });
      }),
    );
    const statistics = iris.statistics();
    expect(statistics.inferenceCount).toBe(64);
    expect(statistics.executionCount).toBe(4);
    expect(
      statistics.batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer.count]),
    ).toEqual([[16, 4]]);
    const unbatched = await inferOneByOne(rows);
    for (const [i, { outputs }] of answers.entries()) {
      expect(elementsOf(outputs, "species")).toEqual(unbatched[i]!.species);
      // The order of additions inside a matrix product may depend on its size.
      for (const [k, probability] of elementsOf(outputs, "probabilities").entries()) {
        expect(probability).toBeCloseTo(Number(unbatched[i]!.probabilities[k]), 6);
      }
    }
  });

  it("are merged while the instance is busy, without any delay", async () => {
    const triton = openTriton();
    const iris = triton.bind({
      modelName: "iris",
      inferFunc: onnxruntime({ model: irisModel }),
      config: { maxBatchSize: 64 },
    });
    const clients = await serveAndConnect(triton);
    const call = (row: readonly number[]) => ({
      model: "iris",
      inputs: [{ name: "measurements", datatype: "FP32", shape: [1, 4], elements: row } as const],
    });
    await Promise.all(flowers.slice(0, 64).map((row, i) => clients[i % clients.length]!.infer(call(row))));
    const { inferenceCount, executionCount } = iris.statistics();
    expect(inferenceCount).toBe(64);
    expect(executionCount).toBeLessThan(64);
  });
});
