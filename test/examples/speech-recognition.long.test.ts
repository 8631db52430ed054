import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gpu } from "@tritonjs/backends/gpu";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { openai } from "@tritonjs/llm/openai";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleFolder } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { outcomeOf } from "../support/outcome.js";
import { Program } from "../support/program.js";
import {
  hasPython,
  patientPython,
  patientPythonOption,
  pythonProgram,
  withoutPython,
} from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

const folder = exampleFolder("speech-recognition");
const repositories = ["models", "steps", "streaming"].map((name) => join(folder, name));

/** Hashes of the tutorial's configurations. */
const CONFIGURATIONS = {
  attention_rescoring: "d33634b74be8ff45d0171d6d0c4da1620372207d8462374827a91a929d119228",
  decoder: "bdceb8c3a05cbd3b0b7499567b9eaa979bcd1ee2657f4713daf5f45c25e5b695",
  encoder: "089e1351e7c53ff0fa67f844c43724e972a7258cef162840560678709d00e6e1",
  feature_extractor: "6e9b53531d7da855ba09ef24145eb7df18f0f6659dfc36409c657f0986e0431f",
  scoring: "20581d3951a159f2ef44826ecacedcc562895821e592a6774d0aebb2306d208f",
};

interface Recording {
  readonly name: string;
  readonly text: string;
  readonly samples: Float32Array;
}

const recordings: readonly Recording[] = (
  JSON.parse(readFileSync(join(folder, "recordings/recordings.json"), "utf8")) as Omit<Recording, "samples">[]
).map((one) => {
  const data = readFileSync(join(folder, "recordings", one.name)).subarray(44);
  const samples = Float32Array.from({ length: data.length / 2 }, (_, i) => data.readInt16LE(2 * i) / 2 ** 15);
  return { ...one, samples };
});

/** Samples of 320 ms. */
const PIECE = 5120;

/** A signal in pieces, each with its place in the sequence. */
function* piecesOf(samples: Float32Array, id: string, size = PIECE) {
  for (let at = 0; at === 0 || at < samples.length; at += size) {
    const sequence = { id, start: at === 0, end: at + size >= samples.length };
    yield { piece: samples.slice(at, at + size), sequence };
  }
}

