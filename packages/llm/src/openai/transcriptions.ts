import { BodyStream, ClientGone, type V2Response } from "@tritonjs/http/frontend";
import { errorFor, type ModelConfig, Tensor, TritonError } from "@tritonjs/protocol";
import type { Exchange, InferenceResponse } from "@tritonjs/server";
import { DONE_EVENT, dataEvent, EVENT_STREAM_HEADERS } from "./answers.js";
import type { FormBody } from "./form-body.js";
import { describeError, invalidField, missingField } from "./openai-error.js";
import { inferenceRoute, jsonResult, type OpenAiExchange } from "./openai-exchange.js";
import type { Fields } from "./request-fields.js";
import { type InputSlot, inputSlot, tensorOf } from "./text-model.js";

/** Route of speech recognition: `POST /v1/audio/transcriptions`. */
export const transcriptionsRoute = inferenceRoute(/^\/v1\/audio\/transcriptions$/, async (exchange) => {
  const { file: audio, ...wanted } = await exchange.readForm(readTranscriptionRequest);
  const lookUp = await exchange.lookUpModel(wanted.model);
  const model = transcriptionModelOf(lookUp.current().config);
  const run = new TranscriptionRun(exchange, lookUp, model, inputsOf(model, audio, wanted));
  if (wanted.stream) return streamTranscript(exchange, run);
  const { text, words } = await run.whole();
  return writeTranscript(wanted, {
    text,
    words,
    seconds: wavSeconds(audio) ?? words?.at(-1)?.end ?? 0,
  });
});

const FORMATS = ["json", "text", "srt", "vtt", "verbose_json"] as const;

interface TranscriptionRequest {
  readonly file: Uint8Array;
  readonly model: string;
  readonly format: (typeof FORMATS)[number];
  readonly language: string | undefined;
  readonly prompt: string | undefined;
  readonly temperature: number;
  readonly hasWords: boolean;
  readonly hasSegments: boolean;
  readonly stream: boolean;
}

/** @throws OpenAiError 400 for the first field at fault */
function readTranscriptionRequest(fields: Fields, files: FormBody["files"]): TranscriptionRequest {
  const model = fields.requiredString("model");
  const file = files.get("file");
  if (file === undefined) throw missingField("file", "a file");
  const format = fields.choice("response_format", FORMATS) ?? "json";
  const granularities = (fields.array("timestamp_granularities[]") ?? []) as readonly string[];
  const unknown = granularities.find((one) => one !== "word" && one !== "segment");
  const name = "timestamp_granularities";
  if (unknown !== undefined) {
    throw invalidField(name, `'${name}': expected word or segment, got '${unknown}'`);
  }
  if (granularities.length > 0 && format !== "verbose_json") {
    throw invalidField(name, `'${name}': expected the response_format verbose_json, got ${format}`);
  }
  const stream = fields.choice("stream", ["true", "false"]) === "true";
  if (stream && format !== "json" && format !== "text") {
    throw invalidField("stream", `'stream': expected the response_format json or text, got ${format}`);
  }
  return {
    file,
    model,
    format,
    stream,
    language: fields.string("language"),
    prompt: fields.string("prompt"),
    temperature: readTemperature(fields),
    hasWords: granularities.includes("word"),
    hasSegments: granularities.length === 0 || granularities.includes("segment"),
  };
}

function readTemperature(fields: Fields): number {
  const text = fields.string("temperature") ?? "0";
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= 0 && value <= 1) return value;
  throw invalidField("temperature", `'temperature': expected a number from 0 to 1, got '${text}'`);
}

/** The tensors of a model that transcribes files. */
interface TranscriptionModel {
  readonly name: string;
  readonly audio: InputSlot;
  /** Inputs with the names of fields: `language`, `prompt`, `temperature`. */
  readonly others: readonly InputSlot[];
  readonly output: string;
  readonly hasWords: boolean;
}

const WORDS = "WORDS";
const FIELDS = ["language", "prompt", "temperature"] as const;

