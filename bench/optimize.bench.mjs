/*
 * Does `tritonjs optimize` choose the form that an exhaustive run finds best? For each of four networks, the command
 * chooses with its defaults. Then every form that is within the limits is served at each number of threads, ONNX
 * Runtime's own form of each included, and measured with requests of each size and each number in flight.
 *
 * The machine's speed changes during a run, so all loads have short turns, and the best of all is found and judged by
 * different rounds: the best of many by the rounds that also judge it would be too good by their noise. Rates are those
 * of processor time, so that other programs on the machine count little; BENCH_CLOCK=wall takes those of the clock.
 *
 *   npm run bench -- optimize
 *   BENCH_MODELS=mlp,stories BENCH_ROUNDS=8 npm run bench -- optimize
 *   BENCH_FORMS=dynamic-int8,int4-weights BENCH_INTERVAL_MS=100 BENCH_ROUNDS=4 npm run bench -- optimize
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  ModelRunner,
  makeVariant,
  OnnxModel,
  prepareModel,
  saveOptimizedForm,
  VARIANTS,
  writeVariant,
} from "@tritonjs/backends/optimize";
import { Triton } from "@tritonjs/core";
import { optimize } from "@tritonjs/perf";
import { Tensor } from "@tritonjs/protocol";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { onnxModels } from "./support/onnx-models.mjs";
import { short } from "./support/pairs.mjs";
import { machineNote, saveResult } from "./support/report.mjs";

const ndarray = createRequire(new URL("../packages/core/package.json", import.meta.url))("ndarray");
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 12);
const BY_CLOCK = process.env.BENCH_CLOCK === "wall";
const FORMS = process.env.BENCH_FORMS?.split(",");
const TURN_MS = Number(process.env.BENCH_TURN_MS ?? 60);
/** Loads that have further rounds, which judge the choice. */
const LEADERS = 3;
const THREADS = [1, 2];
const IN_FLIGHT = [1, 4];

const folder = mkdtempSync(join(tmpdir(), "optimize-bench-"));
const example = (path) => fileURLToPath(new URL(`../examples/${path}`, import.meta.url));

/** The networks, with what their samples need. */
const MODELS = {
  mlp: { file: writeMlp, batchSizes: [1, 8] },
  decoder: {
    file: () => example("speech-recognition/models/decoder/1/decoder.onnx"),
    batchSizes: [1, 8],
    options: { shapes: { encoder_out: [80, 256], hyps_pad_sos_eos: [10, 18] } },
  },
  encoder: {
    file: () => example("speech-recognition/models/encoder/1/encoder.onnx"),
    batchSizes: [1, 4],
    options: { shapes: { speech: [200, 80] } },
  },
  stories: { file: () => example("text-generation/models/stories/1/model.onnx"), batchSizes: [1, 8] },
};

function writeMlp() {
  const path = join(folder, "mlp.onnx");
  writeFileSync(path, onnxModels.smallMlp().bytes);
  return path;
}

/** What a load is, in words. */
function textOf({ form, threads, rows: count, inFlight }) {
  return `${form}, ${threads} threads, ${count} rows, ${inFlight} in flight`;
}

/**
 * The rate of every other round: the one that a fifth of them exceed. Other programs on the machine make rounds slower,
 * and never faster.
 */
function rateOf({ rates }, odd) {
  const some = rates.filter((_, round) => round % 2 === odd).toSorted((a, b) => b - a);
  return some[Math.floor(some.length / 5)];
}

const leadersOf = (loads) => loads.toSorted((a, b) => rateOf(b, 0) - rateOf(a, 0)).slice(0, LEADERS);

