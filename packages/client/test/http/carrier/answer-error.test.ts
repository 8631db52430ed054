import { describe, expect, it } from "vitest";
import { HttpStatusError, InferenceServerClient } from "../../../src/http/index.js";
import { fakeFetch, json } from "../support/fake-fetch.js";
import { bindIdentity, deadUrl, serve, serveByHand } from "../support/serve.js";

const inputs = { IN: Float32Array.of(1, 2) };

describe("an error answer", () => {
  it.each([
    [400, "INVALID_ARG"],
    [401, "UNAVAILABLE"],
    [403, "UNAVAILABLE"],
    [404, "NOT_FOUND"],
    [405, "UNSUPPORTED"],
    [408, "UNAVAILABLE"],
    [413, "INVALID_ARG"],
    [429, "UNAVAILABLE"],
    [499, "CANCELLED"],
    [500, "INTERNAL"],
    [501, "UNSUPPORTED"],
    [502, "UNAVAILABLE"],
    [503, "UNAVAILABLE"],
    [504, "UNAVAILABLE"],
    [507, "INTERNAL"],
    [302, "UNKNOWN"],
    [201, "UNKNOWN"],
  ])("has for status %i the code %s, with the server's text", async (status, code) => {
    const { fetch } = fakeFetch(json({ error: "what was wrong" }, status));
    const client = new InferenceServerClient("host:1", { fetch });
    const error = await client.infer("m", { inputs }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "TritonError", code, message: "what was wrong" });
    expect((error as Error).cause).toEqual(new HttpStatusError(status));
  });

  it.each([
    [
      "<html>\n<body>Bad\u0000  Gateway</body></html>",
      "HTTP status 502: <html> <body>Bad Gateway</body></html>",
    ],
    ["", "HTTP status 502"],
    ['{"error":5}', 'HTTP status 502: {"error":5}'],
    ["x".repeat(10_000), `HTTP status 502: ${"x".repeat(200)}...`],
  ])("is quoted in short when its form is not the protocol's", async (body, message) => {
    const { fetch } = fakeFetch(() => new Response(body, { status: 502 }));
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "UNAVAILABLE", message });
  });

  it("has its code and text from a real server", async () => {
    const client = new InferenceServerClient(await serve((triton) => bindIdentity(triton, "m", "FP32", [2])));
    await expect(client.infer("none", { inputs })).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: "Request for unknown model: 'none' is not found",
    });
    await expect(client.infer("m", { inputs: { IN: Int32Array.of(1, 2) } })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("data-type is 'INT32', but model 'm' expects 'FP32'"),
    });
    expect((await client.infer("m", { inputs })).elements("OUT")).toEqual(inputs.IN);
  });
});

describe("an invalid answer", () => {
  it("is an internal error when it is not JSON", async () => {
    const { fetch } = fakeFetch(() => new Response("<html>hello</html>"));
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.getServerMetadata()).rejects.toMatchObject({
      code: "INTERNAL",
      message: "cannot read the server's answer: expected JSON: <html>hello</html>",
    });
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({ code: "INTERNAL" });
  });

  it("is UNAVAILABLE when its encoding is wrong", async () => {
    const { url } = await serveByHand((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end("{}");
    });
    const client = new InferenceServerClient(url, { retries: 0 });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a connection", () => {
  it("is UNAVAILABLE when it cannot be opened", async () => {
    const url = await deadUrl();
    const client = new InferenceServerClient(url, { retries: 0 });
    await expect(client.isServerLive()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `cannot connect to ${url}: ECONNREFUSED`,
    });
  });

  it("is UNAVAILABLE when it breaks before or during the answer", async () => {
    let status: number | undefined;
    const { url } = await serveByHand(async (request, response) => {
      request.resume();
      if (status !== undefined) {
        response.writeHead(status, { "content-length": 100 }).write('{"model_name"');
      }
      response.destroy();
    });
    const client = new InferenceServerClient(url, { retries: 0 });
    for (status of [undefined, 200, 400]) {
      await expect(client.infer("m", { inputs })).rejects.toMatchObject({
        code: "UNAVAILABLE",
        message: expect.stringContaining(`incomplete answer from ${url}: `),
      });
    }
  });
});
