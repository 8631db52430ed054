import { request as httpRequest } from "node:http";
import { Tensor, TritonError } from "@tritonjs/core";
import type { InferenceResponse } from "@tritonjs/server";
import type { InferenceRequest } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../src/json/parse-json.js";
import { maxNumbers } from "../../src/limits.js";
import { decodeGenerateJson } from "../../src/routes/generate.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const path = "/v2/models/m/generate";
const LIMIT = 1 << 20;

function model(...shape: Parameters<typeof identityConfig>) {
  return {
    name: shape[0],
    version: 1,
    config: identityConfig(...shape),
    labels: new Map<string, string[]>(),
  };
}

function decode(config: ReturnType<typeof model>, request: unknown) {
  const body = typeof request === "string" ? request : JSON.stringify(request);
  return decodeGenerateJson(config, parseJson(Buffer.from(body), maxNumbers(LIMIT)));
}

function text(request: InferenceRequest, value: string): InferenceResponse {
  const outputs = new Map([["OUT", Tensor.fromElements("BYTES", [1], [Buffer.from(value)])]]);
  return { modelName: "m", modelVersion: "1", id: request.id, parameters: {}, outputs };
}

describe("a generate request", () => {
  it("has inputs by name, and all other members are parameters", () => {
    const { id, inputs, parameters } = decode(model("m", "BYTES", [1]), {
      id: "i",
      IN: "hello",
      a: 1,
      sequence_id: 5,
      triton_x: true,
      parameters: { b: 0.5 },
    });
    expect(id).toBe("i");
    expect(inputs?.get("IN")?.shape).toEqual([1]);
    expect({ ...parameters }).toEqual({ a: 1, sequence_id: 5, triton_x: true, b: 0.5 });
  });

  it.each([
    [[-1], 0, [], [0]],
    [[-1], 0, [1, 2, 3], [3]],
    [[-1], 0, 7, [1]],
    [[2, 3], 0, [1, 2, 3, 4, 5, 6], [2, 3]],
    [[2], 8, [1, 2, 3, 4], [2, 2]],
    [[-1, 2, -1], 8, [1, 2, 3, 4], [1, 1, 2, 2]],
  ])("fits a model of %j (batches of %i) with %j as %j", (dims, maxBatchSize, value, shape) => {
    const { inputs } = decode(model("m", "INT32", dims, maxBatchSize), { IN: value });
    expect(inputs.get("IN")?.shape).toEqual(shape);
    expect(inputs.get("IN")?.elements).toEqual(Int32Array.from([value].flat()));
  });

  it.each([
    ['{"IN":1,"IN":2}', ""],
    ['{"IN":1,"p":1,"p":2,"IN":1}', ""],
    ['{"parameters":{"IN":1,"IN":2}}', "Converting keyword: 'parameters': "],
    ['{"parameters":{"IN":1},"parameters":{}}', "Converting keyword: 'parameters': "],
  ])("is rejected when it gives an input twice: %s", (request, prefix) => {
    expect(() => decode(model("m", "INT32", [1]), request)).toThrow(
      `${prefix}[request id: <id_unknown>] input 'IN' already exists in request`,
    );
  });

  it("may give a parameter twice; the first one counts", () => {
    const { parameters } = decode(model("m", "INT32", [1]), '{"IN":1,"p":1,"p":2}');
    expect({ ...parameters }).toEqual({ p: 1 });
  });

  it.each([
    ["INT32", { IN: [1, 2, 3] }, "The schema can not convert input 'IN' to tensor with proper shape"],
    ["INT32", { IN: [[1], [2, 3]] }, "Shape does not match true shape of 'data' field"],
    ["BYTES", { IN: 5 }, "Unable to parse JSON bytes array: attempt to access JSON non-string as string"],
    ["FP16", { IN: [1, 2] }, "receiving FP16 data via JSON is not supported."],
    ["INT32", [], "attempt to get members for non-object"],
    ["INT32", { k: [1] }, "parameter 'k' has invalid type."],
    ["INT32", { parameters: "p" }, "Expected JSON object for keyword: 'parameters': attempt to access"],
    [
      "INT32",
      { IN: [1, 2], parameters: { IN: [1, 2] } },
      "Converting keyword: 'parameters': [request id: <id_unknown>] input 'IN' already exists in request",
    ],
  ] as const)("is rejected for a model of %s as %j", (datatype, request, fault) => {
    expect(() => decode(model("m", datatype, [2]), request)).toThrow(fault);
  });
});