/** @throws OpenAiError 400 for a model that transcribes no files */
function transcriptionModelOf({ name, input, output, maxBatchSize }: ModelConfig): TranscriptionModel {
  const slots = input.map((one) => inputSlot(one, maxBatchSize)).filter((slot) => slot !== undefined);
  const others = slots.filter((slot) => FIELDS.some((field) => field === slot.name));
  const texts = slots.filter((slot) => slot.datatype === "BYTES" && !others.includes(slot));
  const audio = texts.find((slot) => slot.name === "audio") ?? (texts.length === 1 ? texts[0] : undefined);
  const isEnough = slots.every((slot) => slot === audio || slot.optional);
  const outputs = output.filter((one) => one.dataType === "TYPE_STRING" && one.name !== WORDS);
  const text = outputs.find((one) => one.name === "text_output") ?? outputs[0];
  if (audio === undefined || text === undefined || !isEnough) {
    const expected = "an input of BYTES for a file, and an output of BYTES for its text";
    const tensors = (all: readonly { readonly name: string }[]) => all.map((one) => one.name).join(", ");
    const got = `inputs ${tensors(input)} and outputs ${tensors(output)}`;
    const why = `model '${name}' cannot transcribe files: expected ${expected}, got ${got}`;
    throw invalidField("model", why, "model_not_supported");
  }
  const hasWords = output.some((one) => one.name === WORDS);
  return { name, audio, others, output: text.name, hasWords };
}

function inputsOf(
  { audio, others }: TranscriptionModel,
  file: Uint8Array,
  wanted: Pick<TranscriptionRequest, (typeof FIELDS)[number]>,
): Map<string, Tensor> {
  const shape = audio.shape.map((size) => (size === -1 ? 1 : size));
  const inputs = new Map([[audio.name, Tensor.fromElements("BYTES", shape, [file])]]);
  for (const slot of others) {
    const value = wanted[slot.name as (typeof FIELDS)[number]];
    const tensor = value === undefined ? undefined : tensorOf(slot, value);
    if (tensor !== undefined) inputs.set(slot.name, tensor);
  }
  return inputs;
}

interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

interface Transcript {
  readonly text: string;
  /** Undefined if the model does not tell. */
  readonly words: readonly Word[] | undefined;
}

/** A request to a model. A decoupled one answers with the text so far, several times. */
class TranscriptionRun {
  #cancel: () => void = () => {};

  constructor(
    private readonly exchange: OpenAiExchange,
    private readonly lookUp: Exchange,
    private readonly model: TranscriptionModel,
    private readonly inputs: Map<string, Tensor>,
  ) {}

  cancel(): void {
    this.#cancel();
  }

  /**
   * Sends the request.
   *
   * @param onText called for each response
   * @returns the last response
   * @throws the error of the model; ClientGone when the client leaves
   */
  async send(onText: (text: string) => void): Promise<Transcript> {
    const { exchange, lookUp, model, inputs } = this;
    const requestedOutputs = model.hasWords ? [model.output, WORDS] : [model.output];
    const { call, init } = exchange.newCall(lookUp.current(), "", { inputs, requestedOutputs });
    this.#cancel = () => call.cancel();
    const forget = exchange.request.onGone(this.#cancel);
    try {
      return await new Promise<Transcript>((resolve, reject) => {
        let last: Transcript | undefined;
        void call.send(init, {
          respond: (outcome, final) => {
            if (TritonError.is(outcome)) reject(outcome);
            else if (outcome?.outputs.has(model.output)) {
              last = this.#read(outcome);
              onText(last.text);
            }
            if (!final) return;
            if (last !== undefined) resolve(last);
            else reject(errorFor("INTERNAL", `model '${model.name}': expected a text, got no response`));
          },
          refuse: reject,
        });
      });
    } catch (error) {
      throw exchange.request.gone ? new ClientGone(error) : error;
    } finally {
      forget();
    }
  }

  whole(): Promise<Transcript> {
    return this.send(() => {});
  }

  #read({ outputs }: InferenceResponse): Transcript {
    const text = (name: string) => {
      const element = outputs.get(name)?.elements[0] as Uint8Array | undefined;
      return element === undefined ? undefined : new TextDecoder().decode(element);
    };
    const words = text(WORDS);
    return {
      text: text(this.model.output) ?? "",
      words: words === undefined ? undefined : JSON.parse(words),
    };
  }
}

/**
 * Streams a transcript. A delta has the words on which two texts in a row agree, because the last words of a text may
 * still change. The last event has the whole text.
 */
