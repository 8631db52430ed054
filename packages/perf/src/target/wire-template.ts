import { deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import type { Compression } from "@tritonjs/client/internal";
import type { DataType } from "@tritonjs/protocol";
import type { TestedModel } from "../data/data-set.js";
import { Random, randomElements, unitByteSize } from "../data/random.js";
import type { LoadRequest } from "./carrier.js";

/*
 * A request is prepared once, in full:
 *
 *   | head, parameters ... [fresh values] | rest of the tensors |
 *   ^ start               ^ prefix end                          ^ end
 *
 * Values that differ between requests lie in the prefix, at positions of fixed length. A request with such positions is a
 * stamped copy of the prefix, followed by the shared rest. Other requests are sent without any copy. The bytes lie in
 * shared memory, so that threads do not multiply them.
 */

/** Position of random values in a prepared request, relative to its start. */
interface FreshPosition {
  readonly at: number;
  readonly byteSize: number;
  readonly datatype: DataType;
}

export interface StampPositions {
  readonly fresh?: FreshPosition;
  readonly sequenceId?: number;
  readonly sequenceStart?: number;
  readonly sequenceEnd?: number;
  readonly requestId?: number;
}

interface WireTemplate {
  readonly start: number;
  readonly end: number;
  /** End of the part that is copied for each request, relative to the start. 0 when nothing is replaced. */
  readonly prefixEnd: number;
  readonly positions: StampPositions;
}

export interface WireTemplates {
  readonly bytes: SharedArrayBuffer;
  readonly templates: readonly WireTemplate[];
}

export interface PreparedRequest {
  readonly parts: readonly Uint8Array[];
  readonly positions: StampPositions;
}

export function shareRequests(requests: readonly PreparedRequest[], format?: StampFormat): WireTemplates {
  const lengths = requests.map(({ parts }) => parts.reduce((sum, part) => sum + part.length, 0));
  const bytes = new SharedArrayBuffer(lengths.reduce((sum, length) => sum + length, 0));
  const view = new Uint8Array(bytes);
  let start = 0;
  const templates = requests.map(({ parts, positions }, i): WireTemplate => {
    const prefixEnd = format === undefined ? 0 : prefixEndOf(positions, format);
    let at = start;
    for (const part of parts) {
      view.set(part, at);
      at += part.length;
    }
    const template = { start, end: start + lengths[i]!, prefixEnd, positions };
    start = template.end;
    return template;
  });
  return { bytes, templates };
}

function prefixEndOf(
  { fresh, sequenceId, sequenceStart, sequenceEnd, requestId }: StampPositions,
  { idBytes, flagBytes }: StampFormat,
): number {
  const endOf = (at: number | undefined, length: number) => (at === undefined ? 0 : at + length);
  return Math.max(
    endOf(fresh?.at, fresh?.byteSize ?? 0),
    endOf(sequenceId, idBytes),
    endOf(sequenceStart, flagBytes),
    endOf(sequenceEnd, flagBytes),
    endOf(requestId, REQUEST_ID_DIGITS),
  );
}

/** Places of the id and the flags of a sequence. @param after position after the key of a parameter */
export const sequencePlaces = (
  { isSequenceModel }: TestedModel,
  after: (key: string) => number,
): StampPositions =>
  isSequenceModel
    ? {
        sequenceId: after("sequence_id"),
        sequenceStart: after("sequence_start"),
        sequenceEnd: after("sequence_end"),
      }
    : {};

/** How a protocol writes the values that differ from request to request. */
export interface StampFormat {
  /** Length of a correlation id, and of a flag. */
  readonly idBytes: number;
  readonly flagBytes: number;
  writeSequenceId(into: Buffer, at: number, id: number): void;
  writeFlag(into: Buffer, at: number, value: boolean): void;
  /** Makes the bytes that are sent out of a stamped prefix and the rest; they are sent as they are unless given. */
  readonly pack?: (prefix: Buffer, rest: Buffer) => Buffer;
}

/** Makes the bytes of one request after the other: one part, or a prefix of its own and a shared rest. */
export interface RequestBytes {
  readonly prefix: Buffer | undefined;
  readonly rest: Buffer;
  /** Sets `prefix` and `rest` to the bytes of a request. They stay valid. */
  stamp(request: LoadRequest): void;
}

const NOTHING = Buffer.alloc(0);

export class StampedRequests implements RequestBytes {
  prefix: Buffer | undefined;
  rest: Buffer;
  readonly #templates: readonly WireTemplate[];
  readonly #whole: readonly Buffer[];
  readonly #rests: readonly Buffer[];
  readonly #values: FreshValues;

  constructor(
    { bytes, templates }: WireTemplates,
    private readonly format: StampFormat,
    seed: number,
  ) {
    this.#templates = templates;
    this.#whole = templates.map(({ start, end }) => Buffer.from(bytes, start, end - start));
    this.#rests = templates.map(({ prefixEnd }, i) => this.#whole[i]!.subarray(prefixEnd));
    this.#values = new FreshValues(seed);
    this.rest = this.#whole[0]!;
  }

  stamp(request: LoadRequest): void {
    const { prefixEnd, positions } = this.#templates[request.payload]!;
    const whole = this.#whole[request.payload]!;
    if (prefixEnd === 0) {
      this.prefix = undefined;
      this.rest = whole;
      return;
    }
    const prefix = Buffer.allocUnsafe(prefixEnd);
    whole.copy(prefix, 0, 0, prefixEnd);
    const { fresh, sequenceId, sequenceStart, sequenceEnd, requestId } = positions;
    if (fresh !== undefined)
      this.#values.fill(prefix, fresh.at, fresh.byteSize, fresh.datatype, request.number);
    if (sequenceId !== undefined) this.format.writeSequenceId(prefix, sequenceId, request.sequenceId);
    if (sequenceStart !== undefined) this.format.writeFlag(prefix, sequenceStart, request.sequenceStart);
    if (sequenceEnd !== undefined) this.format.writeFlag(prefix, sequenceEnd, request.sequenceEnd);
    if (requestId !== undefined)
      prefix.write(String(request.number).padStart(REQUEST_ID_DIGITS, "0"), requestId, "latin1");
    this.prefix = prefix;
    this.rest = this.#rests[request.payload]!;
    if (this.format.pack === undefined) return;
    this.prefix = this.format.pack(prefix, this.rest);
    this.rest = NOTHING;
  }
}

/** Length of a stamped request id. */
export const REQUEST_ID_DIGITS = 12;

const TABLE_BYTES = 64 * 1024;

/**
 * Fills positions with random values. Values are copied from a table of random elements: one half of the values from one
 * position of the table, the other half from another. Each request uses another pair of positions, so a thread repeats
 * no values before billions of requests.
 */
export class FreshValues {
  readonly #tables = new Map<DataType, Buffer>();
  readonly #random: Random;

  constructor(seed: number) {
    // The rows of the data set come from the seed itself.
    this.#random = new Random(seed ^ 0x5bd1_e995);
  }

  /** @param number counts requests: equal numbers give equal values */
  fill(into: Uint8Array, at: number, byteSize: number, datatype: DataType, number: number): void {
    const table = this.#tables.get(datatype) ?? this.#tableOf(datatype);
    const unit = unitByteSize(datatype);
    const units = byteSize / unit;
    const firstUnits = (units + 1) >>> 1;
    const positions = TABLE_BYTES / unit - firstUnits;
    const first = (number % positions) * unit;
    const second = (Math.floor(number / positions) % positions) * unit;
    table.copy(into, at, first, first + firstUnits * unit);
    table.copy(into, at + firstUnits * unit, second, second + (units - firstUnits) * unit);
  }

  #tableOf(datatype: DataType): Buffer {
    const bytes = randomElements(datatype, TABLE_BYTES / unitByteSize(datatype), this.#random);
    const table = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tables.set(datatype, table);
    return table;
  }
}

export interface RegionPart {
  readonly region: string;
  readonly offset: number;
  readonly byteSize: number;
}

/** Where the tensors of a payload lie in shared memory. */
export interface SharedPayload {
  readonly inputs: ReadonlyMap<string, RegionPart>;
  readonly outputs: ReadonlyMap<string, RegionPart>;
}

export const compressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gzipSync(bytes) : deflateSync(bytes);

export const decompressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gunzipSync(bytes) : inflateSync(bytes);
