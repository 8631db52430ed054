/*
 * A worker that runs an encoder and a decoder of speech with ONNX Runtime alone, one thread each: it answers each
 * message with the seconds of speech that it got through in the given time, and with its time.
 */
import { parentPort, workerData } from "node:worker_threads";
import * as ort from "onnxruntime-node";

const BEAM = 10;
const BINS = 80;
/** Units of a text in a second, about those of speech. */
const UNITS = 5;
const open = (file) => ort.InferenceSession.create(file, { intraOpNumThreads: 1 });
const encoder = await open(workerData.encoder);
const decoder = await open(workerData.decoder);
const batches = workerData.batches.map(({ recordings, seconds }) => {
  const rows = recordings.length;
  const frames = Math.max(...recordings.map(({ length }) => length / BINS));
  const speech = new Float32Array(rows * frames * BINS);
  for (const [row, values] of recordings.entries()) speech.set(values, row * frames * BINS);
  const lengths = Int32Array.from(recordings, ({ length }) => length / BINS);
  const units = 2 + Math.round((UNITS * frames) / 100);
  return {
    seconds,
    heard: {
      speech: new ort.Tensor("float32", speech, [rows, frames, BINS]),
      speech_lengths: new ort.Tensor("int32", lengths, [rows]),
    },
    texts: {
      hyps_pad_sos_eos: new ort.Tensor("int64", new BigInt64Array(rows * BEAM * units).fill(2n), [
        rows,
        BEAM,
        units,
      ]),
      hyps_lens_sos: new ort.Tensor("int32", new Int32Array(rows * BEAM).fill(units - 1), [rows, BEAM]),
      ctc_score: new ort.Tensor("float32", new Float32Array(rows * BEAM), [rows, BEAM]),
    },
  };
});

async function run({ heard, texts }) {
  const names = ["encoder_out", "encoder_out_lens", "beam_log_probs", "beam_log_probs_idx"];
  const { encoder_out, encoder_out_lens } = await encoder.run(heard, names);
  await decoder.run({ encoder_out, encoder_out_lens, ...texts });
}

for (const batch of batches.slice(0, 1)) await run(batch);
parentPort.postMessage("ready");
parentPort.on("message", async (ms) => {
  const started = performance.now();
  let seconds = 0;
  for (let i = 0; performance.now() - started < ms; i++) {
    const batch = batches[i % batches.length];
    await run(batch);
    seconds += batch.seconds;
  }
  parentPort.postMessage({ seconds, elapsed: (performance.now() - started) / 1000 });
});
