/*
 * Word error rates on the test set that training/corpus.py speaks: `npm run errors -- FOLDER [SENTENCES]`. Signals with
 * noise have a tenth of the signal's power in noise.
 */
import { readFile } from "node:fs/promises";
import { openSpeech, PIECE, textOf } from "./speech-server.js";
import { WordErrors } from "./word-errors.js";

const [folder, count = "500"] = process.argv.slice(2);
if (folder === undefined) throw new Error("expected the folder that corpus.py wrote, got none");
const rows = JSON.parse(await readFile(`${folder}/test.json`, "utf8")) as {
  readonly text: string;
  readonly at: number;
  readonly samples: number;
}[];
const pcm = await readFile(`${folder}/test.pcm`);
const all = rows.slice(0, Number(count)).map(({ text, at, samples }) => ({
  text,
  samples: Float32Array.from({ length: samples }, (_, i) => pcm.readInt16LE(2 * (at + i)) / 2 ** 15),
}));

let seed = 38;
/** Random numbers from -0.5 to 0.5, the same in each run. */
function random(): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32 - 0.5;
}

function withNoise(samples: Float32Array): Float32Array {
  const power = samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length;
  // Uniform numbers from -0.5 to 0.5 have a power of 1/12.
  const scale = Math.sqrt((power / 10) * 12);
  return samples.map((sample) => sample + scale * random());
}

await using triton = await openSpeech();

async function whole(modelName: string, samples: Float32Array): Promise<string> {
  const outputs = await triton.infer(modelName, { WAV: [samples], WAV_LENS: [[samples.length]] });
  return textOf(outputs.TRANSCRIPTS);
}

async function live(samples: Float32Array, id: number): Promise<string> {
  let text = "";
  for (let at = 0; at === 0 || at < samples.length; at += PIECE) {
    const sequence = { id, start: at === 0, end: at + PIECE >= samples.length };
    text = textOf(
      (await triton.infer("live_transcript", { WAV: [samples.slice(at, at + PIECE)] }, { sequence }))
        .TRANSCRIPT,
    );
  }
  return text;
}

/** Transcribes all sentences, eight at a time. */
async function measure(
  title: string,
  transcribe: (samples: Float32Array, id: number) => Promise<string>,
): Promise<void> {
  const errors = new WordErrors();
  const left = all.entries();
  const worker = async () => {
    for (const [i, { text, samples }] of left) errors.add(text, await transcribe(samples, i + 1));
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  console.log(`${title}: ${errors.percent} % of ${errors.words} words`);
}

await measure("attention_rescoring", (samples) => whole("attention_rescoring", samples));
await measure("transcribe", (samples) => whole("transcribe", samples));
await measure("live_transcript", live);
await measure("transcribe, noise 10 dB below", (samples) => whole("transcribe", withNoise(samples)));
