/** Most characters for one call of `String.fromCharCode`. */
const SLICE = 0x8000;

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += SLICE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + SLICE));
  }
  return btoa(binary);
}
