import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as grpcClient from "@tritonjs/client/grpc";
import * as httpClient from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const fixture = (name: string) =>
  readFileSync(join(repositoryRoot, "packages/backends/test/media/fixtures", name));

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
const urls = { http: "", grpc: "" };

beforeAll(async () => {
  repository = await RepositoryOnDisk.create(files);
  triton = new Triton({ modelRepository: repository.path });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls.http = addresses.http!.url;
  urls.grpc = addresses.grpc!.url;
});

afterAll(async () => {
  await triton.close();
  await repository[Symbol.asyncDispose]();
});

const CLIENTS = { http: httpClient, grpc: grpcClient };

describe.each(["http", "grpc"] as const)("over %s", (protocol) => {
  /** The elements of an output for files, one in each row. */
  async function infer(model: string, input: string, output: string, rows: readonly Uint8Array[]) {
    const client = new CLIENTS[protocol].InferenceServerClient(urls[protocol]);
    try {
      const tensor = { datatype: "BYTES", shape: [rows.length, 1], data: rows } as const;
      const result = await client.infer(model, { inputs: { [input]: tensor } });
      return [...result.elements(output, "FP32")];
    } finally {
      client.close();
    }
  }

  it("images become pixels, and a bad one is refused with its row", async () => {
    const photo = fixture("photo.jpg");
    const { pixels } = await triton.infer("pixels", { image: [[photo], [fixture("photo.png")]] });
    expect(await infer("pixels", "image", "pixels", [photo, fixture("photo.png")])).toEqual([
      ...pixels!.data,
    ]);
    await expect(infer("pixels", "image", "pixels", [photo, Buffer.from("not an image")])).rejects.toThrow(
      "input 'image', row 1: expected an image",
    );
  });

  it("audio becomes a waveform", async () => {
    const { waveform } = await triton.infer("wave", { audio: [[fixture("chirp.wav")]] });
    expect(waveform!.data).toHaveLength(1600);
    expect(await infer("wave", "audio", "waveform", [fixture("chirp.wav")])).toEqual([...waveform!.data]);
  });

  it.each([
    ["picture-mean", "photo.jpg", "pixels", "image"],
    ["sound-mean", "chirp.wav", "wave", "audio"],
  ])("the ensemble %s of config.pbtxt passes a file through its step", async (model, file, step, input) => {
    const outputs = await triton.infer(step, { [input]: [[fixture(file)]] });
    const [values] = Object.values(outputs);
    const data = values!.data as Float32Array;
    const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
    const [got] = await infer(model, "file", "mean", [fixture(file)]);
    expect(got).toBeCloseTo(mean, 6);
    await expect(infer(model, "file", "mean", [Buffer.from("neither")])).rejects.toThrow(
      `in ensemble '${model}', input '${input}': expected`,
    );
  });
});