describe.skipIf(!hasPython)(`the example speech-recognition${withoutPython}`, () => {
  let triton: Triton;
  let http1: HttpClient;
  let streams: GrpcClient;
  let client: OpenAI;
  let httpUrl: string;
  let grpcUrl: string;
  beforeAll(async () => {
    triton = new Triton({
      extensions: [
        withRepository({ modelRepository: repositories, backendConfig: patientPython }),
        gpu({ fallback: "cpu" }),
      ],
    });
    await triton.ready();
    const { addresses } = await triton.serve({
      frontends: [http({ port: 0 }), grpc({ port: 0 }), openai({ port: 0 })],
    });
    client = new OpenAI({ baseURL: `${addresses.openai!.url}/v1`, apiKey: "none", maxRetries: 0 });
    httpUrl = addresses.http!.url;
    http1 = new HttpClient(httpUrl);
    grpcUrl = addresses.grpc!.url;
    streams = new GrpcClient(grpcUrl);
  });
  afterAll(async () => {
    http1?.close();
    streams?.close();
    await triton?.close();
  });

  const decoder = new TextDecoder();
  const textOf = (output: { readonly data: ArrayLike<unknown> } | undefined) =>
    decoder.decode(output!.data[0] as Uint8Array);

  async function transcript(model: string, samples: Float32Array, count = samples.length): Promise<string> {
    return textOf((await triton.infer(model, { WAV: [samples], WAV_LENS: [[count]] })).TRANSCRIPTS);
  }

  /** The text after each piece of a signal. */
  async function live(samples: Float32Array, id: string, size = PIECE): Promise<string[]> {
    const texts: string[] = [];
    for (const { piece, sequence } of piecesOf(samples, id, size)) {
      texts.push(textOf((await triton.infer("live_transcript", { WAV: [piece] }, { sequence })).TRANSCRIPT));
    }
    return texts;
  }

  /** Share of the expected words that are wrong, missing or too many. */
  function errorRate(pairs: readonly (readonly [string, string])[]): number {
    let [words, errors] = [0, 0];
    for (const [expected, got] of pairs) {
      const [one, other] = [expected.split(" "), got.split(" ")];
      let costs = Array.from({ length: other.length + 1 }, (_, i) => i);
      for (const [i, word] of one.entries()) {
        const next = [i + 1];
        for (const [j, candidate] of other.entries()) {
          next.push(Math.min(costs[j]! + Number(word !== candidate), costs[j + 1]! + 1, next[j]! + 1));
        }
        costs = next;
      }
      words += one.length;
      errors += costs.at(-1)!;
    }
    return errors / words;
  }

  describe("the tutorial's five models", () => {
    it("have the tutorial's configurations, byte for byte", () => {
      for (const [name, hash] of Object.entries(CONFIGURATIONS)) {
        const bytes = readFileSync(join(folder, "models", name, "config.pbtxt"));
        expect(createHash("sha256").update(bytes).digest("hex"), name).toBe(hash);
      }
    });

    it("transcribe sentences and voices that the network never heard, with at most 5% wrong words", async () => {
      const pairs = await Promise.all(
        recordings.map(
          async ({ text, samples }) => [text, await transcript("attention_rescoring", samples)] as const,
        ),
      );
      expect(errorRate(pairs), JSON.stringify(pairs)).toBeLessThanOrEqual(0.05);
    });

    it("give the same text over HTTP, over gRPC and in process", async () => {
      const { samples } = recordings[0]!;
      const inputs = {
        WAV: { datatype: "FP32", shape: [1, samples.length], data: samples },
        WAV_LENS: { datatype: "INT32", shape: [1, 1], data: [samples.length] },
      } as const;
      const texts = await Promise.all([
        transcript("attention_rescoring", samples),
        ...[http1, streams].map(async (client) => {
          const result = await client.infer("attention_rescoring", { inputs });
          return decoder.decode(result.elements("TRANSCRIPTS", "BYTES")[0]);
        }),
      ]);
      expect(new Set(texts).size).toBe(1);
    });

    it("answer the client in Python, from a server on the command line", async () => {
      const command = join(repositoryRoot, "packages/cli/dist/main.js");
      const addresses = ["--http-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--metrics-port=0"];
      const models = repositories.map((path) => `--model-repository=${path}`);
      const server = Program.node(
        command,
        ["serve", ...models, ...addresses, "--gpu-fallback=cpu", patientPythonOption],
        repositoryRoot,
      );
      const text = await server.untilOutput("Started Metrics Service", "stderr");
      const [, url] = /Started HTTPService at ([\d.]+:\d+)/.exec(text)!;
      const client = await promisify(execFile)(pythonProgram, [
        join(folder, "client.py"),
        join(folder, "recordings", recordings[1]!.name),
        url!,
      ]);
      expect(client.stdout.trim()).toBe(await transcript("attention_rescoring", recordings[1]!.samples));
      server.signal("SIGTERM");
      expect((await server.ended).code).toBe(0);
    });

    it("have the same answers without Python", async () => {
      for (const { samples } of recordings) {
        expect(await transcript("transcribe", samples)).toBe(
          await transcript("attention_rescoring", samples),
        );
      }
    });

    it("have the same features without Python, to the rounding of FP32", async () => {
      const { samples } = recordings[2]!;
      const rows = { wav: [samples, samples], wav_lens: [[samples.length], [20_000]] };
      const [python, own] = await Promise.all(
        ["feature_extractor", "fbank"].map((name) => triton.infer(name, rows)),
      );
      expect(own!.speech_lengths!.data).toEqual(python!.speech_lengths!.data);
      expect(own!.speech!.shape).toEqual(python!.speech!.shape);
      const wanted = python!.speech!.data as Float32Array;
      const largest = (own!.speech!.data as Float32Array).reduce(
        (most, value, i) => Math.max(most, Math.abs(value - wanted[i]!)),
        0,
      );
      // Of the size of the rounding of FP32 at values up to 25.
      expect(largest).toBeLessThan(8e-6);
    });
  });

  describe.each([
    [
      "attention_rescoring",
      (seconds: number) =>
        ` of model 'feature_extractor': expected at most 1920000 elements, got ${seconds * 16_000} in shape [1,${seconds * 16_000}]`,
    ],
    ["transcribe", (seconds: number) => `: expected at most 120 seconds of audio, got ${seconds.toFixed(1)}`],
  ] as const)("bad input of %s", (model, tooLong) => {
    const signal = recordings[0]!.samples;
    const ask = (samples: Float32Array, count = samples.length) =>
      outcomeOf(transcript(model, samples, count));

    it("has no text if it has no frame, or only silence", async () => {
      for (const samples of [0, 1, 399, 16_000, 80_000]) {
        expect(await transcript(model, new Float32Array(samples)), `${samples} samples`).toBe("");
      }
    });

    it("is refused by name while others are answered", async () => {
      const bad = signal.slice();
      bad[100] = Number.NaN;
      const good = transcript(model, signal);
      const [nan, infinite, beyond, negative, long] = await Promise.all([
        ask(bad),
        ask(signal.map((sample, i) => (i === 7 ? Number.NEGATIVE_INFINITY : sample))),
        ask(signal, signal.length + 1),
        ask(signal, -1),
        ask(new Float32Array(16_000 * 121)),
      ]);
      const place = `in ensemble '${model}', `;
      expect(nan).toBe(`INVALID_ARG ${place}input 'wav': expected finite samples, got NaN at 100`);
      expect(infinite).toBe(`INVALID_ARG ${place}input 'wav': expected finite samples, got -Infinity at 7`);
      const range = `INVALID_ARG ${place}input 'wav_lens': expected 0 to ${signal.length} samples, as input 'wav' has, got`;
      expect(beyond).toBe(`${range} ${signal.length + 1}`);
      expect(negative).toBe(`${range} -1`);
      expect(long).toBe(`INVALID_ARG ${place}input 'wav'${tooLong(121)}`);
      expect((await good).length).toBeGreaterThan(5);
    });

    it("of ten hours is refused before anything is allocated", async () => {
      const long = new Float32Array(16_000 * 36_000);
      const { arrayBuffers } = process.memoryUsage();
      const call = ask(long);
      expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 20);
      expect(await call).toBe(`INVALID_ARG in ensemble '${model}', input 'wav'${tooLong(36_000)}`);
    });

    it("is refused if it has two channels", async () => {
      const stereo = [[[...signal.subarray(0, 500)], [...signal.subarray(0, 500)]]];
      expect(await outcomeOf(triton.infer(model, { WAV: stereo, WAV_LENS: [[500]] }))).toMatch(
        /^INVALID_ARG .*input 'WAV'.*shape/,
      );
    });
  });

  describe("streams", () => {
    it("of sentences and voices that the network never heard have at most 5% wrong words", async () => {
      const pairs = await Promise.all(
        recordings.map(async ({ text, samples, name }) => {
          const texts = await live(samples, `errors in ${name}`);
          return [text, texts.at(-1)!] as const;
        }),
      );
      expect(errorRate(pairs), JSON.stringify(pairs)).toBeLessThanOrEqual(0.05);
    });

    it("have partial texts, and at the end the text of the whole signal", async () => {
      for (const { samples, name } of recordings.slice(0, 2)) {
        const texts = await live(samples, name);
        expect(texts.length).toBe(Math.ceil(samples.length / PIECE));
        expect(new Set(texts).size).toBeGreaterThan(2);
        // Without a rescorer, as the stream has none; in pieces of any size.
        const whole = await live(samples, `${name} whole`, samples.length);
        expect(texts.at(-1)).toBe(whole[0]);
        expect((await live(samples, `${name} small`, 700)).at(-1)).toBe(whole[0]);
      }
    });

    it("have the same texts over gRPC, generate_stream and in process", async () => {
      const { samples } = recordings[1]!;
      const expected = await live(samples, "in process");
      const requests = function* () {
        for (const { piece, sequence } of piecesOf(samples, "grpc")) {
          const WAV = { datatype: "FP32", shape: [1, piece.length], data: piece } as const;
          yield { modelName: "live_transcript", inputs: { WAV }, sequence };
        }
      };
      const heard: string[] = [];
      for await (const { result, error } of streams.streamInfer(requests())) {
        if (error !== undefined) throw error;
        heard.push(decoder.decode(result.elements("TRANSCRIPT", "BYTES")[0]));
      }
      expect(heard).toEqual(expected);
      const changes = expected.filter(
        (text, i) => text !== (expected[i - 1] ?? "") || i === expected.length - 1,
      );
      const response = await fetch(`${httpUrl}/v2/models/dictation/generate_stream`, {
        method: "POST",
        body: JSON.stringify({ WAV: [...samples] }),
      });
      const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
      expect(lines.map((line) => JSON.parse(line.slice(6)).TRANSCRIPT)).toEqual(changes);
    });

    it("of too long a piece or signal are refused", async () => {
      const WAV = [new Float32Array(16_000 * 601)];
      expect(
        await outcomeOf(triton.infer("live_transcript", { WAV }, { sequence: { id: "long", start: true } })),
      ).toBe(
        "INVALID_ARG in ensemble 'live_transcript', input 'wav': expected at most 600 seconds of audio, got 601.0",
      );
      const response = await fetch(`${httpUrl}/v2/models/dictation/generate_stream`, {
        method: "POST",
        body: JSON.stringify({ WAV: new Array(16_000 * 121).fill(0) }),
      });
      expect(await response.text()).toContain(
        "input 'WAV': expected at most 120 seconds of audio, got 121.0",
      );
    });

    it("of 60 speakers at once do not mix; those that leave in the middle disturb nobody", async () => {
      const speakers = Array.from({ length: 60 }, (_, i) => ({ i, samples: recordings[i % 3]!.samples }));
      const expected = await Promise.all(
        recordings.slice(0, 3).map(({ samples, name }) => live(samples, name)),
      );
      const outcomes = await Promise.all(
        speakers.map(async ({ i, samples }) => {
          const texts: string[] = [];
          for (const { piece, sequence } of piecesOf(samples, `speaker ${i}`)) {
            // Every second one leaves after three pieces, without an end.
            if (i % 2 === 1 && texts.length === 3) break;
            texts.push(
              textOf((await triton.infer("live_transcript", { WAV: [piece] }, { sequence })).TRANSCRIPT),
            );
          }
          return texts;
        }),
      );
      for (const { i } of speakers) {
        const wanted = expected[i % 3]!;
        expect(outcomes[i]).toEqual(i % 2 === 1 ? wanted.slice(0, 3) : wanted);
      }
    });

    it("go on after a pause shorter than the longest idle time, and are over after a longer one", async () => {
      const clock = new VirtualClock();
      const repository = join(folder, "streaming");
      await using server = new Triton({
        clock,
        extensions: [withRepository({ modelRepository: repository }), gpu({ fallback: "cpu" })],
      });
      // Deferred calls wait for the clock to settle.
      const played = async <T>(call: Promise<T>): Promise<T> => {
        let isOver = false;
        const over = () => {
          isOver = true;
        };
        call.then(over, over);
        while (!isOver) await clock.settle();
        return call;
      };
      await played(server.ready());
      const { samples } = recordings[0]!;
      const expected = await live(samples, "without a pause");
      const speakers = ["steady", "pausing", "late"].map((id) => ({
        id,
        pieces: [...piecesOf(samples, id)],
      }));
      const [steady, pausing, late] = speakers as [Speaker, Speaker, Speaker];
      type Speaker = (typeof speakers)[number];
      const ask = async ({ id, pieces }: Speaker, at: number) => {
        const { piece, sequence } = pieces[at]!;
        const call = server.infer("live_transcript", { WAV: [piece] }, { sequence });
        expect(textOf((await played(call)).TRANSCRIPT), `${id}, piece ${at}`).toBe(expected[at]);
      };
      for (const speaker of speakers) for (const at of [0, 1, 2]) await ask(speaker, at);
      // The three models end sequences that have been idle for 30 seconds.
      await clock.advance(15_000);
      await ask(steady, 3);
      await clock.advance(14_000);
      await ask(pausing, 3);
      await ask(steady, 4);
      await clock.advance(2000);
      const { piece, sequence } = late.pieces[3]!;
      const tooLate = server.infer("live_transcript", { WAV: [piece] }, { sequence });
      expect(await played(outcomeOf(tooLate))).toBe(
        "INVALID_ARG in ensemble 'live_transcript', inference request for sequence late to model 'stream_features' must " +
          "specify the START flag on the first request of the sequence",
      );
      for (let at = 4; at < expected.length; at++) await ask(pausing, at);
      for (let at = 5; at < expected.length; at++) await ask(steady, at);
      // The one that was too late begins again.
      for (let at = 0; at < expected.length; at++) await ask(late, at);
    });

    it("that are cut off in the middle disturb nobody, and their id may be used again", async () => {
      const { samples } = recordings[1]!;
      const expected = await live(samples, "whole");
      const cut = new GrpcClient(grpcUrl);
      const sent = [...piecesOf(samples, "cut")].slice(0, 3);
      const controller = new AbortController();
      const requests = async function* () {
        for (const { piece, sequence } of sent) {
          const WAV = { datatype: "FP32", shape: [1, piece.length], data: piece } as const;
          yield { modelName: "live_transcript", inputs: { WAV }, sequence };
        }
        // The stream stays open until it is cut.
        await once(controller.signal, "abort");
      };
      const other = live(samples, "beside it");
      const heard: string[] = [];
      const stream = cut.streamInfer(requests(), { signal: controller.signal });
      await outcomeOf(
        (async () => {
          for await (const { result } of stream) {
            heard.push(decoder.decode(result!.elements("TRANSCRIPT", "BYTES")[0]));
            if (heard.length === sent.length) controller.abort();
          }
        })(),
      );
      cut.close();
      expect(heard).toEqual(expected.slice(0, 3));
      expect(await other).toEqual(expected);
      expect(await live(samples, "cut")).toEqual(expected);
    });

    it("need a start, and may begin again with another one", async () => {
      const { samples } = recordings[0]!;
      const [first] = piecesOf(samples, "late");
      const WAV = [first!.piece];
      expect(await outcomeOf(triton.infer("live_transcript", { WAV }, { sequence: { id: "late" } }))).toMatch(
        /^INVALID_ARG .*sequence/,
      );
      await triton.infer("live_transcript", { WAV }, { sequence: { id: "late", start: true } });
      expect(await live(samples, "late")).toEqual(await live(samples, "other"));
      expect(
        await outcomeOf(triton.infer("live_transcript", { WAV }, { sequence: { id: "late", end: true } })),
      ).toMatch(/^INVALID_ARG .*sequence/);
    });
  });

  describe("OpenAI's transcriptions", () => {
    const { name, samples } = recordings[0]!;
    const file = () => toFile(readFileSync(join(folder, "recordings", name)), name);

    it("have the text of a file, subtitles, and the times of segments and words", async () => {
      const text = await transcript("transcribe", samples);
      const audio = await file();
      const create = (more: object) =>
        client.audio.transcriptions.create({ file: audio, model: "transcribe_file", ...more });
      expect((await create({})).text).toBe(text);
      expect(await create({ response_format: "text" })).toBe(`${text}\n`);
      expect(await create({ response_format: "srt" })).toMatch(
        /^1\n00:00:00,\d{3} --> 00:00:0\d,\d{3}\nadd twenty/,
      );
      const verbose = (await create({
        response_format: "verbose_json",
        timestamp_granularities: ["word", "segment"],
      })) as unknown as {
        duration: number;
        segments: { text: string }[];
        words: { word: string; end: number }[];
      };
      expect(verbose.duration).toBeCloseTo(samples.length / 16_000, 2);
      expect(verbose.segments.map((segment) => segment.text).join(" ")).toBe(text);
      expect(verbose.words.map(({ word }) => word).join(" ")).toBe(text);
      expect(verbose.words.at(-1)!.end).toBeLessThan(verbose.duration + 0.2);
    });

    it("stream what is heard, piece by piece", async () => {
      const events = [];
      for await (const event of await client.audio.transcriptions.create({
        file: await file(),
        model: "dictation",
        stream: true,
      })) {
        events.push(event);
      }
      const last = events.at(-1);
      expect(last).toEqual({
        type: "transcript.text.done",
        text: (await live(samples, "to compare")).at(-1),
      });
      expect(events.filter(({ type }) => type === "transcript.text.delta").length).toBeGreaterThan(2);
    });
  });

  describe("files of scoring", () => {
    const scoring = join(folder, "models/scoring");

    /** The reason why `scoring` with other files is not loaded, or its answer to a request. */
    async function scoringWith(
      files: Readonly<Record<string, string>>,
      parameters: Readonly<Record<string, string>> = {},
    ): Promise<string> {
      const read = (name: string) => readFileSync(join(scoring, name), "utf8");
      await using repository = await RepositoryOnDisk.create({
        "scoring/config.pbtxt": Object.entries(parameters).reduce(
          (text, [name, value]) =>
            text.replace(new RegExp(`(${name}",?\\n\\s+value ?: \\{ string_value: )"None"`), `$1"${value}"`),
          read("config.pbtxt"),
        ),
        ...Object.fromEntries(
          ["model.py", "ctc.py", "units.txt"].map((name) => [
            `scoring/1/${name}`,
            files[name] ?? read(`1/${name}`),
          ]),
        ),
      });
      await using server = new Triton({
        extensions: [withRepository({ modelRepository: repository.path, exitOnError: false })],
      });
      await server.ready().catch(() => {});
      const [row] = await serviceOf(server).repositoryIndex(false);
      if (row!.state !== "READY") return row!.reason ?? "";
      const inputs = {
        encoder_out: [[new Array(256).fill(0)]],
        encoder_out_lens: [[1]],
        batch_log_probs: [[new Array(10).fill(-2.3)]],
        batch_log_probs_idx: [[[200, 1, 2, 3, 4, 5, 6, 7, 8, 9]]],
      };
      return outcomeOf(server.infer("scoring", inputs));
    }

    it("are refused by the line, and a vocabulary of another size by the unit that it lacks", async () => {
      const path = join(folder, "recordings/recordings.json");
      expect(await scoringWith({}, { hotwords_path: path })).toContain(
        `${path}, line 1: expected 'word: bonus', got '['`,
      );
      expect(await scoringWith({}, { lm_path: path })).toContain(
        `${path}: expected a line '\\data\\', got none`,
      );
      expect(await scoringWith({ "units.txt": "<blank> 0\na b c\n" })).toContain(
        "line 2: expected a unit and a new id, got 'a b c'",
      );
      expect(await scoringWith({ "units.txt": "<blank> 0\n▁a 1\n<sos/eos> 2\n" })).toBe(
        "INVALID_ARG input 'batch_log_probs_idx': expected units of the vocabulary, 0 to 2, got 200",
      );
    });
  });

  it("the example prints what its README promises", async () => {
    await expectPromisedOutput("speech-recognition");
  });
});
