import { Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { InferenceServerClient as GrpcClient, InferenceServerClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import {
  batch,
  done,
  type Parameters,
  responseParameters,
  sample,
  stepwise,
  Tensor,
  Triton,
  TritonError,
  withParameters,
} from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { encodeMessage, inference, inferencePath } from "@tritonjs/protocol/grpc";
import { type InferenceResponse, serviceOf } from "@tritonjs/server";
import { Gauge, Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openGrpcJsServer } from "../support/grpc-js-server.js";
import { sendRequest } from "../support/send-request.js";
import { openTriton } from "./support/open-triton.js";

describe("response parameters", () => {
  const inputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;

  const outputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

  const all: Parameters = { text: "é", count: 3, big: 2n ** 62n, ratio: 0.5, flag: true };

  let triton: Triton;

  afterEach(() => triton.close());

  describe("response parameters", () => {
    it("come from plain callbacks, separately for each request", async () => {
      triton = new Triton();
      const handle = triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: (requests) =>
          requests.map(({ inputs: { x } }) => withParameters({ y: x }, { ...all, x: x.get(0, 0) })),
      });
      const answers = await Promise.all([1, 2].map((x) => handle.inferSample({ x: [x] })));
      expect(answers.map(responseParameters)).toEqual([
        { ...all, x: 1 },
        { ...all, x: 2 },
      ]);
      expect(answers.map(({ y }) => y.get(0))).toEqual([1, 2]);
    });

    it("come from batch callbacks, for each request or for all", async () => {
      triton = new Triton();
      const bind = (modelName: string, parameters: (n: number) => Parameters | Parameters[]) =>
        triton.bind({
          modelName,
          inputs,
          outputs,
          inferFunc: batch(({ x }, { requests }) => withParameters({ y: x }, parameters(requests.length))),
        });
      const each = bind("each", (n) => Array.from({ length: n }, (_, position) => ({ position, of: n })));
      const same = bind("same", (n) => ({ of: n }));
      const ask = (handle: typeof each) =>
        Promise.all([1, 2, 3].map(async (x) => responseParameters(await handle.inferSample({ x: [x] }))));
      expect(await ask(each)).toEqual([0, 1, 2].map((position) => ({ position, of: 3 })));
      expect(await ask(same)).toEqual([{ of: 3 }, { of: 3 }, { of: 3 }]);
    });

    it("come from samples, generators, senders and steps", async () => {
      triton = new Triton();
      const one = triton.bind({
        modelName: "sample",
        inputs,
        outputs,
        inferFunc: sample(({ x }) => withParameters({ y: x }, all)),
      });
      expect(responseParameters(await one.infer({ x: [1] }))).toEqual(all);
      const streams = [
        triton.bind({
          modelName: "generator",
          inputs,
          outputs,
          inferFunc: sample(async function* ({ x }) {
            for (let i = 0; i < 2; i++) yield withParameters({ y: x }, { i });
          }),
        }),
        triton.bind({
          modelName: "sender",
          inputs,
          outputs,
          inferFunc: async ([request]) => {
            const { inputs: { x }, responseSender } = request!; // biome-ignore format: short
            await responseSender.send(withParameters({ y: x }, { i: 0 }));
            await responseSender.send(withParameters({ y: x }, { i: 1 }), { final: true });
          },
          config: { decoupled: true, batching: false },
        }),
        triton.bind({
          modelName: "steps",
          inputs,
          outputs,
          inferFunc: stepwise({
            start: ({ x }) => ({ x, i: 0 }),
            step: (active) =>
              active.map((state) => {
                const result = withParameters({ y: state.x }, { i: state.i++ });
                return state.i === 2 ? done(result) : result;
              }),
          }),
        }),
      ];
      for (const [i, handle] of streams.entries()) {
        const seen: Parameters[] = [];
        const x = i === 2 ? [[1]] : [1];
        for await (const answer of handle.stream({ x })) seen.push(responseParameters(answer));
        expect(seen).toEqual([{ i: 0 }, { i: 1 }]);
      }
    });

    it("come from workers, and from models that a callback calls", async () => {
      triton = new Triton();
      const inWorker = triton.bind({
        modelName: "in-worker",
        inputs,
        outputs,
        inferFunc: new URL(
          "../../packages/core/test/behaviours/fixtures/tells-parameters.mjs",
          import.meta.url,
        ),
      });
      await inWorker.ready();
      const caller = triton.bind({
        modelName: "caller",
        inputs,
        outputs,
        inferFunc: async (requests, context) =>
          Promise.all(
            requests.map(async ({ inputs: { x } }) => {
              const answer = await context.infer("in-worker", { x });
              return withParameters({ y: x }, { heard: JSON.stringify(responseParameters(answer)) });
            }),
          ),
      });
      const answer = await caller.inferSample({ x: [7] });
      expect(responseParameters(answer)).toEqual({ heard: '{"x":7,"flag":true}' });
    });

    it("are empty when a callback sets none", async () => {
      triton = new Triton();
      const handle = triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: batch(({ x }) => ({ y: x })),
      });
      expect(responseParameters(await handle.inferSample({ x: [1] }))).toEqual({});
    });

    it.each([
      ["an object", {}, "object"],
      ["NaN", Number.NaN, "NaN"],
      ["an integer beyond 64 bits", 2n ** 63n, "9223372036854775808"],
    ])("cannot be %s", async (_what, value, told) => {
      triton = new Triton();
      const handle = triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: batch(({ x }) => withParameters({ y: x }, { p: value as number })),
      });
      await expect(handle.inferSample({ x: [1] })).rejects.toThrow(
        `model 'm' returned a wrong parameter 'p': expected a string, a boolean, a finite number or an integer of ` +
          `64 bits, got ${told}`,
      );
    });

    it("reach clients of HTTP and gRPC", async () => {
      triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
      triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: batch(({ x }) => withParameters({ y: x }, all)),
      });
      const { addresses } = await triton.serve();
      const answer = await fetch(`${addresses.http!.url}/v2/models/m/infer`, {
        method: "POST",
        body: '{"inputs":[{"name":"x","datatype":"INT32","shape":[1,1],"data":[1]}]}',
      });
      expect(await answer.text()).toContain(
        '"parameters":{"text":"é","count":3,"big":4611686018427387904,"ratio":0.5,"flag":true}',
      );
      await using client = new InferenceServerClient(addresses.grpc!.url.replace(/^\w+:\/\//, ""));
      const result = await client.infer("m", { inputs: { x: { datatype: "INT32", data: [[1]] } } });
      expect(result.parameters).toMatchObject(all);
    });
  });

  describe("an ensemble", () => {
    /** An ensemble of two members, the first of which sets response parameters. */
    async function open(parameters: Parameters) {
      triton = new Triton();
      const seen: unknown[] = [];
      triton.bind({
        modelName: "a",
        inputs,
        outputs,
        inferFunc: (requests) => requests.map(({ inputs: { x } }) => withParameters({ y: x }, parameters)),
      });
      triton.bind({
        modelName: "b",
        inputs,
        outputs,
        inferFunc: (requests) =>
          requests.map(({ inputs: { x }, correlationId, sequenceStart, sequenceEnd }) => {
            seen.push([correlationId, sequenceStart, sequenceEnd]);
            return { y: x };
          }),
      });
      const both = triton.bindEnsemble({
        modelName: "both",
        inputs,
        outputs,
        steps: [
          { modelName: "a", inputMap: { x: "x" }, outputMap: { y: "between" } },
          { modelName: "b", inputMap: { x: "between" }, outputMap: { y: "y" } },
        ],
      });
      await both.ready();
      const outcome = await new Promise<InferenceResponse | TritonError | undefined>((resolve) => {
        const one = new Map([["x", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1))]]);
        const init = { inputs: one, correlationId: 5n, sequenceStart: true };
        sendRequest(serviceOf(triton).model("both", ""), init, resolve);
      });
      return { seen, outcome };
    }

    it("does not pass on response parameters of its members", async () => {
      const { seen, outcome } = await open(all);
      expect(seen).toEqual([[5n, true, false]]);
      expect((outcome as InferenceResponse).parameters).toEqual({
        sequence_id: 5,
        sequence_start: true,
        sequence_end: false,
      });
    });

    it("takes the sequence for later steps from a member's response", async () => {
      const { seen, outcome } = await open({ sequence_id: "other", sequence_end: true });
      expect(seen).toEqual([["other", false, true]]);
      expect((outcome as InferenceResponse).parameters).toEqual({
        sequence_id: "other",
        sequence_start: false,
        sequence_end: true,
      });
    });

    it.each([
      [
        { sequence_id: true },
        "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
      ],
      [{ sequence_end: 1 }, "expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL"],
    ])("fails when sequence parameters have a wrong type: %o", async (parameters, text) => {
      const { outcome } = await open(parameters);
      expect(TritonError.is(outcome) && `${outcome.code} ${outcome.message}`).toBe(
        `INVALID_ARG in ensemble 'both', ${text}`,
      );
    });
  });
});

