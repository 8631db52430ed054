import { readFileSync } from "node:fs";
import { join } from "node:path";
import { audio } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

const folder = join(repositoryRoot, "packages/backends/test/media/fixtures");
const chirp = readFileSync(join(folder, "chirp.wav"));
const { audio: expected } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe.each(["worker", "inline"] as const)("a bound audio backend (%s)", (isolation) => {
  const bind = (options: Parameters<typeof audio>[0]) =>
    triton.bind({
      modelName: "audio",
      inferFunc: audio(options),
      config: { maxBatchSize: 8, instanceGroup: { isolation } },
    });

  it("describes its tensors, and answers what numpy computed", async () => {
    const model = bind({ features: "mel", mels: 24 });
    expect(model.metadata()).toMatchObject({
      inputs: [{ name: "audio", datatype: "BYTES", shape: [-1, 1] }],
      outputs: [{ name: "mel", datatype: "FP32", shape: [-1, 24, -1] }],
    });
    const { mel } = await model.inferSample({ audio: [chirp] });
    const { shape, data } = expected["mels 24 slaney"];
    const wanted = new Float32Array(new Uint8Array(Buffer.from(data, "base64")).buffer);
    expect(mel!.shape).toEqual(shape);
    for (const [i, value] of (mel!.data as Float32Array).entries()) expect(value).toBeCloseTo(wanted[i]!, 5);
    expect(model.statistics()).toMatchObject({ inferenceCount: 1 });
  });

  it("answers requests of one batch in their own lengths; a bad file fails only its own", async () => {
    const model = bind({ lengths: true });
    // The header stays; fewer samples follow.
    const short = Uint8Array.from(chirp.subarray(0, 44 + 200));
    new DataView(short.buffer).setUint32(40, 200, true);
    const files = [chirp, short, Buffer.from("no audio at all"), chirp, short];
    const outcomes = await Promise.allSettled(files.map((file) => model.inferSample({ audio: [file] })));
    const lengths = outcomes.map((one) =>
      one.status === "fulfilled"
        ? [one.value.waveform!.data.length, ...(one.value.lengths!.data as Int32Array)]
        : one.reason.message,
    );
    expect(lengths).toEqual([
      [3200, 3200],
      [100, 100],
      "input 'audio': expected a WAV file, got 15 bytes of something else",
      [3200, 3200],
      [100, 100],
    ]);
  });

  it("ends a cancelled request at once, and answers the others", async () => {
    const model = bind({ preset: "whisper" });
    const cancel = new AbortController();
    const cancelled = model.inferSample({ audio: [chirp] }, { signal: cancel.signal });
    const other = model.inferSample({ audio: [chirp] });
    cancel.abort();
    expect(await outcomeOf(cancelled)).toMatch(/^CANCELLED /);
    expect((await other).mel!.shape).toEqual([80, 3000]);
  });
});
