/** Characters that one call of `String.fromCharCode` may be given. */
const SLICE = 0x8000;

/** Bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += SLICE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + SLICE));
  }
  return btoa(binary);
}
