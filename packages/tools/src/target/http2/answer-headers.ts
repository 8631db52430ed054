import { decodeHeaders } from "./hpack.js";

/** Blocks of headers whose meaning is remembered: answers repeat them, until the date changes. */
const KNOWN_BLOCKS = 8;

/** Decodes the headers of answers. */
export class AnswerHeaders {
  readonly #known: { readonly block: Buffer; readonly headers: ReadonlyMap<string, string> }[] = [];
  #next = 0;

  decode(block: Buffer): ReadonlyMap<string, string> {
    const known = this.#known.find((one) => one.block.equals(block));
    if (known !== undefined) return known.headers;
    const headers = decodeHeaders(block);
    this.#known[this.#next] = { block: Buffer.from(block), headers };
    this.#next = (this.#next + 1) % KNOWN_BLOCKS;
    return headers;
  }
}
