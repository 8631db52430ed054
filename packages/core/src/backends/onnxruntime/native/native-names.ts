import type { OrtApi } from "./ort-api.js";

/** The list of names that a run gets, as C has it: addresses of NUL-terminated strings. */
export class NativeNames {
  /** Addresses of the names. */
  readonly #list: BigUint64Array;
  readonly #texts: readonly Uint8Array[];
  /** Address of the list. */
  readonly address: number;

  constructor({ koffi }: OrtApi, names: readonly string[]) {
    this.#texts = names.map((name) => Buffer.from(`${name}\0`));
    this.#list = BigUint64Array.from([...this.#texts.map((text) => koffi.address(text)), 0n]);
    this.address = Number(koffi.address(this.#list));
  }

  /** Number of names. */
  get length(): number {
    return this.#texts.length;
  }
}
