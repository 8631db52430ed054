import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/*
 * A file encrypted with AES-256-GCM: 12 bytes of nonce, 16 bytes of tag, then the content. The name of the file is
 * authenticated too, so one file cannot replace another.
 */

const NONCE = 12;
const TAG = 16;

/** @param key 32 bytes */
export function seal(key: Uint8Array, name: string, content: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(name));
  const sealed = Buffer.concat([cipher.update(content), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** @throws Error if the key or the name is wrong, or a byte was changed */
export function open(key: Uint8Array, name: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE)).setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
}
