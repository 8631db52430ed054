import { readFileSync } from "node:fs";
import { audio } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import ndarray from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const { cases } = JSON.parse(readFileSync(new URL("./fixtures/fbank.json", import.meta.url), "utf8")) as {
  readonly cases: readonly { readonly samples: string; readonly frames: number }[];
};
const bytes = new Uint8Array(Buffer.from(cases[0]!.samples, "base64"));
const speech = Float32Array.from(new Int16Array(bytes.buffer), (sample) => sample / 2 ** 15);

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

const options = {
  features: "fbank",
  input: "samples",
  inputName: "wav",
  inputLengthsName: "wav_lens",
  outputName: "speech",
  lengths: true,
  lengthsName: "speech_lengths",
} as const;

const state = { input: "past", output: "present", dtype: "FP32", shape: [-1] } as const;

describe("filter banks of samples", () => {
  const bind = (given = {}) =>
    triton.bind({
      modelName: "features",
      inferFunc: audio({ ...options, ...given }),
      config: { maxBatchSize: 8 },
    });

  it("are refused by their length before a call in process copies them, as steps of ensembles too", async () => {
    await bind({ maxSeconds: 20, inputLengthsName: undefined }).ready();
    triton.bindEnsemble({
      modelName: "inner",
      inputs: [{ name: "audio", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "frames", dtype: "FP32", shape: [-1, 80] }],
      steps: [{ modelName: "features", inputMap: { wav: "audio" }, outputMap: { speech: "frames" } }],
      config: { maxBatchSize: 8 },
    });
    const outer = triton.bindEnsemble({
      modelName: "outer",
      inputs: [{ name: "signal", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "found", dtype: "FP32", shape: [-1, 80] }],
      steps: [{ modelName: "inner", inputMap: { audio: "signal" }, outputMap: { frames: "found" } }],
      config: { maxBatchSize: 8 },
    });
    await outer.ready();
    // Rows are joined, and others copied, by the time that the call returns its promise.
    const bytesFor = async (call: () => Promise<unknown>) => {
      const before = process.memoryUsage().arrayBuffers;
      const pending = outcomeOf(call());
      const bytes = process.memoryUsage().arrayBuffers - before;
      return { bytes, outcome: await pending };
    };
    const long = new Float32Array(16_000 * 200);
    const fault = "INVALID_ARG input 'wav': expected at most 20 seconds of audio, got 200.0";
    const byPath = "INVALID_ARG in ensemble 'outer', in ensemble 'inner', input 'wav': ";
    const calls: [() => Promise<unknown>, string][] = [
      [() => triton.infer("features", { wav: [long] }), fault],
      [() => triton.infer("features", { wav: ndarray(long, [1, long.length]) }), fault],
      [() => outer.infer({ signal: [long] }), byPath + fault.slice("INVALID_ARG input 'wav': ".length)],
      [() => outer.inferSample({ signal: long }), byPath + fault.slice("INVALID_ARG input 'wav': ".length)],
    ];
    for (const [call, expected] of calls) {
      const { bytes, outcome } = await bytesFor(call);
      expect(outcome).toBe(expected);
      expect(bytes).toBeLessThan(long.byteLength / 10);
    }
    expect((await outer.infer({ signal: [long.subarray(0, 16_000)] })).found!.shape).toEqual([1, 98, 80]);
    // Larger than all arrays of before, which may be freed meanwhile.
    const short = long.subarray(0, 16_000 * 20);
    const { bytes } = await bytesFor(() => triton.infer("features", { wav: [short] }));
    // Once: joining the rows is the copy.
    expect(Math.round(bytes / short.byteLength)).toBe(1);
  });

  it("have the frames of each row, with zeros up to those of the longest row", async () => {
    const model = bind();
    expect(model.metadata()).toMatchObject({
      inputs: [
        { name: "wav", datatype: "FP32", shape: [-1, -1] },
        { name: "wav_lens", datatype: "INT32", shape: [-1, 1] },
      ],
      outputs: [
        { name: "speech", datatype: "FP32", shape: [-1, -1, 80] },
        { name: "speech_lengths", datatype: "INT32", shape: [-1, 1] },
      ],
    });
    const wav = [[...speech], [...speech]];
    const all = await model.infer({ wav, wav_lens: [[speech.length], [5000]] });
    const { frames } = cases[0]!;
    expect(all.speech_lengths!.data).toEqual(Int32Array.of(frames, 29));
    expect(all.speech!.shape).toEqual([2, frames, 80]);
    const short = await model.inferSample({ wav: speech.slice(0, 5000), wav_lens: [5000] });
    const values = all.speech!.data as Float32Array;
    const second = values.subarray(frames * 80);
    expect(second.subarray(0, 29 * 80)).toEqual(short.speech!.data);
    expect(second.subarray(29 * 80).every((value) => value === 0)).toBe(true);
  });

  it.each([0, 1, 399])("of %d samples have no frame", async (count) => {
    const { speech: made, speech_lengths } = await bind().inferSample({
      wav: new Float32Array(count),
      wav_lens: [count],
    });
    expect(made!.shape).toEqual([0, 80]);
    expect(speech_lengths!.data).toEqual(Int32Array.of(0));
  });

  it("are refused for samples that are not finite, and for impossible lengths", async () => {
    const model = bind({ maxSeconds: 1 });
    const refused = (wav: Float32Array, count: number) =>
      outcomeOf(model.inferSample({ wav, wav_lens: [count] }));
    const bad = speech.slice(0, 1000);
    bad[17] = Number.NaN;
    expect(await refused(bad, 1000)).toBe("INVALID_ARG input 'wav': expected finite samples, got NaN at 17");
    // What is behind the length is not looked at.
    expect(await refused(bad, 17)).toBe("done");
    const range = "INVALID_ARG input 'wav_lens': expected 0 to 1000 samples, as input 'wav' has, got";
    expect(await refused(bad, 1001)).toBe(`${range} 1001`);
    expect(await refused(bad, -1)).toBe(`${range} -1`);
    expect(await refused(new Float32Array(20_000), 20_000)).toBe(
      "INVALID_ARG input 'wav': expected at most 1 seconds of audio, got 1.3",
    );
  });
});