describe("POST generate", () => {
  it("answers with one flat object, sorted by name", async () => {
    const service = new IdentityService(identityConfig("m", "FP32"));
    const port = await startHttp(service);
    const answer = await send(port, { path, body: '{"id":"i","z":"p","IN":[1,2.5]}' });
    expect(answer.text).toBe('{"OUT":[1.0,2.5],"id":"i","model_name":"m","model_version":"1","z":"p"}');
    expect(answer.headers).toMatchObject({
      "content-type": "application/json",
      "transfer-encoding": "chunked",
    });
    expect((await send(port, { path, body: '{"IN":5}' })).text).toContain('"OUT":5.0,');
  });

  it.each([0, 2])("rejects %i responses and names generate_stream", async (count) => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    service.onRequest = (request) => {
      for (let i = 0; i < count; i++) request.respond(text(request, "x"), false);
      request.finish();
    };
    const answer = await send(await startHttp(service), { path, body: '{"IN":"x"}' });
    expect(answer.text).toContain("generate expects model to produce exactly 1 response");
  });

  it("answers an error of the model with its status", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    service.onRequest = (request) => void request.respondError(new TritonError("NOT_FOUND", "no"));
    const answer = await send(await startHttp(service), { path, body: '{"IN":"x"}' });
    expect([answer.status, answer.text]).toEqual([404, '{"error":"no"}']);
  });

  it("rejects a compressed body", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    const headers = { "content-encoding": "gzip" };
    const answer = await send(await startHttp(service), { path, headers, body: "x" });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("Unsupported content-encoding, only 'identity' is supported.");
  });
});

describe("POST generate_stream", () => {
  const stream = `${path}_stream`;

  it("sends an event for each response and continues after an error", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    service.onRequest = (request) => {
      request.respond(text(request, "a"), false);
      request.respondError(new TritonError("INTERNAL", "no"), false);
      request.respond(text(request, "b"), true);
    };
    const answer = await send(await startHttp(service), { path: stream, body: '{"IN":"x"}' });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(answer.text).toBe(
      'data: {"OUT":"a","model_name":"m","model_version":"1"}\n\n' +
        'data: {"error":"no"}\n\n' +
        'data: {"OUT":"b","model_name":"m","model_version":"1"}\n\n',
    );
  });

  it("is empty when there is no response", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    service.onRequest = (request) => void request.finish();
    const answer = await send(await startHttp(service), { path: stream, body: '{"IN":"x"}' });
    expect([answer.status, answer.text]).toEqual([200, ""]);
    expect(answer.headers["transfer-encoding"]).toBe("chunked");
  });

  it("answers a rejected request with plain JSON", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    const answer = await send(await startHttp(service), { path: stream, body: "{" });
    expect([answer.status, answer.headers["content-type"]]).toEqual([500, "application/json"]);
  });

  it("pauses the model while the client does not read, and cancels when it leaves", async () => {
    const service = new IdentityService(identityConfig("m", "BYTES", [1]));
    const large = "x".repeat(1 << 20);
    let sent = 0;
    const cancelled = new Promise<void>((resolve) => {
      service.onRequest = async (request) => {
        request.startExecution();
        request.signal.addEventListener("abort", () => resolve());
        while (!request.settled) {
          if (request.writable !== undefined) await request.writable;
          else if (request.respond(text(request, large), false)) sent++;
        }
      };
    });
    const port = await startHttp(service);
    const client = httpRequest({ host: "localhost", port, method: "POST", path: stream }, (incoming) => {
      incoming.once("data", () => {
        incoming.pause();
        client.destroy();
      });
      incoming.on("error", () => {});
    });
    client.on("error", () => {});
    client.end('{"IN":"x"}');
    await cancelled;
    expect(sent).toBeLessThan(100);
  });
});
