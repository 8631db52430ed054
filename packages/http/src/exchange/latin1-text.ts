/** The first `length` bytes as text in which each character is one byte. */
export function latin1Text(bytes: Uint8Array, length = bytes.length): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, length);
  return buffer.toString("latin1", 0, length);
}
