import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { dirname, join } from "node:path";
import type { InferenceRequest } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type FetchHandlerOptions, fetchHandler, toNodeListener } from "../src/fetch.js";
import { IdentityService, identityConfig } from "./support/identity-service.js";
import { send } from "./support/send.js";

const base = "http://host/v2";
const infer = `${base}/models/m/infer`;
const good = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],"data":[1,2]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

function post(
  url: string,
  body: RequestInit["body"],
  headers: Record<string, string> = {},
  signal?: AbortSignal,
) {
  return new Request(url, { method: "POST", body, headers, signal, duplex: "half" } as RequestInit);
}

function respond(request: InferenceRequest, id: string, final: boolean): void {
  request.respond({ modelName: "m", modelVersion: "1", id, parameters: {}, outputs: new Map() }, final);
}

describe("the fetch handler", () => {
  it("answers like the server", async () => {
    const handler = fetchHandler({ service: identity() });
    const answer = await handler(post(infer, good));
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(answer.headers.get("content-length")).toBe(String((await answer.clone().text()).length));
    expect(await answer.json()).toMatchObject({ outputs: [{ name: "OUT", data: [1, 2] }] });
    expect((await handler(new Request(`${base}/health/live?x=1#y`))).status).toBe(200);
    expect((await handler(new Request(infer))).status).toBe(405);
    expect((await handler(new Request("http://host/other"))).status).toBe(404);
    const broken = await handler(post(infer, "{"));
    expect([broken.status, broken.headers.get("content-type")]).toEqual([500, "application/json"]);
  });

  it("serves under a prefix", async () => {
    const handler = fetchHandler({ service: identity() }, { prefix: "/ml" });
    expect((await handler(new Request("http://host/ml/v2/health/live"))).status).toBe(200);
    expect((await handler(new Request("http://host/mlv2/health/live"))).status).toBe(404);
  });

  it("accepts tensors behind the JSON, even in many pieces, and returns large ones", async () => {
    const handler = fetchHandler({ service: identity() });
    const values = Int32Array.from({ length: 1 << 17 }, (_, index) => index);
    const json = JSON.stringify({
      parameters: { binary_data_output: true },
      inputs: [
        {
          name: "IN",
          datatype: "INT32",
          shape: [values.length],
          parameters: { binary_data_size: values.byteLength },
        },
      ],
    });
    const body = new Blob([json, values]).stream();
    const headers = { "inference-header-content-length": String(json.length) };
    const answer = await handler(post(infer, body, headers));
    expect(answer.headers.get("content-type")).toBe("application/octet-stream");
    const bytes = await answer.arrayBuffer();
    expect(bytes.byteLength).toBe(Number(answer.headers.get("content-length")));
    const headerLength = Number(answer.headers.get("inference-header-content-length"));
    expect(Buffer.compare(Buffer.from(bytes, headerLength), Buffer.from(values.buffer))).toBe(0);
  });

  it("rejects a body over the limit without reading all of it", async () => {
    const handler = fetchHandler({ service: identity() }, { maxInputSize: 10 });
    const pull = vi.fn((controller: ReadableStreamDefaultController) =>
      controller.enqueue(new Uint8Array(65_536)),
    );
    const answer = await handler(post(infer, new ReadableStream({ pull })));
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("exceeds the maximum allowed input size of 65616 bytes");
    expect(pull.mock.calls.length).toBeLessThan(10);
  });

  it("hides internal errors from clients and reports them to onError", async () => {
    const service = identity();
    service.onRequest = () => {
      throw new Error("secret");
    };
    const onError = vi.fn();
    const answer = await fetchHandler({ service }, { onError })(post(infer, good));
    expect([answer.status, await answer.text()]).toEqual([500, '{"error":"internal error"}']);
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: "secret" }));
  });

  it("cancels a request when its signal aborts", async () => {
    const service = identity();
    const abort = new AbortController();
    service.onRequest = (request) => {
      request.startExecution();
      request.signal.addEventListener("abort", () => request.finish());
      abort.abort();
    };
    await fetchHandler({ service })(post(infer, good, {}, abort.signal));
    expect(service.requests[0]?.signal.aborted).toBe(true);
  });
});