describe("response statistics", () => {
  it("responses of a decoupled model are counted by their index, over HTTP and gRPC alike", async () => {
    const triton = openTriton();
    const handle = triton.bind({
      modelName: "twice",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: sample(function* ({ x }) {
        yield { y: x };
        yield { y: x };
      }),
      config: { decoupled: true, batching: false },
    });
    const { addresses } = await triton.serve();
    for await (const _ of handle.stream({ x: [1] }));
    const http = new HttpClient(addresses.http!.url);
    const grpc = new GrpcClient(addresses.grpc!.url);
    onTestFinished(async () => {
      await http.close();
      grpc.close();
    });
    const [overHttp] = (await http.getInferenceStatistics("twice")).model_stats;
    const [overGrpc] = await grpc.getInferenceStatistics("twice");
    const { responseStats } = handle.statistics();
    expect(Object.keys(responseStats)).toEqual(["0", "1"]);
    expect(responseStats[1]).toMatchObject({ success: { count: 1 }, fail: { count: 0 } });
    expect(overHttp!.response_stats).toEqual(
      Object.fromEntries(
        Object.entries(responseStats).map(([index, stats]) => [
          index,
          {
            compute_infer: stats.computeInfer,
            compute_output: stats.computeOutput,
            success: stats.success,
            fail: stats.fail,
            empty_response: stats.emptyResponse,
            cancel: stats.cancel,
          },
        ]),
      ),
    );
    expect(JSON.stringify(overGrpc)).toContain("responseStats");
  });
});