const rows = {};
try {
  for (const name of process.env.BENCH_MODELS?.split(",") ?? Object.keys(MODELS)) {
    rows[name] = await compare(name, MODELS[name]);
    console.log(name, rows[name]);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.table(rows);
console.log(machineNote());
saveResult("optimize", { rounds: ROUNDS, turnMs: TURN_MS, clock: BY_CLOCK ? "wall" : "processor", rows });
const missed = Object.entries(rows).filter(([, row]) => row["chosen / best"] < 0.95);
if (missed.length > 0) {
  console.error(`missed the goal of 0.95: ${missed.map(([name]) => name)}`);
  process.exitCode = 1;
}

async function compare(name, { file, batchSizes, options = {} }) {
  const model = file();
  const exportPath = join(folder, `${name}-results`);
  const onProgress = (text) => console.log(`${name}: ${text}`);
  const {
    choice,
    variants,
    folder: served,
  } = await optimize({
    model,
    count: 8,
    batchSizes,
    exportPath,
    onProgress,
    ...(FORMS && { variants: FORMS }),
    intervalMs: Number(process.env.BENCH_INTERVAL_MS ?? 500),
    ...options,
  });
  for (const { name: form, fault } of variants) if (fault !== undefined) console.log(`${form}: ${fault}`);
  const { data } = JSON.parse(readFileSync(join(served, "samples.json"), "utf8"));
  const repository = await writeForms(name, model, variants, { data, batchSizes });
  const logger = { error: console.error, warn() {}, info() {}, debug() {} };
  const triton = new Triton({ logger, extensions: [withRepository({ modelRepository: repository })] });
  try {
    await triton.ready();
    const loads = loadsOf(triton, repository, data, batchSizes);
    await measure(triton, loads, 2);
    await measure(triton, loads, ROUNDS);
    const ofForm = loads.filter(({ form }) => form === choice.variant.name);
    const ofOriginal = loads.filter(({ form }) => form === "original");
    const judged = [...new Set([loads, ofForm, ofOriginal].flatMap(leadersOf))];
    for (const load of judged) load.rates = [];
    await measure(triton, judged, 4 * ROUNDS);
    // Odd rounds find the best of all and the best of the chosen form, even rounds compare the two.
    const best = (some) => some.reduce((a, b) => (rateOf(b, 1) > rateOf(a, 1) ? b : a));
    const bestOf = (some) => best(judged.filter((load) => some.includes(load)));
    const [own, original, first] = [bestOf(ofForm), bestOf(ofOriginal), best(judged)];
    return {
      chosen: textOf(own),
      "best of all": textOf(first),
      loads: loads.length,
      "rows/s, chosen": short(rateOf(own, 0)),
      "rows/s, best": short(rateOf(first, 0)),
      "chosen / best": short(rateOf(own, 0) / rateOf(first, 0)),
      "chosen / original": short(rateOf(own, 0) / rateOf(original, 0)),
    };
  } finally {
    await triton.close();
  }
}

/** A repository with each form that has no fault, at each number of threads. */
async function writeForms(name, model, variants, { data, batchSizes }) {
  const repository = join(folder, `${name}-forms`);
  const prepared = await prepareModel(await OnnxModel.read(model));
  const runner = await ModelRunner.open(model);
  const tensorOf = ({ name: input, dtype, shape }, sample) => {
    // A tensor that is nothing but its rows has the shape [1] in the samples.
    const dims = [1, ...sample[input].shape].slice(0, shape.length);
    return Tensor.fromBytes(dtype, dims, Buffer.from(sample[input].b64, "base64"));
  };
  const samples = data.map(
    (sample) => new Map(runner.inputs.map((input) => [input.name, tensorOf(input, sample)])),
  );
  for (const { name: form, kept, fault } of variants) {
    if (fault !== undefined) continue;
    const path = join(folder, `${name}-${form}.onnx`);
    const base = VARIANTS.find((one) => form === one || form === `${one}-mixed`);
    const made = base && (await makeVariant(base, prepared, { keep: kept, samples }));
    await writeVariant(made?.model ?? (await OnnxModel.read(model)), path);
    const own = join(folder, `${name}-${form}-ort.onnx`);
    await saveOptimizedForm(path, own);
    for (const threads of THREADS) {
      writeServed(repository, `${form}@${threads}`, path, Math.max(...batchSizes), threads);
      writeServed(repository, `${form}-ort@${threads}`, own, Math.max(...batchSizes), threads);
    }
  }
  return repository;
}

function writeServed(repository, name, file, rows, threads) {
  mkdirSync(join(repository, name, "1"), { recursive: true });
  writeFileSync(join(repository, name, "1", "model.onnx"), readFileSync(file));
  const parameter = `parameters { key: "intra_op_thread_count" value { string_value: "${threads}" } }`;
  const text = `backend: "onnxruntime" max_batch_size: ${rows} dynamic_batching { } ${parameter}`;
  writeFileSync(join(repository, name, "config.pbtxt"), text);
}

/** Every model of the repository under each load. */
function loadsOf(triton, repository, data, batchSizes) {
  const names = readdirSync(repository);
  return names.flatMap((name) =>
    batchSizes.flatMap((count) => {
      const inputs = inputsOf(triton, name, data, count);
      const [form, threads] = name.split("@");
      return IN_FLIGHT.map((inFlight) => ({ name, form, threads, rows: count, inFlight, inputs, rates: [] }));
    }),
  );
}

/** The first samples as one request. */
function inputsOf(triton, name, data, count) {
  return Object.fromEntries(
    serviceOf(triton)
      .modelMetadata(name, "")
      .inputs.map(({ name: input, datatype }) => {
        const dims = [count, ...data[0][input].shape];
        const bytes = Array.from({ length: count }, (_, i) =>
          Buffer.from(data[i % data.length][input].b64, "base64"),
        );
        const joined = Uint8Array.from(Buffer.concat(bytes)).buffer;
        const array = { FP32: Float32Array, INT64: BigInt64Array, INT32: Int32Array }[datatype];
        return [input, ndarray(new array(joined), dims)];
      }),
  );
}

/** Adds the rows a second of processor time of each load in each round, two rounds forwards and two backwards. */
async function measure(triton, loads, rounds) {
  for (let round = 0; round < rounds; round++) {
    for (const load of round & 2 ? loads.toReversed() : loads) load.rates.push(await turn(triton, load));
  }
}

async function turn(triton, { name, rows: count, inFlight, inputs }) {
  const time = () => (BY_CLOCK ? performance.now() : cpuMs());
  const begin = performance.now();
  const warm = begin + TURN_MS / 4;
  const end = begin + (5 * TURN_MS) / 4;
  let [last, answered, from, isWarm] = [begin, 0, 0, false];
  const client = async () => {
    while (last < end || answered === 0) {
      await triton.infer(name, inputs);
      last = performance.now();
      if (isWarm) answered += count;
      else if (last >= warm) [from, isWarm] = [time(), true];
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return (1000 * answered) / (time() - from);
}

/** Processor time of all threads of this process, in milliseconds. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
