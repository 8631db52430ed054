import { Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { encodeMessage, inference, inferencePath } from "@tritonjs/protocol/grpc";
import { Gauge, Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openGrpcJsServer } from "../support/grpc-js-server.js";

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
    const answer = await fetch(`${urls.http}/v2/models/m/${action}`, { method: "POST", headers, body: sent });
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

    async function trailersOf(method: "ModelInfer" | "ModelStreamInfer", format?: string): Promise<Metadata> {
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
