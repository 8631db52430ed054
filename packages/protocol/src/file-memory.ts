import { errorFor } from "./triton-error.js";

/** Bytes of memory that the values of one file may take. Models have less than a quarter of it. */
export const MOST_FILE_MEMORY = 2 ** 30;

/** Bytes of an object, a list or a text. */
const PART_BYTES = 96;

/** Bytes of a number in a list that grows while it is read. */
const NUMBER_BYTES = 16;

/** Levels of JSON. Models of layers nest deepest, four levels for each model in a model. */
export const MOST_FILE_LEVELS = 256;

/** Inputs, and outputs, that a model may have. */
export const MOST_TENSORS = 8_192;

/**
 * Counts the values that a reader makes of a file, before it makes them. A value may take fifty times the bytes that it
 * has in its file, and V8 ends the process when memory is short, or a list longer than 2^27 elements.
 */
export class FileMemory {
  #left = MOST_FILE_MEMORY;

  /** @param what the file, for errors */
  constructor(private readonly what: string) {}

  /** @throws TritonError INVALID_ARG that names the file, if it has too many objects, lists and texts */
  countParts(count = 1): void {
    this.#take(PART_BYTES * count);
  }

  /** @throws TritonError INVALID_ARG that names the file, if it has too many numbers */
  countNumbers(count: number): void {
    this.#take(NUMBER_BYTES * count);
  }

  #take(bytes: number): void {
    this.#left -= bytes;
    if (this.#left >= 0) return;
    const text = `cannot read ${this.what}: expected values that take at most ${MOST_FILE_MEMORY} bytes of memory, got more`;
    throw errorFor("INVALID_MODEL", text);
  }
}

/**
 * Checks what a JSON text becomes, before `JSON.parse` makes it.
 *
 * @param what the file, for errors
 * @throws TritonError INVALID_ARG for too many values, and for values that nest too deep
 */
export function assertJsonFits(text: string, what: string): void {
  const memory = new FileMemory(what);
  let level = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        memory.countParts();
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        memory.countParts();
        if (++level > MOST_FILE_LEVELS) {
          const fault = `cannot read ${what}: expected at most ${MOST_FILE_LEVELS} levels of JSON, got more`;
          throw errorFor("INVALID_MODEL", fault);
        }
        break;
      case 0x5d: // ]
      case 0x7d: // }
        level--;
        break;
      case 0x2c: // ,
        memory.countNumbers(1);
        break;
    }
  }
}

/** Place of the quote that ends a string, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
