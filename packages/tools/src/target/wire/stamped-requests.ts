import type { LoadRequest } from "../load-request.js";
import { FreshValues } from "./fresh-values.js";
import type { WireTemplate, WireTemplates } from "./wire-template.js";

/** How a protocol writes the values that differ from request to request. */
export interface StampFormat {
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

/** Makes the bytes of requests from their templates. */
export class StampedRequests implements RequestBytes {
  prefix: Buffer | undefined;
  rest: Buffer;
  readonly #templates: readonly WireTemplate[];
  readonly #whole: readonly Buffer[];
  readonly #rests: readonly Buffer[];
  readonly #format: StampFormat;
  readonly #values: FreshValues;

  constructor({ bytes, templates }: WireTemplates, format: StampFormat, seed: number) {
    this.#templates = templates;
    this.#whole = templates.map(({ start, end }) => Buffer.from(bytes, start, end - start));
    this.#rests = templates.map(({ prefixEnd }, i) => this.#whole[i]!.subarray(prefixEnd));
    this.#format = format;
    this.#values = new FreshValues(seed);
    this.rest = this.#whole[0]!;
  }

  stamp(request: LoadRequest): void {
    const { prefixEnd, places } = this.#templates[request.payload]!;
    const whole = this.#whole[request.payload]!;
    if (prefixEnd === 0) {
      this.prefix = undefined;
      this.rest = whole;
      return;
    }
    const prefix = Buffer.allocUnsafe(prefixEnd);
    whole.copy(prefix, 0, 0, prefixEnd);
    const { fresh, sequenceId, sequenceStart, sequenceEnd, requestId } = places;
    if (fresh !== undefined)
      this.#values.fill(prefix, fresh.at, fresh.byteSize, fresh.datatype, request.number);
    if (sequenceId !== undefined) this.#format.writeSequenceId(prefix, sequenceId, request.sequenceId);
    if (sequenceStart !== undefined) this.#format.writeFlag(prefix, sequenceStart, request.sequenceStart);
    if (sequenceEnd !== undefined) this.#format.writeFlag(prefix, sequenceEnd, request.sequenceEnd);
    if (requestId !== undefined) writeDigits(prefix, requestId, request.number, REQUEST_ID_DIGITS);
    this.prefix = prefix;
    this.rest = this.#rests[request.payload]!;
    if (this.#format.pack === undefined) return;
    this.prefix = this.#format.pack(prefix, this.rest);
    this.rest = NOTHING;
  }
}

/** Length of a stamped request id. */
export const REQUEST_ID_DIGITS = 12;

/** Writes a whole number with leading zeros. */
export function writeDigits(into: Buffer, at: number, value: number, digits: number): void {
  let left = value;
  for (let i = at + digits - 1; i >= at; i--) {
    into[i] = 48 + (left % 10);
    left = Math.floor(left / 10);
  }
}
