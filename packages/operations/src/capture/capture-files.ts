import { accessSync, constants, mkdirSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@tritonjs/core/extension";
import {
  Alarm,
  everyMs,
  importPeer,
  notLoaded,
  PRIVATE_DIRECTORY,
  PRIVATE_FILE,
  quietTimers,
  realClock,
} from "@tritonjs/core/internal";
import { errorFor, type Parameters, type Tensor, TritonError } from "@tritonjs/protocol";

/** Where captured requests are kept, and when a file is complete. */
export interface CaptureFileOptions {
  /**
   * Directory of the files. It is made if it does not exist, and then only its owner may enter it. Only the owner may
   * read the files, also in a directory that exists.
   */
  readonly directory: string;
  /** Bytes of captured requests that make a file complete. @default 8388608 */
  readonly maxBytes?: number;
  /** Seconds after which a file is complete. @default 60 */
  readonly maxAgeSeconds?: number;
  /** Encrypts a complete file. Its name then ends in `.encrypted`. @default no encryption */
  readonly encrypt?: (file: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/** A captured request with its answer. */
export interface CapturedRequest {
  readonly model: string;
  readonly version: number;
  readonly id: string;
  /** When the model accepted it: milliseconds since 1970. */
  readonly time: number;
  readonly durationMs: number;
  readonly parameters: Parameters;
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Empty for a request that failed; the first answer of a decoupled model. */
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** Number of responses; a decoupled model may have any. */
  readonly responses: number;
  /** Code and text of the error with which it ended, `INVALID_ARG: ...`; undefined for none. */
  readonly error: string | undefined;
}

/** The part of `hyparquet-writer` that is used. */
interface ParquetWriter {
  parquetWriteBuffer(options: {
    columnData: readonly {
      name: string;
      data: readonly unknown[];
      type: "STRING" | "INT32" | "DOUBLE" | "TIMESTAMP" | "BYTE_ARRAY";
      nullable?: boolean;
      /** Values that differ from row to row: a dictionary of them would only cost time. */
      encoding?: "PLAIN";
    }[];
    codec: "UNCOMPRESSED";
    statistics: boolean;
    kvMetadata: readonly { key: string; value: string }[];
  }): ArrayBuffer;
}

/** Bytes of captured requests that may wait to be written. If the disk is slower, requests are not captured. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const WARN_EVERY_MS = 60_000;

/** The requests of one model that go into its next file. */
class OpenFile {
  readonly requests: CapturedRequest[] = [];
  bytes = 0;
}

/**
 * Files of captured requests: Parquet, one file for a model and a span of time. Requests wait in memory until their file
 * is complete, and nothing but `close` waits for the disk. If a file cannot be written, its requests are lost, and the
 * program is warned once a minute.
 */
export class CaptureFiles {
  /** Requests that were lost since the start. */
  lost = 0;
  readonly #open = new Map<string, OpenFile>();
  readonly #mayWarn = everyMs(realClock, WARN_EVERY_MS);
  #clock: Clock = realClock;
  #alarm = this.#alarmOn(realClock);
  #waitingBytes = 0;
  #number = 0;
  /** The end of a chain of writes: each starts after the one before. */
  #last: Promise<void> = Promise.resolve();
  #writer: Promise<ParquetWriter> | undefined;

  /** @throws TritonError INVALID_ARG for a directory that cannot be made */
  constructor(
    private readonly options: CaptureFileOptions &
      Required<Pick<CaptureFileOptions, "maxBytes" | "maxAgeSeconds">>,
  ) {
    try {
      mkdirSync(options.directory, PRIVATE_DIRECTORY);
      accessSync(options.directory, constants.W_OK | constants.X_OK);
    } catch (error) {
      const why = TritonError.from(error).message;
      throw errorFor("INVALID_OPTION", `cannot use the directory of captures '${options.directory}': ${why}`);
    }
  }

  /** Times the age of files by the clock of a server. */
  follow(clock: Clock): void {
    this.#clock = clock;
    this.#alarm = this.#alarmOn(clock);
  }

  #alarmOn(clock: Clock): Alarm {
    return new Alarm(quietTimers(clock) as Clock, () => this.#rotateAll());
  }

  /** False while so much waits for the disk that nothing more is kept. */
  get hasRoom(): boolean {
    return this.#waitingBytes < MAX_WAITING_BYTES;
  }

  /** @throws TritonError PACKAGE_NOT_INSTALLED without the package that writes the files */
  async ready(): Promise<void> {
    this.#writer ??= loadWriter();
    await this.#writer;
  }

  add(request: CapturedRequest): void {
    const { model } = request;
    let file = this.#open.get(model);
    if (file === undefined) {
      file = new OpenFile();
      this.#open.set(model, file);
    }
    const bytes = byteSize(request);
    file.requests.push(request);
    file.bytes += bytes;
    this.#waitingBytes += bytes;
    if (file.bytes >= this.options.maxBytes) this.#rotate(model, file);
    else if (!this.#alarm.isSet) this.#alarm.set(this.options.maxAgeSeconds * 1000);
  }

  /** Writes all files. Resolves when they are written. */
  async close(): Promise<void> {
    this.#alarm.callOff();
    this.#rotateAll();
    await this.#last;
  }

  #rotateAll(): void {
    for (const [model, file] of [...this.#open]) this.#rotate(model, file);
  }

  #rotate(model: string, file: OpenFile): void {
    this.#open.delete(model);
    this.#last = this.#last.then(() => this.#write(model, file));
  }

  async #write(model: string, { requests, bytes }: OpenFile): Promise<void> {
    const { directory, encrypt } = this.options;
    const start = new Date(this.#clock.wallNow()).toISOString().replace(/[:.]/g, "-");
    const name = `${encodeURIComponent(model)}-${start}-${this.#number++}.parquet${encrypt === undefined ? "" : ".encrypted"}`;
    const path = join(directory, name);
    try {
      this.#writer ??= loadWriter();
      const parquet = parquetOf(await this.#writer, model, requests);
      const content = encrypt === undefined ? parquet : await encrypt(parquet);
      // Nothing is written through a link that another user has made in a shared directory.
      await writeFile(`${path}.new`, content, { ...PRIVATE_FILE, flag: "wx" });
      await rename(`${path}.new`, path);
    } catch (error) {
      // The part that was written before the disk was full must not keep it full.
      await rm(`${path}.new`, { force: true }).catch(() => {});
      this.lost += requests.length;
      if (this.#mayWarn()) {
        const why = TritonError.from(error).message;
        process.emitWarning(
          `cannot write ${requests.length} captured requests to '${path}': ${why}`,
          "TritonWarning",
        );
      }
    } finally {
      this.#waitingBytes -= bytes;
    }
  }
}

async function loadWriter(): Promise<ParquetWriter> {
  try {
    return await importPeer<ParquetWriter>("hyparquet-writer", import.meta.url);
  } catch (error) {
    throw notLoaded("hyparquet-writer", error, "install it next to @tritonjs/operations to capture requests");
  }
}

function byteSize({ inputs, outputs }: CapturedRequest): number {
  let bytes = 256;
  for (const tensors of [inputs, outputs]) for (const { byteLength } of tensors.values()) bytes += byteLength;
  return bytes;
}

const plain = { encoding: "PLAIN" as const };

/**
 * Writes requests as a Parquet file: a row for each, and three columns for each tensor, `input.x`, `input.x.shape` and
 * `input.x.datatype`. The first has the bytes of the elements, as the v2 protocol sends them.
 */
function parquetOf(writer: ParquetWriter, model: string, requests: readonly CapturedRequest[]): Uint8Array {
  const columns = [
    { name: "time", type: "TIMESTAMP" as const, data: requests.map(({ time }) => new Date(time)), ...plain },
    { name: "model", type: "STRING" as const, data: requests.map((one) => one.model) },
    { name: "version", type: "INT32" as const, data: requests.map(({ version }) => version) },
    { name: "id", type: "STRING" as const, data: requests.map(({ id }) => id), ...plain },
    {
      name: "duration_ms",
      type: "DOUBLE" as const,
      data: requests.map(({ durationMs }) => durationMs),
      ...plain,
    },
    { name: "responses", type: "INT32" as const, data: requests.map(({ responses }) => responses) },
    { name: "error", type: "STRING" as const, data: requests.map(({ error }) => error) },
    {
      name: "parameters",
      type: "STRING" as const,
      data: requests.map(({ parameters }) =>
        JSON.stringify(parameters, (_, value: unknown) =>
          typeof value === "bigint" ? Number(value) : value,
        ),
      ),
    },
    ...tensorColumns(
      "input",
      requests.map(({ inputs }) => inputs),
    ),
    ...tensorColumns(
      "output",
      requests.map(({ outputs }) => outputs),
    ),
  ];
  const buffer = writer.parquetWriteBuffer({
    columnData: columns,
    // Compression would take most of the time, on the thread of the event loop.
    codec: "UNCOMPRESSED",
    statistics: false,
    kvMetadata: [{ key: "tritonjs.model", value: model }],
  });
  return new Uint8Array(buffer);
}

function tensorColumns(kind: "input" | "output", rows: readonly ReadonlyMap<string, Tensor>[]) {
  const names = new Set(rows.flatMap((row) => [...row.keys()]));
  return [...names].flatMap((name) => {
    const of = <T>(read: (tensor: Tensor) => T) =>
      rows.map((row) => (row.has(name) ? read(row.get(name)!) : null));
    return [
      { name: `${kind}.${name}`, type: "BYTE_ARRAY" as const, data: of(({ bytes }) => bytes), ...plain },
      {
        name: `${kind}.${name}.shape`,
        type: "STRING" as const,
        data: of(({ shape }) => JSON.stringify(shape)),
      },
      { name: `${kind}.${name}.datatype`, type: "STRING" as const, data: of(({ datatype }) => datatype) },
    ];
  });
}
