import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sample, Triton, TritonError } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { describe, expect, it } from "vitest";
import { type SageMakerOptions, sageMaker } from "../../../src/cloud/index.js";

const request = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] });

function bindDouble(triton: Triton, modelName: string, fail?: Error) {
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => {
      if (fail) throw fail;
      return { y: x.data.map((value) => 2 * value) };
    }),
  });
}

async function open(triton: Triton, options: SageMakerOptions = {}) {
  const frontend = sageMaker({ port: 0, address: "127.0.0.1", ...options });
  return (await triton.serve({ frontends: [frontend] })).addresses.sagemaker!.url;
}

const post = (url: string, body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", body, headers });

describe("an endpoint of one model", () => {
  it("answers pings and invocations", async () => {
    await using triton = new Triton();
    bindDouble(triton, "double");
    const root = await open(triton);
    expect((await fetch(`${root}/ping`)).status).toBe(200);
    const answer = await post(`${root}/invocations`, request);
    expect(await answer.json()).toMatchObject({ model_name: "double", outputs: [{ data: [2, 4] }] });
  });

  it("answers 400 to every other path and method", async () => {
    await using triton = new Triton();
    bindDouble(triton, "double");
    const root = await open(triton);
    const asked = [
      fetch(`${root}/`),
      fetch(`${root}/invocations`),
      post(`${root}/ping`, ""),
      fetch(`${root}/v2/health/live`),
    ];
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  });

  it("lists no models of the platform, and says why it loads and unloads none", async () => {
    await using triton = new Triton();
    bindDouble(triton, "double");
    const root = await open(triton);
    expect(await (await fetch(`${root}/models`)).json()).toEqual({ models: [] });
    expect((await fetch(`${root}/models/double`)).status).toBe(404);
    for (const answer of [
      await post(`${root}/models`, "{}"),
      await fetch(`${root}/models/double`, { method: "DELETE" }),
    ]) {
      const { error } = (await answer.json()) as { error: string };
      expect([answer.status, error]).toEqual([
        400,
        expect.stringContaining("sageMaker({ multiModel: true })"),
      ]);
    }
  });

  it.each([
    ["an access token", { accessToken: "s" }, { "triton-access-token": "s" }, 403],
    [
      "authenticate",
      {
        authenticate: ({ headers }: { headers: Headers }) => {
          if (headers.get("key") !== "s")
            throw new TritonError("UNAVAILABLE", "who?", { reason: "UNAUTHENTICATED" });
        },
      },
      { key: "s" },
      401,
    ],
  ])("guards the list, loads and unloads of models with %s", async (_, security, headers, status) => {
    await using triton = new Triton({ security, extensions: [repository({ modelControlMode: "explicit" })] });
    const root = await open(triton, { multiModel: true });
    const ask = async (path: string, method: string, sent: Record<string, string>) =>
      (await fetch(`${root}${path}`, { method, headers: sent })).status;
    const routes = [
      ["/models", "GET", 200],
      ["/models/m", "GET", 404],
      ["/models", "POST", 400],
      ["/models/m", "DELETE", 404],
    ] as const;
    for (const [path, method, allowed] of routes) {
      expect(await ask(path, method, {})).toBe(status);
      expect(await ask(path, method, headers)).toBe(allowed);
    }
    expect(await ask("/ping", "GET", headers)).toBe(200);
  });

  it("needs a default among several models", async () => {
    await using triton = new Triton();
    bindDouble(triton, "a");
    bindDouble(triton, "b");
    const answer = await post(`${await open(triton)}/invocations`, request);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "/invocations: expected one model in service, or a default model; got a, b" },
    ]);
  });

  it("reads and writes binary tensors with the length of the JSON in the content type", async () => {
    await using triton = new Triton();
    bindDouble(triton, "double");
    const root = await open(triton, { defaultModelName: "double" });
    const json = Buffer.from(
      JSON.stringify({
        inputs: [{ name: "x", datatype: "FP32", shape: [1], parameters: { binary_data_size: 4 } }],
        parameters: { binary_data_output: true },
      }),
    );
    const type = "application/vnd.sagemaker-triton.binary+json;json-header-size=";
    const body = Buffer.concat([json, Buffer.from(new Float32Array([5]).buffer)]);
    const answer = await post(`${root}/invocations`, body, {
      "content-type": `${type}${json.length}`,
      "accept-encoding": "gzip",
    });
    const contentType = answer.headers.get("content-type")!;
    expect([contentType.slice(0, type.length), answer.headers.get("content-encoding")]).toEqual([type, null]);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.subarray(Number(contentType.slice(type.length))).readFloatLE(0)).toBe(10);
  });

  it("runs generate_stream behind /invocations", async () => {
    await using triton = new Triton();
    triton.bind({
      modelName: "letters",
      inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      async *inferFunc([request]) {
        for (const letter of request!.inputs.text_input.text()) yield [{ text_output: [letter] }];
      },
      config: { decoupled: true, maxBatchSize: 0 },
    });
    const root = await open(triton, { inferenceType: "generate_stream" });
    const answer = await post(`${root}/invocations`, '{"text_input":"ab"}');
    const texts = [...(await answer.text()).matchAll(/"text_output":"(\w)"/g)].map(([, letter]) => letter);
    expect(texts).toEqual(["a", "b"]);
  });

  it("answers 507 when memory is used up, so that the platform makes room", async () => {
    await using triton = new Triton();
    bindDouble(triton, "large", new TritonError("INTERNAL", "CUDA out of memory: tried to allocate 2 GiB"));
    const answer = await post(`${await open(triton)}/invocations`, request);
    expect([answer.status, await answer.json()]).toMatchObject([
      507,
      { error: expect.stringContaining("CUDA out of memory") },
    ]);
  });
});

