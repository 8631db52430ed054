/*
 * Speech recognition with the network of examples/speech-recognition. How many seconds of speech does a second
 * transcribe, one recording at a time and 16 at once, with batches of any length? What part of the processor's time goes
 * to the filter banks? How long do eight speakers wait for their text?
 */

import { readFileSync } from "node:fs";
import { audio } from "@tritonjs/backends/media";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { ctcDecoder } from "@tritonjs/backends/speech";
import { Triton } from "@tritonjs/core";
import { short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const RATE = 16_000;
const PIECE = 5120;
const folder = new URL("../examples/speech-recognition/", import.meta.url);
const file = (path) => new URL(path, folder).pathname;
const recordings = JSON.parse(readFileSync(file("recordings/recordings.json"), "utf8")).map(
  ({ name, text }) => {
    const data = readFileSync(file(`recordings/${name}`)).subarray(44);
    const samples = Float32Array.from(
      { length: data.length / 2 },
      (_, i) => data.readInt16LE(2 * i) / 2 ** 15,
    );
    return { text, samples, seconds: samples.length / RATE };
  },
);
const text = (output) => new TextDecoder().decode(output.data[0]);
const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)];

await measureOffline();
await measureStreams();

/** The steps of a transcript, bound so that recordings of any length share a batch. */
function bindSteps(triton) {
  const features = triton.bind({
    modelName: "features",
    inferFunc: audio({ features: "fbank", input: "samples", lengths: true, outputName: "speech" }),
    config: { maxBatchSize: 16 },
  });
  const encoder = triton.bind({
    modelName: "encoder",
    inferFunc: onnxruntime({
      model: file("models/encoder/1/encoder.onnx"),
      session: { intraOpNumThreads: 1 },
    }),
    config: { maxBatchSize: 16, batcher: { pad: { speech: 0 } }, instanceGroup: [{ count: 2 }] },
  });
  const scoring = triton.bind({
    modelName: "scoring",
    inferFunc: ctcDecoder({ vocabulary: file("models/scoring/1/units.txt") }),
    config: { maxBatchSize: 16, batcher: { pad: { batch_log_probs: 0, batch_log_probs_idx: 0 } } },
  });
  const timed = { features: 0, encoder: 0 };
  const transcribe = async (samples) => {
    const started = performance.now();
    const { speech, lengths } = await features.infer({ audio: [samples] });
    const made = performance.now();
    const heard = await encoder.infer(
      { speech, speech_lengths: lengths.data },
      { requestedOutputs: ["encoder_out_lens", "beam_log_probs", "beam_log_probs_idx"] },
    );
    timed.features += made - started;
    timed.encoder += performance.now() - made;
    const { OUTPUT0 } = await scoring.infer({
      encoder_out_lens: [[heard.encoder_out_lens.data[0]]],
      batch_log_probs: heard.beam_log_probs,
      batch_log_probs_idx: heard.beam_log_probs_idx,
    });
    return text(OUTPUT0);
  };
  return { transcribe, encoder, timed };
}

async function measureOffline() {
  const triton = new Triton();
  const { transcribe, encoder, timed } = bindSteps(triton);
  for (const { samples } of recordings) await transcribe(samples);
  const rows = {};
  for (const clients of [1, 16]) {
    const before = encoder.statistics();
    const [cpu, started] = [process.cpuUsage(), performance.now()];
    let [done, next] = [0, 0];
    const until = started + 8000;
    const work = async () => {
      while (performance.now() < until) {
        const { samples, seconds } = recordings[next++ % recordings.length];
        await transcribe(samples);
        done += seconds;
      }
    };
    await Promise.all(Array.from({ length: clients }, work));
    const elapsed = (performance.now() - started) / 1000;
    const used = process.cpuUsage(cpu);
    const after = encoder.statistics();
    rows[`${clients} at a time`] = {
      "seconds of speech a second": short(done / elapsed),
      "recordings in a batch": short(
        (after.inferenceCount - before.inferenceCount) / (after.executionCount - before.executionCount),
      ),
      "CPU ms a second of speech": short((used.user + used.system) / 1000 / done),
    };
    if (clients === 1) {
      // Alone, the time of a step is that of its processor, and of the way to its thread.
      rows["1 at a time"]["time in filter banks, of that in the encoder"] =
        `${short((100 * timed.features) / timed.encoder)} %`;
    }
  }
  await triton.close();
  report("speech", {
    rows,
    note: "Recordings of 2 to 3 seconds. The encoder has two instances of one thread.",
  });
}

async function measureStreams() {
  const repositories = ["models", "steps", "streaming"].map(file);
  const triton = new Triton({
    modelRepository: repositories,
    gpuFallback: "cpu",
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
  await triton.ready();
  const waits = [];
  const firsts = [];
  const speak = async (speaker, isMeasured) => {
    const { samples } = recordings[speaker % recordings.length];
    const { WORDS } = await triton.infer("transcribe", { WAV: [samples], WAV_LENS: [[samples.length]] });
    const [first] = JSON.parse(text(WORDS));
    const started = performance.now();
    let isHeard = false;
    for (let at = 0; at < samples.length; at += PIECE) {
      // A piece can be sent when its last sample has been spoken.
      const end = Math.min(samples.length, at + PIECE);
      const due = started + (1000 * end) / RATE;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
      const sent = performance.now();
      const sequence = { id: `${speaker}-${isMeasured}`, start: at === 0, end: end === samples.length };
      const { TRANSCRIPT } = await triton.infer(
        "live_transcript",
        { WAV: [samples.slice(at, end)] },
        { sequence },
      );
      if (!isMeasured) continue;
      waits.push(performance.now() - sent);
      if (!isHeard && text(TRANSCRIPT) !== "") {
        isHeard = true;
        firsts.push(performance.now() - started - 1000 * first.end);
      }
    }
  };
  const speakers = [...Array(8).keys()];
  await Promise.all(speakers.map((speaker) => speak(speaker, false)));
  for (let turn = 0; turn < 3; turn++) {
    await Promise.all(
      speakers.map(async (speaker) => {
        await new Promise((resolve) => setTimeout(resolve, 40 * speaker));
        await speak(speaker + 8 * turn, true);
      }),
    );
  }
  await triton.close();
  const rows = {
    "8 speakers": {
      "a piece of 320 ms, median, ms": short(quantile(waits, 0.5)),
      "99 %, ms": short(quantile(waits, 0.99)),
      "first text after the first word, median, ms": short(quantile(firsts, 0.5)),
      "most, ms": short(quantile(firsts, 1)),
    },
  };
  report("speech-streams", { rows, document: "speech.md", note: "Pieces are sent as they are spoken." });
}
