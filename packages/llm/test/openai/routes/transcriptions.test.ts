import { readFileSync } from "node:fs";
import { batch, sample } from "@tritonjs/core";
import OpenAI, { BadRequestError, NotFoundError, toFile } from "openai";
import { describe, expect, it } from "vitest";
import { newTriton, serveOpenAi } from "../support/openai-server.js";

const chirp = readFileSync(new URL("../../../../backends/test/media/fixtures/chirp.wav", import.meta.url));
const BYTES = { dtype: "BYTES", shape: [1] } as const;
const words = [
  { word: "turn", start: 0.2, end: 0.4 },
  { word: "on", start: 0.44, end: 0.6 },
  { word: "now", start: 2, end: 2.32 },
];

/** A client of a server with a model that hears the same words in each file, and one that answers piece by piece. */
async function connect(partial: readonly string[] = []) {
  const triton = newTriton();
  const heard: { bytes: number; language: string | undefined }[] = [];
  triton.bind({
    modelName: "ear",
    inputs: [
      { name: "audio", ...BYTES },
      { name: "language", ...BYTES, optional: true },
    ],
    outputs: [
      { name: "TRANSCRIPTS", ...BYTES },
      { name: "WORDS", ...BYTES },
    ],
    inferFunc: batch(({ audio, language }) => {
      heard.push({ bytes: audio.get(0, 0).length, language: language?.text(0, 0) });
      return { TRANSCRIPTS: [["turn on now"]], WORDS: [[JSON.stringify(words)]] };
    }),
  });
  triton.bind({
    modelName: "live",
    inputs: [{ name: "audio", ...BYTES }],
    outputs: [{ name: "text_output", ...BYTES }],
    config: { batching: false, decoupled: true },
    inferFunc: sample(function* () {
      for (const text of partial) yield { text_output: [text] };
    }),
  });
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: [[x.get(0, 0)]] })),
  });
  const url = await serveOpenAi(triton);
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "key", maxRetries: 0 });
  const file = await toFile(chirp, "chirp.wav");
  return { openai, url, file, heard };
}

describe("transcriptions", () => {
  it("have the text of a file, which the model gets as it is", async () => {
    const { openai, file, heard } = await connect();
    const made = await openai.audio.transcriptions.create({ file, model: "ear", language: "en" });
    expect(made.text).toBe("turn on now");
    expect(heard).toEqual([{ bytes: chirp.length, language: "en" }]);
  });

  it("are text, subtitles, or JSON with segments and words", async () => {
    const { openai, file } = await connect();
    const create = (more: object) => openai.audio.transcriptions.create({ file, model: "ear", ...more });
    expect(await create({ response_format: "text" })).toBe("turn on now\n");
    expect(await create({ response_format: "srt" })).toBe(
      "1\n00:00:00,200 --> 00:00:00,600\nturn on\n\n2\n00:00:02,000 --> 00:00:02,320\nnow\n\n",
    );
    expect(await create({ response_format: "vtt" })).toBe(
      "WEBVTT\n\n00:00:00.200 --> 00:00:00.600\nturn on\n\n00:00:02.000 --> 00:00:02.320\nnow\n\n",
    );
    const verbose = await create({
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
      temperature: 0.5,
    });
    expect(verbose).toMatchObject({
      task: "transcribe",
      duration: 0.2,
      text: "turn on now",
      segments: [
        { id: 0, start: 0.2, end: 0.6, text: "turn on", temperature: 0.5 },
        { id: 1, start: 2, end: 2.32, text: "now" },
      ],
      words,
    });
  });

  it("stream the words on which two texts in a row agree, and the whole text at the end", async () => {
    const partial = ["turn", "turn on", "turn of the", "turn off the light"];
    const { openai, file } = await connect(partial);
    const events = [];
    for await (const event of await openai.audio.transcriptions.create({
      file,
      model: "live",
      stream: true,
    })) {
      events.push(event);
    }
    expect(events).toEqual([
      { type: "transcript.text.delta", delta: "turn" },
      { type: "transcript.text.delta", delta: " off the light" },
      { type: "transcript.text.done", text: "turn off the light" },
    ]);
  });

  it("stream the text of a model that answers once", async () => {
    const { openai, file } = await connect();
    const events = [];
    for await (const event of await openai.audio.transcriptions.create({
      file,
      model: "ear",
      stream: true,
    })) {
      events.push(event);
    }
    expect(events).toEqual([
      { type: "transcript.text.delta", delta: "turn on now" },
      { type: "transcript.text.done", text: "turn on now" },
    ]);
  });

  it("are refused with the field at fault", async () => {
    const { openai, url, file } = await connect();
    const create = (more: object) => openai.audio.transcriptions.create({ file, model: "ear", ...more });
    await expect(create({ model: "none" })).rejects.toThrow(NotFoundError);
    await expect(create({ model: "sum" })).rejects.toThrow(
      "model 'sum' cannot transcribe files: expected an input of BYTES for a file, and an output of BYTES for its text, got inputs x and outputs y",
    );
    await expect(create({ response_format: "mp3" })).rejects.toThrow(
      "'response_format': expected one of json, text, srt, vtt, verbose_json, got 'mp3'",
    );
    await expect(create({ temperature: 2 })).rejects.toThrow(
      "'temperature': expected a number from 0 to 1, got '2'",
    );
    await expect(create({ timestamp_granularities: ["word"] })).rejects.toThrow(
      "'timestamp_granularities': expected the response_format verbose_json, got json",
    );
    await expect(create({ response_format: "srt", stream: true })).rejects.toThrow(BadRequestError);
    const post = async (body: RequestInit["body"], headers = {}) => {
      const response = await fetch(`${url}/v1/audio/transcriptions`, {
        method: "POST",
        body: body!,
        headers,
      });
      const { error } = (await response.json()) as { error: { message: string } };
      return { status: response.status, message: error.message };
    };
    expect(await post("{}", { "content-type": "application/json" })).toEqual({
      status: 400,
      message: "content-type: expected multipart/form-data, got application/json",
    });
    expect(await post("no parts", { "content-type": "multipart/form-data; boundary=x" })).toMatchObject({
      status: 400,
    });
    const form = new FormData();
    form.set("model", "ear");
    expect(await post(form)).toMatchObject({ status: 400, message: expect.stringContaining("'file'") });
  });
});