describe("a multi-model endpoint", () => {
  const identity = (name: string) =>
    `name: "${name}" backend: "identity"
    input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
    output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]`;
  const body = JSON.stringify({ inputs: [{ name: "INPUT0", datatype: "FP32", shape: [1], data: [7] }] });

  /** A server, and a directory of archives as the platform unpacks them. */
  async function endpoint(archives: Readonly<Record<string, Readonly<Record<string, string>>>>) {
    const modelsDirectory = await mkdtemp(join(tmpdir(), "tritonjs-sagemaker-"));
    for (const [hash, files] of Object.entries(archives)) {
      for (const [path, text] of Object.entries(files)) {
        const file = join(modelsDirectory, hash, "model", path);
        await mkdir(join(file, ".."), { recursive: true });
        await writeFile(file, text);
      }
    }
    const triton = new Triton({
      extensions: [repository({ modelControlMode: "explicit", modelNamespacing: true })],
    });
    const root = await open(triton, { multiModel: true, modelsDirectory, pingMode: "live" });
    const load = (hash: string, target?: string, url = `${modelsDirectory}/${hash}/model`) =>
      post(
        `${root}/models`,
        JSON.stringify({ model_name: hash, url }),
        target === undefined ? {} : { "X-Amzn-SageMaker-Target-Model": target },
      );
    return {
      root,
      load,
      modelsDirectory,
      invoke: (hash: string) => post(`${root}/models/${hash}/invoke`, body),
      async [Symbol.asyncDispose]() {
        await triton.close();
        await rm(modelsDirectory, { recursive: true });
      },
    };
  }

  const single = { "resnet/config.pbtxt": identity("resnet"), "resnet/1/empty": "" };

  it("loads, lists, describes, invokes and unloads models under the names of the platform", async () => {
    await using one = await endpoint({
      abc: single,
      def: { "config.pbtxt": identity("model"), "1/empty": "" },
    });
    const { root, modelsDirectory } = one;
    expect((await fetch(`${root}/ping`)).status).toBe(200);
    expect((await one.load("abc", "resnet-v1.tar.gz")).status).toBe(200);
    expect((await one.load("def")).status).toBe(200);
    expect(await (await fetch(`${root}/models`)).json()).toEqual({
      models: [
        { modelName: "abc", modelUrl: `${modelsDirectory}/abc/model` },
        { modelName: "def", modelUrl: `${modelsDirectory}/def` },
      ],
    });
    expect(await (await fetch(`${root}/models/abc`)).json()).toMatchObject({ modelName: "abc" });
    expect(await (await one.invoke("abc")).json()).toMatchObject({ model_name: "resnet-v1.tar.gz" });
    expect(await (await one.invoke("def")).json()).toMatchObject({ outputs: [{ data: [7] }] });
    expect((await fetch(`${root}/models/abc`, { method: "DELETE" })).status).toBe(200);
    expect([(await fetch(`${root}/models/abc`)).status, (await one.invoke("abc")).status]).toEqual([
      404, 404,
    ]);
    expect((await fetch(`${root}/models/abc`, { method: "DELETE" })).status).toBe(404);
    expect((await one.load("abc", "resnet-v1.tar.gz")).status).toBe(200);
  });

  it("answers 409 for a model that is loaded or loading", async () => {
    await using one = await endpoint({ abc: single });
    const statuses = await Promise.all([one.load("abc"), one.load("abc")]);
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await one.load("abc")).status).toBe(409);
  });

  it("loads the ensemble of an archive with its members", async () => {
    const ensemble = `platform: "ensemble"
      input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
      output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
      ensemble_scheduling { step [ { model_name: "member" model_version: -1
        input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }`;
    await using one = await endpoint({
      abc: {
        "all/config.pbtxt": ensemble,
        "all/1/empty": "",
        "member/config.pbtxt": identity("member"),
        "member/1/empty": "",
      },
    });
    const loaded = await one.load("abc", "all.tar.gz");
    expect([loaded.status, await loaded.text()]).toEqual([200, ""]);
    expect(await (await one.invoke("abc")).json()).toMatchObject({ outputs: [{ data: [7] }] });
    expect((await fetch(`${one.root}/models/abc`, { method: "DELETE" })).status).toBe(200);
  });

  it("refuses directories that the platform could not mean, and keeps nothing of a load that fails", async () => {
    await using one = await endpoint({
      abc: { "resnet/config.pbtxt": "max_batch: 1", "resnet/1/empty": "" },
      two: { "a/1/x": "", "b/1/x": "" },
    });
    await symlink(tmpdir(), join(one.modelsDirectory, "out"));
    await mkdir(join(one.modelsDirectory, "link"));
    await symlink(tmpdir(), join(one.modelsDirectory, "link", "model"));
    const refusals = [
      [undefined, `expected a path of the form ${one.modelsDirectory}/<hash>/model[/<subdir>]`, "/etc"],
      [undefined, "expected a path of the form", `${one.modelsDirectory}/abc/model/../../../x/model`],
      [undefined, "it leads out of", `${one.modelsDirectory}/link/model`],
      [undefined, "there is no such directory", `${one.modelsDirectory}/absent/model`],
      ["two", "got a, b, and none is an ensemble", undefined],
      ["abc", "failed to load", undefined],
    ] as const;
    for (const [hash = "abc", text, url] of refusals) {
      const answer = await one.load(hash, undefined, url ?? `${one.modelsDirectory}/${hash}/model`);
      expect([answer.status, await answer.json()]).toEqual([400, { error: expect.stringContaining(text) }]);
    }
    await writeFile(join(one.modelsDirectory, "abc/model/resnet/config.pbtxt"), identity("resnet"));
    expect((await one.load("abc")).status).toBe(200);
  });

  it.each(["", "[]", "{}", '{"model_name":"a"}', '{"model_name":1,"url":"/x"}'])(
    "refuses the load request %j",
    async (text) => {
      await using one = await endpoint({});
      expect((await post(`${one.root}/models`, text)).status).toBe(400);
    },
  );
});
