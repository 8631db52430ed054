import { request as httpRequest } from "node:http";
import { gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const path = "/v2/models/m/infer";

const request = { inputs: [{ name: "IN", datatype: "INT32", shape: [2], data: [5, 6] }] };

const answered =
  '{"model_name":"m","model_version":"1","outputs":[{"name":"OUT","datatype":"INT32","shape":[2],"data":[5,6]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("infer", () => {
  it("POST infer classifies the outputs on request", async () => {
    const body = JSON.stringify({
      ...request,
      outputs: [{ name: "OUT", parameters: { classification: 1 } }],
    });
    const answer = await send(await startHttp(identity()), { path, body });
    expect(answer.text).toContain('{"name":"OUT","datatype":"BYTES","shape":[1],"data":["6:1:one"]}');
  });
});

describe("tensors over HTTP", () => {
  it("are sent and returned as JSON", async () => {
    const answer = await send(await startHttp(identity()), { path, body: JSON.stringify(request) });
    expect(answer).toMatchObject({ status: 200, text: answered });
    expect(answer.headers).toMatchObject({ "content-type": "application/json" });
    expect(answer.headers["inference-header-content-length"]).toBeUndefined();
  });

  it("are sent and returned in binary, small and large, at any alignment", async () => {
    const port = await startHttp(identity());
    for (const count of [1, 3, 1_000_000]) {
      const tensor = Buffer.from(Int32Array.from({ length: count }, (_, i) => i).buffer);
      for (const id of ["", "a", "ab", "abc"]) {
        const parameters = { binary_data_size: tensor.length };
        const header = Buffer.from(
          JSON.stringify({
            id,
            parameters: { binary_data_output: true },
            inputs: [{ name: "IN", datatype: "INT32", shape: [count], parameters }],
          }),
        );
        const answer = await send(port, {
          path,
          headers: { "Inference-Header-Content-Length": header.length },
          body: Buffer.concat([header, tensor]),
        });
        expect(answer.headers["content-type"]).toBe("application/octet-stream");
        const json = Number(answer.headers["inference-header-content-length"]);
        expect(JSON.parse(answer.body.toString("utf8", 0, json)).outputs[0].parameters).toEqual(parameters);
        expect(answer.body.subarray(json).equals(tensor)).toBe(true);
      }
    }
  });

  it("are returned as JSON when they have no bytes", async () => {
    const body = Buffer.from(
      '{"parameters":{"binary_data_output":true},"inputs":[{"name":"IN","datatype":"INT32","shape":[0],"data":[]}]}',
    );
    const answer = await send(await startHttp(identity()), { path, body });
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.text).toContain('"shape":[0],"parameters":{"binary_data_size":0}');
  });

  it("sent raw are returned in binary", async () => {
    const body = Buffer.from(Int32Array.of(7, 8).buffer);
    const headers = { "Inference-Header-Content-Length": 0 };
    const answer = await send(await startHttp(identity()), { path, headers, body });
    expect(answer.body.subarray(-8).equals(body)).toBe(true);
  });

  it("keep the bits of a NaN", async () => {
    const service = new IdentityService(identityConfig("m", "FP32"));
    const body = Buffer.from(Uint32Array.of(0x7fc00001, 0xff800001, 0x7f812345).buffer);
    const headers = { "Inference-Header-Content-Length": "0" };
    const answer = await send(await startHttp(service), { path, headers, body });
    expect(answer.body.subarray(-12).equals(body)).toBe(true);
  });
});

describe("the content type of an error", () => {
  const failing = (refuse: boolean) => {
    const service = identity();
    service.onRequest = (queued) => {
      const error = new TritonError("UNAVAILABLE", "no");
      if (refuse) throw error;
      queued.respondError(error);
    };
    return service;
  };

  it.each([
    ["an unknown model", identity(), "/v2/models/none/infer", "{", 404, "text/plain"],
    ["a body that is not JSON", identity(), path, "{", 500, "application/json"],
    ["a rejected request", failing(true), path, JSON.stringify(request), 503, "application/json"],
    ["a failed request", failing(false), path, JSON.stringify(request), 503, "text/plain"],
  ])("is that of Triton for %s", async (_case, service, where, body, status, contentType) => {
    const answer = await send(await startHttp(service), { path: where, body });
    expect([answer.status, answer.headers["content-type"]]).toEqual([status, contentType]);
    expect(JSON.parse(answer.text)).toHaveProperty("error");
  });

  it("is text/plain for an output that JSON cannot hold", async () => {
    const service = new IdentityService(identityConfig("m", "FP16"));
    const body = '{"inputs":[{"name":"IN","datatype":"FP16","shape":[0],"data":[]}]}';
    const answer = await send(await startHttp(service), { path, body });
    expect([answer.status, answer.headers["content-type"]]).toEqual([400, "text/plain"]);
    expect(answer.text).toContain("sending FP16 data via JSON is not supported");
  });

  it("comes with a generic text for an internal error", async () => {
    const service = identity();
    service.onRequest = () => {
      throw new TypeError("secret");
    };
    const answer = await send(await startHttp(service), { path, body: JSON.stringify(request) });
    expect([answer.status, answer.text]).toEqual([500, '{"error":"internal error"}']);
  });
});

