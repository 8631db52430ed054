import { createHash, timingSafeEqual } from "node:crypto";

/** Prefix of a secret that is given as its hash. */
const HASHED = /^sha256:([0-9a-f]{64})$/i;

/** A secret of which only the hash is kept. */
export class Secret {
  readonly #digest: Buffer;

  /** @param text the secret, or `sha256:` and the hexadecimal hash of it */
  constructor(text: string) {
    const [, hash] = HASHED.exec(text) ?? [];
    this.#digest = hash === undefined ? digestOf(text) : Buffer.from(hash, "hex");
  }

  /** Compares in constant time, which reveals neither where two texts differ nor the length of the right one. */
  isEqual(text: string): boolean {
    return timingSafeEqual(digestOf(text), this.#digest);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