describe("load reports", () => {
  const registry = new Registry();

  const usage = new Gauge({
    name: "tritonjs_generation_kv_cache_usage",
    help: "as text models show it",
    labelNames: ["model", "version"],
    registers: [registry],
  });

  const capacity = new Gauge({
    name: "tritonjs_generation_token_capacity",
    help: "as text models show it",
    labelNames: ["model", "version"],
    registers: [registry],
  });

  let begin = () => {};

  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });

  let release = () => {};

  const held = new Promise<void>((resolve) => {
    release = resolve;
  });

  /** Holds negative inputs until the end of the test, and returns others. */
  const hold = batch(async ({ x }) => {
    if ((x!.data[0] as number) < 0) {
      begin();
      await held;
    }
    return { y: x! };
  });

  const triton = new Triton({ metrics: { registry } });

  let grpcJs: { url: string; close: () => void } | undefined;

  const urls = { http: "", grpc: "", grpcJs: "" };

  beforeAll(async () => {
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: [hold, hold, hold, hold],
      config: { batching: true, maxBatchSize: 1 },
    });
    usage.set({ model: "m", version: "1" }, 0.25);
    capacity.set({ model: "m", version: "1" }, 1024);
    usage.set({ model: "other", version: "1" }, 1);
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    urls.http = addresses.http!.url;
    urls.grpc = addresses.grpc!.url;
    grpcJs = await openGrpcJsServer(triton);
    urls.grpcJs = grpcJs.url;
    // One of four instances stays busy.
    void model.inferSample({ x: [-1] });
    await begun;
  });

  afterAll(async () => {
    release();
    grpcJs?.close();
    await triton.close();
  });

  const TEXT =
    "TEXT application_utilization=0.250000, named_metrics.queue_length=0, named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=1024";

  const JSON_REPORT = {
    application_utilization: 0.25,
    named_metrics: { queue_length: 0, kv_cache_utilization: 0.25, max_token_capacity: 1024 },
  };

  /** The message `OrcaLoadReport`, encoded by hand. */
  function message(): Buffer {
    const double = (value: number) => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value);
      return bytes;
    };
    const entry = (name: string, value: number) => {
      const inner = Buffer.concat([
        Buffer.of(0x0a, name.length),
        Buffer.from(name),
        Buffer.of(0x11),
        double(value),
      ]);
      return Buffer.concat([Buffer.of(0x42, inner.length), inner]);
    };
    return Buffer.concat([
      entry("queue_length", 0),
      entry("kv_cache_utilization", 0.25),
      entry("max_token_capacity", 1024),
      Buffer.of(0x49),
      double(0.25),
    ]);
  }

  describe("over HTTP, an answer has the load of its model", () => {
    const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [1] }] });
    const reportOf = async (action: string, format: string | undefined, sent = body) => {
      const headers: Record<string, string> =
        format === undefined ? {} : { "Endpoint-Load-Metrics-Format": format };
      const answer = await fetch(`${urls.http}/v2/models/m/${action}`, {
        method: "POST",
        headers,
        body: sent,
      });
      await answer.text();
      expect(answer.status).toBe(200);
      return answer.headers.get("endpoint-load-metrics");
    };

    it.each([
      ["infer", body],
      ["generate", '{"x": 1}'],
      ["generate_stream", '{"x": 1}'],
    ])("if %s asks for it", async (action, sent) => {
      expect(await reportOf(action, "text", sent)).toBe(TEXT);
      expect(await reportOf(action, undefined, sent)).toBeNull();
    });

    it("in the format that the client names in any case", async () => {
      const json = await reportOf("infer", "JSON");
      expect(json).toMatch(/^JSON /);
      expect(JSON.parse(json!.slice(5))).toEqual(JSON_REPORT);
      expect(await reportOf("infer", "Text")).toBe(TEXT);
      expect(await reportOf("infer", "bin")).toBe(`BIN ${message().toString("base64")}`);
      expect(await reportOf("infer", "xml")).toBeNull();
    });
  });

  describe.each(["grpc", "grpcJs"] as const)(
    "over %s, the trailing metadata have the load of the model",
    (server) => {
      const request = {
        modelName: "m",
        inputs: [{ name: "x", datatype: "FP32", shape: [1, 1] }],
        rawInputContents: [new Uint8Array(Float32Array.of(1).buffer)],
      };
      const encode = (value: typeof request) => encodeMessage(inference.ModelInferRequest, value);
      const asIs = (bytes: Buffer) => bytes;

      async function trailersOf(
        method: "ModelInfer" | "ModelStreamInfer",
        format?: string,
      ): Promise<Metadata> {
        const client = new Client(urls[server], credentials.createInsecure());
        const metadata = new Metadata();
        if (format !== undefined) metadata.set("endpoint-load-metrics-format", format);
        try {
          return await new Promise<Metadata>((resolve, reject) => {
            const ended = ({ metadata: trailers }: StatusObject) => resolve(trailers);
            const path = inferencePath(method);
            if (method === "ModelInfer") {
              client
                .makeUnaryRequest(path, encode, asIs, request, metadata, (error) => error && reject(error))
                .on("status", ended);
              return;
            }
            const stream = client.makeBidiStreamRequest(path, encode, asIs, metadata);
            stream
              .on("error", reject)
              .on("data", () => {})
              .on("status", ended);
            stream.end(request);
          });
        } finally {
          client.close();
        }
      }

      it.each(["ModelInfer", "ModelStreamInfer"] as const)("of %s if the client asks", async (method) => {
        expect((await trailersOf(method, "TEXT")).get("endpoint-load-metrics")).toEqual([TEXT]);
        expect((await trailersOf(method, "bin")).get("endpoint-load-metrics-bin")).toEqual([message()]);
        expect(Object.keys((await trailersOf(method)).getMap())).toEqual([]);
      });
    },
  );
});
