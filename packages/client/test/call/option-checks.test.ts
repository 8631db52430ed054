import * as overGrpc from "@tritonjs/client/grpc";
import * as overHttp from "@tritonjs/client/http";
import { sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";

const triton = new Triton();
const urls = { http: "", grpc: "" };

beforeAll(async () => {
  triton.bind({
    modelName: "same",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: sample(({ x }) => ({ y: x })),
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls.http = addresses.http!.url;
  urls.grpc = addresses.grpc!.url;
});

afterAll(() => triton.close());

/** Options as a program without TypeScript may give them. */
const untyped = (options: object) => options as never;

const reason = async (call: () => unknown) =>
  outcomeOf((async () => call())()).then((outcome) => String(outcome));

describe.each([["http", overHttp, () => urls.http] as const, ["grpc", overGrpc, () => urls.grpc] as const])(
  "the clients over %s check options without TypeScript",
  (_protocol, { InferenceServerClient, ModelClient }, url) => {
    const opened = () => {
      const client = new InferenceServerClient(url());
      onTestFinished(() => client.close());
      return client;
    };
    const model = () => {
      const client = new ModelClient(url(), "same");
      onTestFinished(() => client.close());
      return client;
    };
    const inputs = { x: { datatype: "FP32", data: [1] } } as const;

    it.each([
      [
        { timeout: 100 },
        "new InferenceServerClient() has an unknown option 'timeout': did you mean 'timeoutMs'?",
      ],
      [
        { retries: "2" },
        "new InferenceServerClient(), option 'retries': expected a number, got the string '2'",
      ],
    ])("of a client: %j", async (options, text) => {
      expect(await reason(() => new InferenceServerClient(url(), untyped(options)))).toContain(text);
    });

    it.each([
      [
        { maxConcurency: 2 },
        "new ModelClient() has an unknown option 'maxConcurency': did you mean 'maxConcurrency'?",
      ],
      [
        { priority: 2 },
        "new ModelClient() has an unknown option 'priority': it is an option of inferSample()",
      ],
      [{ lazyInit: "no" }, "new ModelClient(), option 'lazyInit': expected a boolean, got the string 'no'"],
    ])("of a client of a model: %j", async (options, text) => {
      expect(await reason(() => new ModelClient(url(), "same", untyped(options)))).toContain(text);
    });

    it.each([
      [{ timeOutMs: 5 }, "infer() has an unknown option 'timeOutMs': did you mean 'timeoutMs'?"],
      [{ priority: "high" }, "infer(), option 'priority': expected a number, got the string 'high'"],
      [{ outputs: "y" }, "infer(), option 'outputs': expected an array, got the string 'y'"],
    ])("of infer(): %j", async (options, text) => {
      expect(await reason(() => opened().infer("same", untyped({ inputs, ...options })))).toContain(text);
    });

    it.each([
      [{ idd: "1" }, "inference with 'same' has an unknown option 'idd': did you mean 'id'?"],
      [{ id: 5 }, "inference with 'same', option 'id': expected a string, got 5"],
      [{ signal: 5 }, "inference with 'same', option 'signal': expected an object, got 5"],
      [
        { modelVersion: 1 },
        "inference with 'same' has an unknown option 'modelVersion': it is an option of new ModelClient()",
      ],
    ])("of inferSample(): %j", async (options, text) => {
      expect(await reason(() => model().inferSample({ x: [1] }, untyped(options)))).toContain(text);
    });

    it("of calls about models, waits and memory", async () => {
      const client = opened();
      const load = () => client.loadModel("same", untyped({ conifg: {} }));
      expect(await reason(load)).toContain("call has an unknown option 'conifg': did you mean 'config'?");
      const config = () => client.getModelConfig("same", untyped({ modelVersoin: 1 }));
      expect(await reason(config)).toContain(
        "call has an unknown option 'modelVersoin': did you mean 'modelVersion'?",
      );
      const live = () => client.isServerLive(untyped({ timeoutMs: "5" }));
      expect(await reason(live)).toContain("call, option 'timeoutMs': expected a number, got the string '5'");
      const wait = () => model().waitForModel(untyped({ timeout: 5 }));
      expect(await reason(wait)).toContain(
        "wait for model 'same' has an unknown option 'timeout': did you mean 'timeoutMs'?",
      );
      const region = () => client.registerSystemSharedMemory("r", untyped({ key: "/r", bytesize: 4 }));
      expect(await reason(region)).toContain(
        "region has an unknown option 'bytesize': did you mean 'byteSize'?",
      );
    });

    it("and accept those that are right", async () => {
      const result = await opened().infer("same", { inputs, id: "1", timeoutMs: 10_000, outputs: ["y"] });
      expect(result.id).toBe("1");
      const options = { maxConcurrency: 2, headers: { a: "b" }, inferenceTimeoutMs: 10_000 };
      const client = new ModelClient(url(), "same", options);
      onTestFinished(() => client.close());
      expect((await client.inferSample({ x: [1] }, { id: "2", headers: { a: "c" } })).y!.data).toEqual(
        Float32Array.of(1),
      );
    });
  },
);

it("streamInfer() checks its options and the parts of each request", async () => {
  const client = new overGrpc.InferenceServerClient(urls.grpc);
  onTestFinished(() => client.close());
  const request = { modelName: "same", inputs: { x: { datatype: "FP32", data: [1] } } } as const;
  const ask = (requests: object[], options = {}) =>
    reason(async () => {
      for await (const _ of client.streamInfer(untyped(requests), untyped(options)));
    });
  expect(await ask([request], { endOnErorr: true })).toContain(
    "streamInfer() has an unknown option 'endOnErorr': did you mean 'endOnError'?",
  );
  expect(await ask([{ ...request, enableEmptyFinal: true }])).toContain(
    "request of streamInfer() has an unknown option 'enableEmptyFinal': did you mean 'enableEmptyFinalResponse'?",
  );
});
