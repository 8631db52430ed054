/*
 * Speech recognition with the networks of examples/speech-recognition, and with random networks as large as those of
 * WeNet. How many seconds of speech does a second transcribe, one recording at a time and 16 at once, with batches of any
 * length, and how many would ONNX Runtime alone? What part of the processor's time goes to the filter banks? How long do
 * eight speakers wait for their text?
 */

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { gpu } from "@tritonjs/backends/gpu";
import { audio, ctcDecoder } from "@tritonjs/backends/media";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { randomConformer, randomDecoder } from "./support/conformer.mjs";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const RATE = 16_000;
const PIECE = 5120;
/** Rounds of all cases in turn, because other programs may use the machine. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 8);
const ROUND_SECONDS = 1.5;
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

const logger = { error() {}, warn() {}, info() {}, debug() {} };

const names = process.argv.slice(2);
if (names.length === 0 || names.includes("offline")) await measureOffline();
if (names.length === 0 || names.includes("streams")) await measureStreams();

/**
 * The steps of a transcript, bound so that recordings of any length share a batch. Of 16 recordings, 8 are in one step
 * and 8 in another, so that both processors work.
 */
function bindSteps(triton, files) {
  const maxBatchSize = 8;
  const extract = (modelName, isolation) =>
    triton.bind({
      modelName,
      inferFunc: audio({
        features: "fbank",
        input: "samples",
        inputLengthsName: "samples",
        lengths: true,
        outputName: "speech",
      }),
      config: { maxBatchSize, batcher: { pad: { audio: 0 } }, instanceGroup: [{ isolation }] },
    });
  const features = extract("features", "worker");
  // For the time of the filter banks alone, without the way to another thread.
  const here = extract("features_here", "inline");
  const encoder = triton.bind({
    modelName: "encoder",
    inferFunc: onnxruntime({ model: files.encoder, intraOpNumThreads: 1 }),
    config: { maxBatchSize, batcher: { pad: { speech: 0 } }, instanceGroup: [{ count: 2 }] },
  });
  const scoring = triton.bind({
    modelName: "scoring",
    inferFunc: ctcDecoder({ vocabulary: file("models/scoring/1/units.txt"), rescorer: "decoder" }),
    config: {
      maxBatchSize,
      batcher: { pad: { encoder_out: 0, batch_log_probs: 0, batch_log_probs_idx: 0 } },
      instanceGroup: [{ count: 2 }],
    },
  });
  const hear = (samples) => here.infer({ audio: [samples], samples: [[samples.length]] });
  const transcribe = async (samples) => {
    const { speech, lengths } = await features.infer({ audio: [samples], samples: [[samples.length]] });
    const heard = await encoder.infer(
      { speech, speech_lengths: lengths.data },
      { requestedOutputs: ["encoder_out", "encoder_out_lens", "beam_log_probs", "beam_log_probs_idx"] },
    );
    const { OUTPUT0 } = await scoring.infer({
      encoder_out: heard.encoder_out,
      encoder_out_lens: [[heard.encoder_out_lens.data[0]]],
      batch_log_probs: heard.beam_log_probs,
      batch_log_probs_idx: heard.beam_log_probs_idx,
    });
    return text(OUTPUT0);
  };
  return { hear, transcribe, encoder };
}

/** Calls a function with one recording after another, with several calls at a time, for some seconds. */
async function rateOf(call, clients, seconds) {
  const [cpu, started] = [process.cpuUsage(), performance.now()];
  let [done, next] = [0, 0];
  const work = async () => {
    while (performance.now() - started < 1000 * seconds) {
      const recording = recordings[next++ % recordings.length];
      await call(recording.samples);
      done += recording.seconds;
    }
  };
  await Promise.all(Array.from({ length: clients }, work));
  const elapsed = (performance.now() - started) / 1000;
  const used = process.cpuUsage(cpu);
  return { rate: done / elapsed, cpuMs: (used.user + used.system) / 1000 / done };
}