describe("compression", () => {
  const body = gzipSync(JSON.stringify(request));

  it.each([
    ["gzip", "gzip"],
    ["gzip, deflate", "gzip"],
    ["deflate, gzip", "deflate"],
    ["gzip;q=0.5, deflate;q=0.8", "deflate"],
    ["br;q=1.0, gzip;q=0.8, *;q=0.1", "gzip"],
    ["gzip;q=0.5;foo=1", "gzip"],
    ["gzip;q=0", undefined],
    ["gzip;q=abc", undefined],
    ["identity", undefined],
    ["", undefined],
  ])("answers Accept-Encoding %j with %s", async (accepted, encoding) => {
    const answer = await send(await startHttp(identity()), {
      path,
      headers: { "accept-encoding": accepted, "content-encoding": "gzip" },
      body,
    });
    expect(answer.headers["content-encoding"]).toBe(encoding);
    const plain =
      encoding === "gzip" ? gunzipSync(answer.body) : encoding ? inflateSync(answer.body) : answer.body;
    expect(plain.toString()).toBe(answered);
  });

  it("detects the form of a deflate body from its bytes", async () => {
    const port = await startHttp(identity());
    for (const compressed of [body, Buffer.concat([body, Buffer.from("garbage")])]) {
      const headers = { "content-encoding": "deflate" };
      expect((await send(port, { path, headers, body: compressed })).text).toBe(answered);
    }
  });

  it.each([
    ["br", body, 501, "Unsupported compression type"],
    ["gzip, gzip", body, 501, "Unsupported compression type"],
    ["gzip", Buffer.alloc(0), 400, "nothing to be decompressed"],
    ["gzip", body.subarray(0, 20), 400, "request body is not valid gzip data"],
    ["deflate", Buffer.from("no"), 400, "request body is not valid deflate data"],
  ])("%s of a bad request is rejected", async (encoding, bad, status, message) => {
    const answer = await send(await startHttp(identity()), {
      path,
      headers: { "content-encoding": encoding },
      body: bad,
    });
    expect([answer.status, answer.headers["content-type"]]).toEqual([status, "text/plain"]);
    expect(JSON.parse(answer.text).error).toBe(message);
    expect(answer.headers["accept-encoding"]).toBe(status === 501 ? "gzip, deflate" : undefined);
  });

  it("cannot be used to fill the memory", async () => {
    const bomb = gzipSync(Buffer.alloc(10 << 20));
    const answer = await send(await startHttp(identity(), { maxInputSize: 1 << 20 }), {
      path,
      headers: { "content-encoding": "gzip" },
      body: bomb,
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("Decompressed data size exceeds the maximum allowed value");
  });
});

const ACTIONS = ["infer", "generate", "generate_stream"];

/** A service whose queue is full for the first request, which waits until it leaves or `accept` is called. */
async function startFull() {
  const service = new IdentityService(identityConfig("m", "BYTES", [1]));
  let accept = (): void => {};
  let onWait = (): void => {};
  let onLeave = (): void => {};
  const waits = new Promise<void>((resolve) => (onWait = resolve));
  const left = new Promise<void>((resolve) => (onLeave = resolve));
  let isFirst = true;
  service.queueOfModels = {
    get isFull() {
      return isFirst;
    },
    freePlaces: 0,
    onSettled: undefined,
    refusal: () => undefined,
  };
  const placeFor = () => {
    isFirst = false;
    onWait();
    let reject: (error: Error) => void;
    const turn = new Promise<void>((...both) => ([accept, reject] = both));
    const leave = () => {
      reject(new TritonError("CANCELLED", "the request was cancelled"));
      onLeave();
    };
    return { turn, leave };
  };
  service.refusals = { placeFor, turn: () => undefined };
  return { service, port: await startHttp(service), waits, left, accept: () => accept() };
}

describe.each(ACTIONS)("a request to %s that waits at a full queue", (action) => {
  const path = `/v2/models/m/${action}`;
  const body =
    action === "infer"
      ? '{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1],"data":["x"]}]}'
      : '{"IN":"x"}';

  it("leaves the line when its client leaves, and never runs", async () => {
    const { service, port, waits, left } = await startFull();
    const client = httpRequest({ host: "localhost", port, method: "POST", path });
    client.on("error", () => {});
    client.end(body);
    await waits;
    client.destroy();
    await left;
    expect((await send(port, { path, body })).status).toBe(200);
    expect(service.requests).toHaveLength(1);
  });

  it("runs when there is room", async () => {
    const { service, port, waits, accept } = await startFull();
    const answer = send(port, { path, body });
    await waits;
    expect(service.requests).toEqual([]);
    accept();
    expect((await answer).status).toBe(200);
  });
});