describe("filter banks of streams", () => {
  it.each(["worker", "inline"] as const)(
    "(%s) are those of the whole signal, then silence",
    async (isolation) => {
      const whole = triton.bind({
        modelName: "whole",
        inferFunc: audio({ features: "fbank", input: "samples" }),
      });
      const { fbank } = await whole.inferSample({ audio: speech });
      const model = triton.bind({
        modelName: "stream",
        inferFunc: audio({
          features: "fbank",
          input: "samples",
          stream: true,
          lengths: true,
          frameMultiple: 4,
          padFrames: 16,
          flushFrames: 16,
        }),
        config: { sequence: { states: [state] }, instanceGroup: { isolation } },
      });
      const heard: number[] = [];
      const shapes: number[] = [];
      for (let at = 0; at < speech.length; at += 3000) {
        const sequence = { id: 5, start: at === 0, end: at + 3000 >= speech.length };
        const { fbank: next, lengths } = await model.inferSample(
          { audio: speech.slice(at, at + 3000) },
          { sequence },
        );
        const count = Number(lengths!.get(0));
        heard.push(...(next!.data as Float32Array).subarray(0, count * 80));
        shapes.push(next!.shape[0]!);
      }
      expect(shapes.every((frames) => frames % 16 === 0 && frames > 0)).toBe(true);
      const values = fbank!.data as Float32Array;
      expect(heard.slice(0, values.length)).toEqual([...values]);
      expect(heard.length).toBe((values.length / 80 + 16 - ((values.length / 80 + 16) % 4)) * 80);
      expect(new Set(heard.slice(values.length)).size).toBe(1);
    },
  );

  it("need samples as their input", () => {
    expect(() => audio({ features: "fbank", stream: true })).toThrow(
      "stream: expected only with the features 'fbank', the input 'samples' and without seconds, got true",
    );
  });
});

describe("a repository", () => {
  it("names the tensors of filter banks, and those of INT32 are the lengths", async () => {
    const config = `backend: "audio" max_batch_size: 64
input [ { name: "wav" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "wav_lens" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "speech" data_type: TYPE_FP32 dims: [ -1, 80 ] }, { name: "speech_lengths" data_type: TYPE_INT32 dims: [ 1 ] } ]
parameters { key: "features" value: { string_value: "fbank" } }`;
    await using repository = await RepositoryOnDisk.create({
      "features/config.pbtxt": config,
      "features/1/": "",
    });
    await using server = new Triton({ extensions: [withRepository({ modelRepository: repository.path })] });
    const outputs = await server.infer("features", { wav: [[...speech]], wav_lens: [[speech.length]] });
    expect(outputs.speech!.shape).toEqual([1, cases[0]!.frames, 80]);
    expect(outputs.speech_lengths!.get(0, 0)).toBe(cases[0]!.frames);
  });
});