async function measureOffline() {
  const folder = mkdtempSync(join(tmpdir(), "speech-"));
  const random = filesIn(folder, "random", { encoder: randomConformer(), decoder: randomDecoder() });
  const trained = filesIn(folder, "trained", {
    encoder: readFileSync(file("models/encoder/1/encoder.onnx")),
    decoder: readFileSync(file("models/decoder/1/decoder.onnx")),
  });
  const rows = {};
  const figures = {};
  for (const [name, files] of Object.entries({
    "1.5 million weights": trained,
    "50 million weights": random,
  })) {
    const { one, many, bareOne, bareMany, batch, share } = await measureNetwork(files);
    const row = (rate, cpuMs, more = {}) => ({
      "seconds of speech a second": short(rate),
      "CPU ms a second of speech": short(cpuMs),
      "recordings in a batch": "",
      "CPU ms of the filter banks, of the others": "",
      ...more,
    });
    const ofFeatures = `${short(100 * share)} %`;
    rows[`${name}: 1 at a time`] = row(one.rate, one.cpuMs, {
      "CPU ms of the filter banks, of the others": ofFeatures,
    });
    rows[`${name}: 16 at a time`] = row(many.rate, many.cpuMs, { "recordings in a batch": short(batch) });
    rows[`${name}: the networks alone, 1 at a time`] = row(bareOne.rate, bareOne.cpuMs);
    rows[`${name}: the networks alone, two threads with 16`] = row(bareMany.rate, bareMany.cpuMs);
    // One at a time fills one processor, 16 fill both. Other programs disturb this less than rates.
    const gain = (few, all) => short((2 * few.cpuMs) / all.cpuMs);
    figures[name] = [gain(one, many), gain(bareOne, bareMany), short(many.rate / one.rate)];
  }
  rmSync(folder, { recursive: true });
  report("speech", {
    rows,
    figures,
    document: "speech.md",
    note: (ratios) => {
      const gains = Object.entries(ratios).map(
        ([name, [ours, bare, measured]]) =>
          `${name}: by their processor time, 16 at a time on two processors do ${ours} times the work of ` +
          `1 at a time; the networks alone ${bare} times; the rates differ by ${measured}.`,
      );
      return `Rates are those of the best of ${ROUNDS} rounds: other programs ran beside them. ${gains.join(" ")}`;
    },
  });
}

/** Writes networks: the encoder as a file, and the decoder as the model of a repository. */
function filesIn(folder, name, networks) {
  const repository = join(folder, name);
  const encoder = join(folder, `${name}.onnx`);
  const decoder = join(repository, "decoder", "1", "decoder.onnx");
  mkdirSync(join(repository, "decoder", "1"), { recursive: true });
  copyFileSync(file("models/decoder/config.pbtxt"), join(repository, "decoder", "config.pbtxt"));
  writeFileSync(encoder, networks.encoder);
  writeFileSync(decoder, networks.decoder);
  return { repository, encoder, decoder };
}

async function measureNetwork(files) {
  const triton = new Triton({
    logger,
    extensions: [withRepository({ modelRepository: files.repository }), gpu({ fallback: "cpu" })],
  });
  await triton.ready();
  const { hear, transcribe, encoder } = bindSteps(triton, files);
  const features = [];
  for (const { samples } of recordings) {
    await transcribe(samples);
    const { speech } = await hear(samples);
    features.push(speech.data.slice());
  }
  const single = features.map((values, i) => ({ recordings: [values], seconds: recordings[i].seconds }));
  const sixteen = [...features, ...features.slice(0, 4)];
  const secondsOf = (values) => recordings[features.indexOf(values)].seconds;
  const batch = {
    recordings: sixteen,
    seconds: sixteen.reduce((sum, values) => sum + secondsOf(values), 0),
  };
  const bare = [await openBare({ ...files, batches: single })];
  const wide = await Promise.all([0, 1].map(() => openBare({ ...files, batches: [batch] })));
  const found = { one: [], many: [], bareOne: [], bareMany: [], features: [] };
  let [inferences, executions] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    found.one.push(await rateOf(transcribe, 1, ROUND_SECONDS));
    const before = encoder.statistics();
    found.many.push(await rateOf(transcribe, 16, ROUND_SECONDS));
    const after = encoder.statistics();
    inferences += after.inferenceCount - before.inferenceCount;
    executions += after.executionCount - before.executionCount;
    found.bareOne.push(await bareRate(bare));
    found.bareMany.push(await bareRate(wide));
    found.features.push(await rateOf(hear, 1, ROUND_SECONDS / 2));
  }
  await triton.close();
  await Promise.all([...bare, ...wide].map((worker) => worker.terminate()));
  // The best of the rounds is the one that other programs disturbed least.
  const best = (all) => ({
    rate: Math.max(...all.map(({ rate }) => rate)),
    cpuMs: median(all.map(({ cpuMs }) => cpuMs)),
  });
  const [one, many, bareOne, bareMany] = [found.one, found.many, found.bareOne, found.bareMany].map(best);
  const own = best(found.features).cpuMs;
  return { one, many, bareOne, bareMany, batch: inferences / executions, share: own / bareOne.cpuMs };
}

async function openBare(workerData) {
  const worker = new Worker(new URL("./support/bare-sessions.mjs", import.meta.url), { workerData });
  await new Promise((resolve) => worker.once("message", resolve));
  return worker;
}

async function bareRate(workers) {
  const cpu = process.cpuUsage();
  const answers = await Promise.all(
    workers.map(
      (worker) =>
        new Promise((resolve) => {
          worker.once("message", resolve);
          worker.postMessage(1000 * ROUND_SECONDS);
        }),
    ),
  );
  const used = process.cpuUsage(cpu);
  const done = answers.reduce((sum, { seconds }) => sum + seconds, 0);
  return {
    rate: answers.reduce((sum, { seconds, elapsed }) => sum + seconds / elapsed, 0),
    cpuMs: (used.user + used.system) / 1000 / done,
  };
}

async function measureStreams() {
  const repositories = ["models", "steps", "streaming"].map(file);
  const triton = new Triton({
    logger,
    extensions: [withRepository({ modelRepository: repositories }), gpu({ fallback: "cpu" })],
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