describe("a stream of the fetch handler", () => {
  const stream = `${base}/models/m/generate_stream`;

  it("begins with the first event", async () => {
    const service = identity();
    service.onRequest = (request) => respond(request, "first", false);
    const answer = await fetchHandler({ service })(post(stream, "{}"));
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const reader = answer.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toContain('data: {"id":"first"');
    const [request] = service.requests;
    respond(request!, "second", true);
    expect(Buffer.from((await reader.read()).value!).toString()).toContain('"id":"second"');
    expect((await reader.read()).done).toBe(true);
  });

  it("cancels its request when its body is cancelled", async () => {
    const service = identity();
    service.onRequest = (request) => {
      request.startExecution();
      respond(request, "first", false);
    };
    const answer = await fetchHandler({ service })(post(stream, "{}"));
    await answer.body!.cancel();
    expect(service.requests[0]?.signal.aborted).toBe(true);
  });

  it("pauses its request while it is read slowly", async () => {
    const service = identity();
    service.onRequest = (request) => {
      request.startExecution();
      respond(request, "x".repeat(100_000), false);
      respond(request, "x".repeat(100_000), false);
    };
    const answer = await fetchHandler({ service })(post(stream, "{}"));
    const [request] = service.requests;
    expect(request?.writable).toBeInstanceOf(Promise);
    const reader = answer.body!.getReader();
    await reader.read();
    await reader.read();
    expect(request?.writable).toBeUndefined();
    request?.finish();
    expect((await reader.read()).done).toBe(true);
  });
});

describe("the listener for node:http", () => {
  async function listen(service: IdentityService, options: FetchHandlerOptions = {}): Promise<number> {
    const server = createServer(toNodeListener(fetchHandler({ service }, options)));
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  it.each(["GET", "HEAD", "DELETE", "TRACE", "OPTIONS"])("answers %s", async (method) => {
    const answer = await send(await listen(identity()), { method, path: "/v2/health/live" });
    expect(answer.status).toBe(method === "GET" ? 200 : 405);
  });

  it.each(["//evil/v2", "/v2/%zz", "/v2/../v2", "*", "/v2/%ff"])("survives the path %s", async (path) => {
    const port = await listen(identity());
    expect((await send(port, { path, body: "x", headers: { host: "a b/\\@" } })).status).toBeLessThan(500);
    expect((await send(port, { path: "/v2/models/m/infer", body: good })).status).toBe(200);
  });

  it("cancels the request of a client that leaves", async () => {
    const service = identity();
    const port = await listen(service);
    const cancelled = new Promise<void>((resolve) => {
      service.onRequest = (request) => {
        request.startExecution();
        request.signal.addEventListener("abort", () => resolve());
        socket.destroy();
      };
    });
    const socket = connect(port, "localhost", () => {
      socket.write(
        `POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: ${good.length}\r\n\r\n${good}`,
      );
    });
    await cancelled;
  });

  it("keeps the connection open after a rejected body", async () => {
    const port = await listen(identity(), { maxInputSize: 10 });
    const refused = await send(port, { path: "/v2/models/m/infer", body: Buffer.alloc(70 << 10) });
    expect(refused.status).toBe(400);
    expect((await send(port, { path: "/v2/models/m/infer", body: good })).status).toBe(200);
  });
});

it("the fetch handler does not import fastify", () => {
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const source = readFileSync(path, "utf8").replace(/^\s*(?:import|export) type .*$/gm, "");
    for (const [, specifier] of source.matchAll(/from "([^"]+)"/g)) {
      if (specifier!.startsWith(".")) visit(join(dirname(path), specifier!.replace(/\.js$/, ".ts")));
      else expect([path, specifier]).not.toEqual([path, "fastify"]);
    }
  };
  visit(join(import.meta.dirname, "../src/fetch.ts"));
  expect(seen.size).toBeGreaterThan(20);
});
