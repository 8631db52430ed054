import { readFileSync } from "node:fs";
import { join } from "node:path";
import { InferenceServerClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const fixture = (name: string) =>
  readFileSync(join(repositoryRoot, "packages/backends/test/media/fixtures", name));

const parameters = (all: Readonly<Record<string, string>>) =>
  Object.entries(all)
    .map(([key, value]) => `parameters { key: "${key}" value: { string_value: "${value}" } }`)
    .join("\n");

async function serving(files: RepositoryFiles, run: (triton: Triton) => Promise<void>): Promise<void> {
  await using repository = await RepositoryOnDisk.create(files);
  await using triton = new Triton({
    extensions: [withRepository({ modelRepository: repository.path, exitOnError: false })],
  });
  await triton.ready().catch(() => {});
  await run(triton);
}

/** The reason why a model of a repository was not loaded. */
async function reasonOf(triton: Triton, model: string): Promise<string> {
  const rows = await serviceOf(triton).repositoryIndex(false);
  return rows.find(({ name }) => name === model)?.reason ?? "";
}

describe("config.pbtxt", () => {
  it("with backend image: parameters become options, and the configuration is completed", async () => {
    const files = {
      "pixels/config.pbtxt": `backend: "image"\n${parameters({
        width: "32",
        height: "24",
        mean: "[0.485, 0.456, 0.406]",
        std: "0.229, 0.224, 0.225",
        scale: "1/255",
        layout: "NHWC",
        dtype: "FP16",
        formats: "jpeg, png",
      })}`,
      "pixels/1/": "",
    };
    await serving(files, async (triton) => {
      expect(serviceOf(triton).modelConfig("pixels", "")).toMatchObject({
        maxBatchSize: 32,
        dynamicBatching: {},
        input: [{ name: "image", dataType: "TYPE_STRING", dims: [1] }],
        output: [{ name: "pixels", dataType: "TYPE_FP16", dims: [24, 32, 3] }],
      });
      const { pixels } = await triton.infer("pixels", { image: [[fixture("photo.jpg")]] });
      expect(pixels!.shape).toEqual([1, 24, 32, 3]);
    });
  });

  it("gives the names, the size and the type of written tensors, and no batch axis without max_batch_size", async () => {
    const files = {
      "eyes/config.pbtxt": `backend: "image"
input [ { name: "JPEG" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "DATA" data_type: TYPE_UINT8 dims: [ 3, 20, 30 ] }, { name: "original_size" data_type: TYPE_INT32 dims: [ 2 ] } ]`,
      "eyes/1/": "",
    };
    await serving(files, async (triton) => {
      const { DATA, original_size } = await triton.infer("eyes", { JPEG: [fixture("photo.jpg")] });
      expect([DATA!.shape, [...(original_size!.data as Int32Array)]]).toEqual([
        [3, 20, 30],
        [72, 96],
      ]);
    });
  });

  it("with backend audio", async () => {
    const files = {
      "mel/config.pbtxt": `backend: "audio"\nmax_batch_size: 4\n${parameters({ preset: "whisper", mels: "128" })}`,
      "mel/1/": "",
      "wave/config.pbtxt": `backend: "audio"\n${parameters({ sample_rate: "8000", mono: "true", isolation: "inline" })}`,
      "wave/1/": "",
    };
    await serving(files, async (triton) => {
      const audio = [[fixture("chirp.wav")]];
      expect((await triton.infer("mel", { audio })).mel!.shape).toEqual([1, 128, 3000]);
      expect((await triton.infer("wave", { audio })).waveform!.shape).toEqual([1, 1600]);
    });
  });

  it("is refused with the reason", async () => {
    const size = { width: "8", height: "8" };
    const dims = 'output [ { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 8, 9 ] } ]';
    const cases: readonly (readonly [string, Readonly<Record<string, string>>, string, string?])[] = [
      ["image", { width: "8" }, "height: expected an integer from 1 to 16384, got 0"],
      ["image", { width: "8", height: "8", widht: "9" }, "got 'widht'"],
      [
        "image",
        { width: "eight", height: "8" },
        "parameter 'width' of model 'm': expected a number, or a quotient such as 1/255, got 'eight'",
      ],
      [
        "image",
        { width: "8", height: "8", mean: "1,x" },
        "parameter 'mean' of model 'm': expected numbers separated by commas, got '1,x'",
      ],
      ["audio", { n_fft: "74" }, "nFft: expected a product of primes up to 31, got 74"],
      ["audio", { mono: "yes" }, "parameter 'mono' of model 'm': expected true or false, got 'yes'"],
      [
        "audio",
        { isolation: "process" },
        "parameter 'isolation' of model 'm': expected worker or inline, got 'process'",
      ],
      [
        "image",
        size,
        "tensor 'pixels': the model expects dims [3, 8, 8] but the model configuration specifies dims [3, 8, 9]",
        dims,
      ],
    ];
    const files = cases.flatMap(([backend, given, , more = ""], i) => [
      [`m${i}/config.pbtxt`, `backend: "${backend}"\n${parameters(given)}\n${more}`],
      [`m${i}/1/`, ""],
    ]);
    await serving(Object.fromEntries(files), async (triton) => {
      for (const [i, [, , text]] of cases.entries()) {
        expect(await reasonOf(triton, `m${i}`)).toContain(text.replace("model 'm'", `model 'm${i}'`));
      }
    });
  });
});

/** A JavaScript model that answers the mean of each row. */
const meanModel = (dims: string) => ({
  "config.pbtxt": `backend: "javascript" max_batch_size: 8

input { name: "values" data_type: TYPE_FP32 dims: ${dims} }

output { name: "mean" data_type: TYPE_FP32 dims: [ 1 ] }`,
  "1/model.mjs": `export default class {
  execute(requests) {
    return requests.map(({ inputs: { values }, batchSize }) => {
      const size = values.data.length / batchSize;
      const mean = (row) => values.data.subarray(row * size, (row + 1) * size).reduce((a, b) => a + b, 0) / size;
      return { mean: Array.from({ length: batchSize }, (_, row) => [mean(row)]) };
    });
  }
}`,
});

/** An ensemble of a step of media, and of the mean of its output. */
const ensemble = (step: string, output: string) => `platform: "ensemble" max_batch_size: 8

input { name: "file" data_type: TYPE_STRING dims: [ 1 ] }

output { name: "mean" data_type: TYPE_FP32 dims: [ 1 ] }

ensemble_scheduling { step [
  { model_name: "${step}" model_version: -1
    input_map { key: "${step === "wave" ? "audio" : "image"}" value: "file" } output_map { key: "${output}" value: "values" } },
  { model_name: "${step}-mean" model_version: -1
    input_map { key: "values" value: "values" } output_map { key: "mean" value: "mean" } } ] }`;

const folder = (name: string, files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [`${name}/${path}`, content]));

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value: { string_value: "${value}" } }`;

const files = {
  "pixels/config.pbtxt": `backend: "image" ${parameter("width", "16")} ${parameter("height", "8")}`,
  "pixels/1/": "",
  "wave/config.pbtxt": `backend: "audio" ${parameter("seconds", "0.1")}`,
  "wave/1/": "",
  ...folder("pixels-mean", meanModel("[ 3, 8, 16 ]")),
  ...folder("wave-mean", meanModel("[ 1600 ]")),
  "picture-mean/config.pbtxt": ensemble("pixels", "pixels"),
  "picture-mean/1/": "",
  "sound-mean/config.pbtxt": ensemble("wave", "waveform"),
  "sound-mean/1/": "",
};

let repository: RepositoryOnDisk;
let triton: Triton;
let client: InferenceServerClient;

beforeAll(async () => {
  repository = await RepositoryOnDisk.create(files);
  triton = new Triton({ extensions: [withRepository({ modelRepository: repository.path })] });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  client = new InferenceServerClient(addresses.http!.url);
});

afterAll(async () => {
  client.close();
  await triton.close();
  await repository[Symbol.asyncDispose]();
});

/** The elements of an output for files, one in each row. */
async function infer(
  client: InferenceServerClient,
  model: string,
  input: string,
  output: string,
  rows: readonly Uint8Array[],
) {
  const tensor = { datatype: "BYTES", shape: [rows.length, 1], data: rows } as const;
  const result = await client.infer(model, { inputs: { [input]: tensor } });
  return [...result.elements(output, "FP32")];
}

it("images become pixels over HTTP, and a bad one is refused with its row", async () => {
  const photo = fixture("photo.jpg");
  const { pixels } = await triton.infer("pixels", { image: [[photo], [fixture("photo.png")]] });
  const ask = (...rows: Uint8Array[]) => infer(client, "pixels", "image", "pixels", rows);
  expect(await ask(photo, fixture("photo.png"))).toEqual([...pixels!.data]);
  await expect(ask(photo, Buffer.from("not an image"))).rejects.toThrow(
    "input 'image', row 1: expected an image",
  );
});

it("audio becomes a waveform over HTTP", async () => {
  const { waveform } = await triton.infer("wave", { audio: [[fixture("chirp.wav")]] });
  expect(waveform!.data).toHaveLength(1600);
  expect(await infer(client, "wave", "audio", "waveform", [fixture("chirp.wav")])).toEqual([
    ...waveform!.data,
  ]);
});

it.each([
  ["picture-mean", "photo.jpg", "pixels", "image"],
  ["sound-mean", "chirp.wav", "wave", "audio"],
])("the ensemble %s of config.pbtxt passes a file through its step", async (model, file, step, input) => {
  const outputs = await triton.infer(step, { [input]: [[fixture(file)]] });
  const [values] = Object.values(outputs);
  const data = values!.data as Float32Array;
  const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
  const { mean: got } = await triton.infer(model, { file: [[fixture(file)]] });
  expect(got!.data[0]).toBeCloseTo(mean, 6);
  await expect(triton.infer(model, { file: [[Buffer.from("neither")]] })).rejects.toThrow(
    `in ensemble '${model}', input '${input}': expected`,
  );
});