function streamTranscript(exchange: OpenAiExchange, run: TranscriptionRun): Promise<V2Response> {
  return new Promise((resolve, reject) => {
    const memory = exchange.memory.split(exchange.memory.bytes);
    const events = new BodyStream({ onDrain: () => {}, onCancel: () => run.cancel() });
    const send = (event: object | string) =>
      events.write(Buffer.from(typeof event === "string" ? event : dataEvent(event)));
    let isBegun = false;
    let before: readonly string[] = [];
    let sent = "";
    const add = (text: string) => {
      if (!text.startsWith(sent) || text === sent) return;
      send({ type: "transcript.text.delta", delta: text.slice(sent.length) });
      sent = text;
    };
    const onText = (text: string) => {
      if (!isBegun) resolve({ status: 200, headers: EVENT_STREAM_HEADERS, body: events });
      isBegun = true;
      const words = text.split(" ");
      const agreed = words.findIndex((word, i) => word !== before[i]);
      add(words.slice(0, agreed < 0 ? words.length : agreed).join(" "));
      before = words;
    };
    run
      .send(onText)
      .then(
        ({ text }) => {
          add(text);
          send({ type: "transcript.text.done", text });
          send(DONE_EVENT);
        },
        (error) => {
          if (isBegun) send(describeError(exchange.request, error).body);
          reject(error);
        },
      )
      .finally(() => {
        events.end();
        memory.release();
      });
  });
}

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Seconds of silence between two segments, and seconds that one has at most. */
const PAUSE = 0.6;
const LONGEST = 8;

/** Cuts a transcript at its pauses. */
function segmentsOf({ text, words }: Transcript, seconds: number): readonly Segment[] {
  if (words === undefined) return text === "" ? [] : [{ start: 0, end: seconds, text }];
  const segments: { start: number; end: number; text: string }[] = [];
  for (const { word, start, end } of words) {
    const last = segments.at(-1);
    if (last === undefined || start - last.end > PAUSE || end - last.start > LONGEST) {
      segments.push({ start, end, text: word });
    } else {
      last.text += ` ${word}`;
      last.end = end;
    }
  }
  return segments;
}

function writeTranscript(
  { format, language, temperature, hasWords, hasSegments }: Omit<TranscriptionRequest, "file">,
  { seconds, ...transcript }: Transcript & { readonly seconds: number },
): V2Response {
  const { text, words } = transcript;
  if (format === "json")
    return jsonResult({ text, usage: { type: "duration", seconds: Math.ceil(seconds) } });
  if (format === "text") return plain(`${text}\n`);
  const segments = segmentsOf(transcript, seconds);
  if (format === "srt") {
    const parts = segments.map(({ start, end, text: said }, i) => {
      return `${i + 1}\n${clockTime(start, ",")} --> ${clockTime(end, ",")}\n${said}\n\n`;
    });
    return plain(parts.join(""));
  }
  if (format === "vtt") {
    const parts = segments.map(({ start, end, text: said }) => {
      return `${clockTime(start, ".")} --> ${clockTime(end, ".")}\n${said}\n\n`;
    });
    return plain(`WEBVTT\n\n${parts.join("")}`, "text/vtt");
  }
  const described = segments.map((segment, id) => ({
    id,
    seek: 0,
    ...segment,
    tokens: [],
    temperature,
    // The model does not tell these.
    avg_logprob: 0,
    compression_ratio: 1,
    no_speech_prob: 0,
  }));
  return jsonResult({
    task: "transcribe",
    language: language ?? "unknown",
    duration: seconds,
    text,
    ...(hasSegments && { segments: described }),
    ...(hasWords && { words: words ?? [] }),
    usage: { type: "duration", seconds: Math.ceil(seconds) },
  });
}

function plain(text: string, type = "text/plain"): V2Response {
  return { status: 200, headers: { "content-type": `${type}; charset=utf-8` }, body: Buffer.from(text) };
}

/** Hours, minutes, seconds and thousandths. @param point before the thousandths */
function clockTime(seconds: number, point: string): string {
  const total = Math.round(seconds * 1000);
  const part = (unit: number, size: number, digits = 2) =>
    String(Math.floor(total / unit) % size).padStart(digits, "0");
  return `${part(3_600_000, 1e9)}:${part(60_000, 60)}:${part(1000, 60)}${point}${part(1, 1000, 3)}`;
}

/** Duration of a WAV file by its header; undefined for other files. */
function wavSeconds(file: Uint8Array): number | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const tag = (at: number) => String.fromCharCode(...file.subarray(at, at + 4));
  if (file.length < 12 || tag(0) !== "RIFF" || tag(8) !== "WAVE") return undefined;
  let bytesPerSecond = 0;
  for (let at = 12; at + 8 <= file.length; ) {
    const size = view.getUint32(at + 4, true);
    if (tag(at) === "fmt " && at + 24 <= file.length) bytesPerSecond = view.getUint32(at + 16, true);
    if (tag(at) === "data" && bytesPerSecond > 0) {
      return Math.round((Math.min(size, file.length - at - 8) / bytesPerSecond) * 1000) / 1000;
    }
    at += 8 + size + (size % 2);
  }
  return undefined;
}
