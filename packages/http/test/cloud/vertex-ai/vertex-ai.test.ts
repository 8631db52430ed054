import { sample, Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type VertexAiOptions, vertexAi } from "../../../src/cloud/index.js";

const ROUTES = {
  predictRoute: "/v1/endpoints/7/deployedModels/9:predict",
  healthRoute: "/v1/endpoints/7/deployedModels/9",
};

function bindDouble(triton: Triton, modelName: string) {
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
}

async function open(triton: Triton, options: Partial<VertexAiOptions> = {}) {
  const frontend = vertexAi({ port: 0, address: "127.0.0.1", ...ROUTES, ...options });
  return (await triton.serve({ frontends: [frontend] })).addresses["vertex-ai"]!.url;
}

const request = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] });

const TOKEN = { "triton-access-token": "secret" };

describe("a server with two models", () => {
  const triton = new Triton({ security: { accessToken: TOKEN["triton-access-token"] } });
  let root: string;
  const predict = (body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(`${root}${ROUTES.predictRoute}`, { method: "POST", body, headers });
  const redirect = (path: string, headers: Record<string, string> = {}) =>
    predict("", { ...headers, "X-Vertex-Ai-Triton-Redirect": path }).then(({ status }) => status);

  beforeAll(async () => {
    bindDouble(triton, "double");
    bindDouble(triton, "other");
    root = await open(triton, { defaultModel: "double" });
  });
  afterAll(() => triton.close());

  it("answers the health check, and predictions of the default model", async () => {
    expect((await fetch(`${root}${ROUTES.healthRoute}`)).status).toBe(200);
    const answer = await predict(request);
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { model_name: "double", outputs: [{ name: "y", data: [2, 4] }] },
    ]);
  });

  it("redirects a prediction to another model", async () => {
    const answer = await predict(request, { "X-Vertex-Ai-Triton-Redirect": "v2/models/other/infer" });
    expect(await answer.json()).toMatchObject({ model_name: "other" });
  });

  it.each([
    ["metrics", 200],
    ["v2", 200],
    ["v2/health/live", 200],
    ["v2/models/stats", 200],
    ["v2/models/other", 200],
    ["v2/models/other/versions/1/config", 200],
    ["v2/models/other/ready", 200],
    ["v2/models/absent", 404],
    ["v2/repository/index", 200],
    ["v2/systemsharedmemory/status", 200],
    ["v2/systemsharedmemory/region/a/register", 403],
    ["v2/cudasharedmemory/unregister", 403],
    ["v2/repository/models/other/unload", 403],
    ["v2/repository/models/other/load", 403],
    ["v2/models/other/generate", 400],
    ["v2/logging", 400],
    ["v2/trace/setting", 400],
    ["", 400],
  ])("answers a redirect with the access token to %j with %i", async (path, status) => {
    expect(await redirect(path, TOKEN)).toBe(status);
  });

  it.each([
    ["metrics", 200],
    ["v2/models/other/config", 200],
    ["v2/models/stats", 403],
    ["v2/repository/index", 403],
    ["v2/systemsharedmemory/status", 403],
    ["v2/systemsharedmemory/region/a/status", 403],
    ["v2/cudasharedmemory/status", 403],
  ])("answers a redirect without the token to %j with %i", async (path, status) => {
    expect(await redirect(path)).toBe(status);
    expect(await redirect(path, { "triton-access-token": "guess" })).toBe(status);
  });

  it("needs other headers for redirects, or none, with restrictions of its own", async () => {
    const open = async (restrictions: VertexAiOptions["restrictions"]) => {
      const frontend = vertexAi({
        port: 0,
        address: "127.0.0.1",
        ...ROUTES,
        defaultModel: "double",
        restrictions,
      });
      const { url } = await frontend.start(triton);
      onTestFinished(() => frontend.stop());
      return async (headers = {}) =>
        (
          await fetch(`${url}${ROUTES.predictRoute}`, {
            method: "POST",
            headers: { ...headers, "X-Vertex-Ai-Triton-Redirect": "v2/repository/index" },
          })
        ).status;
    };
    expect(await (await open({}))()).toBe(200);
    const ask = await open({ "model-repository": { header: "key", value: "mine" } });
    expect([await ask(TOKEN), await ask({ key: "mine" })]).toEqual([403, 200]);
  });

  it("refuses redirects of other methods, and other paths", async () => {
    const headers = { "X-Vertex-Ai-Triton-Redirect": "v2" };
    expect((await fetch(`${root}${ROUTES.predictRoute}`, { headers })).status).toBe(405);
    expect((await fetch(`${root}/v2/health/live`)).status).toBe(400);
  });

  it("reads and writes binary tensors with the length of the JSON in the content type", async () => {
    const json = Buffer.from(
      JSON.stringify({
        inputs: [{ name: "x", datatype: "FP32", shape: [2], parameters: { binary_data_size: 8 } }],
        parameters: { binary_data_output: true },
      }),
    );
    const type = "application/vnd.vertex-ai-triton.binary+json;json-header-size=";
    const body = Buffer.concat([json, Buffer.from(new Float32Array([3, 4]).buffer)]);
    const answer = await predict(body, { "content-type": `${type}${json.length}` });
    const contentType = answer.headers.get("content-type")!;
    expect([answer.status, contentType.slice(0, type.length)]).toEqual([200, type]);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const size = contentType.slice(type.length);
    expect(answer.headers.get("inference-header-content-length")).toBe(size);
    const tensor = bytes.subarray(Number(size));
    expect([tensor.readFloatLE(0), tensor.readFloatLE(4)]).toEqual([6, 8]);
  });

  it.each([
    ["x", "Unable to parse inference header size, got: x"],
    ["-1", "inference header size should be in range (0, body size), got: -1"],
    ["99999999999", "Unable to parse inference header size, value is out of range, got: 99999999999"],
  ])("refuses a JSON length of %j", async (size, error) => {
    const type = `application/vnd.vertex-ai-triton.binary+json;json-header-size=${size}`;
    const answer = await predict(request, { "content-type": type });
    expect([answer.status, await answer.json()]).toEqual([400, { error }]);
  });
});

it("the only model in service is the default", async () => {
  await using triton = new Triton();
  bindDouble(triton, "single");
  const root = await open(triton);
  const answer = await fetch(`${root}${ROUTES.predictRoute}`, { method: "POST", body: request });
  expect(await answer.json()).toMatchObject({ model_name: "single" });
});

describe("serve() rejects", () => {
  it("without a default among several models, and with one that is not in service", async () => {
    await using triton = new Triton();
    bindDouble(triton, "a");
    bindDouble(triton, "b");
    await expect(open(triton)).rejects.toThrow("Expect the model repository contains only a single model");
    await expect(open(triton, { defaultModel: "c" })).rejects.toThrow(
      "Expect the default model 'c' is loaded",
    );
  });

  it("routes that the platform did not give", () => {
    expect(() => vertexAi({ ...ROUTES, healthRoute: "" })).toThrow(
      "AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint",
    );
    expect(() => vertexAi({ ...ROUTES, predictRoute: "(" })).toThrow(
      "expected a path or a regular expression, got '('",
    );
    expect(() => vertexAi({ ...ROUTES, prot: 1 } as VertexAiOptions)).toThrow("prot");
  });
});
