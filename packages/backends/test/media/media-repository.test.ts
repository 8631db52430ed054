import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
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
  await using triton = new Triton({ modelRepository: repository.path, exitOnError: false });
  await triton.ready().catch(() => {});
  await run(triton);
}

/** The reason why a model of a repository was not loaded. */
async function reasonOf(triton: Triton, model: string): Promise<string> {
  const rows = await triton.service.repositoryIndex(false);
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
      expect(triton.service.modelConfig("pixels", "")).toMatchObject({
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

  it.each([
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
  ])("with backend %s and the parameters %j is refused with the reason", async (backend, given, text) => {
    const files = { "m/config.pbtxt": `backend: "${backend}"\n${parameters(given)}`, "m/1/": "" };
    await serving(files, async (triton) => {
      expect(await reasonOf(triton, "m")).toContain(text);
    });
  });

  it("that contradicts the parameters is refused", async () => {
    const files = {
      "m/config.pbtxt": `backend: "image"\n${parameters({ width: "8", height: "8" })}
output [ { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 8, 9 ] } ]`,
      "m/1/": "",
    };
    await serving(files, async (triton) => {
      expect(await reasonOf(triton, "m")).toContain(
        "model 'm', tensor 'pixels': the model expects dims [3, 8, 8] but the model configuration specifies dims [3, 8, 9]",
      );
    });
  });
});
