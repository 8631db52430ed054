import { type FileHandle, open } from "node:fs/promises";
import { Tensor } from "@tritonjs/protocol";
import type { DataSet } from "../data/data-set.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import { countsConcurrency, levelValue } from "../measure/level-result.js";
import { outputsJson } from "../target/carrier.js";

/** Properties at the end of a profile. */
interface ProfileTrailer {
  readonly version: string;
  readonly service_kind: string;
  readonly endpoint: string;
}

/** JSON text of the inputs of a payload, an object by their names; undefined if they are not recorded. */
type PayloadInputs = (payload: number) => string | undefined;

/** Length of text that is written at once. */
const PIECE_LENGTH = 1 << 16;

/**
 * Writes single requests to a JSON file while they are measured, in the schema of perf_analyzer's profile export. It
 * holds no more than one window in memory. After a fault of the file, such as a full disk, nothing more is written.
 */
export class ProfileExport {
  readonly path: string;
  readonly #inputsOf: PayloadInputs;
  readonly #inputTexts = new Map<number, string>();
  #file: FileHandle | undefined;
  /** Texts are written in the order in which they came. */
  #written: Promise<void>;
  #failure: unknown;
  #level: LoadLevel | undefined;
  #boundaries: string[] = [];
  #isFirstExperiment = true;
  #isFirstRequest = true;

  private constructor(path: string, file: FileHandle, inputsOf: PayloadInputs) {
    this.path = path;
    this.#file = file;
    this.#inputsOf = inputsOf;
    this.#written = Promise.resolve();
    this.#write('{"experiments":[');
  }

  /** Creates the file. `inputsOf` fills `request_inputs`. */
  static async create(path: string, inputsOf: PayloadInputs = () => undefined): Promise<ProfileExport> {
    return new ProfileExport(path, await open(path, "w"), inputsOf);
  }

  /** Adds the requests of a window of the level. Failed requests have no responses. */
  add(level: LoadLevel, window: LoadWindow): void {
    if (level !== this.#level) this.#begin(level, window.start);
    this.#boundaries.push(nanoseconds(window.end));
    let text = "";
    for (let i = 0; i < window.records.count; i++) {
      text += (this.#isFirstRequest ? "" : ",") + this.#requestText(window, i);
      this.#isFirstRequest = false;
      if (text.length > PIECE_LENGTH) {
        this.#write(text);
        text = "";
      }
    }
    this.#write(text);
  }

  /** Resolves when all that was added is written, so that memory stays bounded. */
  async flush(): Promise<void> {
    await this.#written;
  }

  /**
   * Completes the file and closes it.
   *
   * @throws the fault of the file, if there was one
   */
  async finish({ version, service_kind, endpoint }: ProfileTrailer): Promise<void> {
    this.#end();
    const members = Object.entries({ version, service_kind, endpoint });
    this.#write(`],${members.map(([key, value]) => `"${key}":${JSON.stringify(value)}`).join(",")}}\n`);
    await this.#written;
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #begin(level: LoadLevel, start: number): void {
    this.#end();
    this.#level = level;
    this.#boundaries = [nanoseconds(start)];
    this.#isFirstRequest = true;
    const experiment = {
      mode: countsConcurrency(level) ? "concurrency" : "request_rate",
      value: levelValue(level),
    };
    const comma = this.#isFirstExperiment ? "" : ",";
    this.#isFirstExperiment = false;
    this.#write(`${comma}{"experiment":${JSON.stringify(experiment)},"requests":[`);
  }

  #end(): void {
    if (this.#level === undefined) return;
    this.#write(`],"window_boundaries":[${this.#boundaries.join(",")}]}`);
    this.#level = undefined;
  }

  #requestText({ records }: LoadWindow, i: number): string {
    const { kept } = records;
    const sequence = records.sequence[i]!;
    const from = kept?.offsets[i] ?? 0;
    const to = kept?.offsets[i + 1] ?? 0;
    const times: number[] = [];
    if (kept !== undefined) for (let j = from; j < to; j++) times.push(kept.times[j]!);
    else if (records.failure[i] === 0) times.push(records.end[i]!);
    const outputs = kept?.outputs?.slice(from, to);
    const inputs = this.#inputText(records.payload[i]!);
    // A request that never reached a connection has no time of sending.
    const sent = Number.isNaN(records.sent[i]!) ? records.scheduled[i]! : records.sent[i]!;
    return (
      `{"timestamp":${nanoseconds(sent)}` +
      (sequence === 0 ? "" : `,"sequence_id":${sequence}`) +
      (inputs === "" ? "" : `,"request_inputs":${inputs}`) +
      `,"response_timestamps":[${times.map(nanoseconds).join(",")}]` +
      (outputs === undefined ? "" : `,"response_outputs":[${outputs.join(",")}]`) +
      "}"
    );
  }

  /** Inputs as JSON text. Few payloads are used again and again. */
  #inputText(payload: number): string {
    const known = this.#inputTexts.get(payload);
    if (known !== undefined) return known;
    const text = this.#inputsOf(payload) ?? "";
    this.#inputTexts.set(payload, text);
    return text;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#written = this.#written.then(async () => {
      if (this.#failure !== undefined) return;
      try {
        await this.#file?.appendFile(text);
      } catch (error) {
        this.#failure = error;
      }
    });
  }
}

/** Nanoseconds since the epoch, from milliseconds with fractions. A double has room for microseconds only. */
function nanoseconds(ms: number): string {
  const microseconds = Math.round(ms * 1000);
  return microseconds > 0 ? `${microseconds}000` : "0";
}

/** Inputs of the payloads of a data set as JSON text, for the profile export. */
export function payloadInputs(data: DataSet): PayloadInputs {
  if (data.kind === "openai")
    return (payload) => `{"payload":${JSON.stringify(data.payloads[payload] ?? "")}}`;
  return (payload) => {
    const inputs = data.payloads[payload]?.inputs;
    // Each request replaces fresh values with others, which nobody records.
    if (inputs === undefined || inputs.some(({ fresh }) => fresh !== undefined)) return undefined;
    return outputsJson(
      new Map(
        inputs.map(
          ({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)] as const,
        ),
      ),
    );
  };
}
