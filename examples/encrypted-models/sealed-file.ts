import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/*
 * A file under AES-256-GCM: 12 bytes of nonce, 16 bytes of tag, the rest. The name of the file is sealed with it, so that
 * files cannot be exchanged for each other.
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

/** @throws Error for another key, another name, or a byte that was changed */
export function open(key: Uint8Array, name: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE)).setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
}
