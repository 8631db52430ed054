import type { Compression } from "../../options/client-options.js";
/** Compresses bytes. */
export function compressBody(
  bytes: Uint8Array<ArrayBuffer>,
  format: Compression,
): Promise<Uint8Array<ArrayBuffer>> {
  return through(bytes, new CompressionStream(format));
}

/**
 * Decompresses a body if that has not been done yet. `fetch` decompresses it and leaves the header in place.
 * Replacements of `fetch` may not decompress. A decompressed body is JSON, which cannot begin like either format.
 *
 * @throws TypeError for bytes that are not in their format.
 */
export async function decoded(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: string | null,
): Promise<Uint8Array<ArrayBuffer>> {
  const format = encoding?.trim().toLowerCase();
  if (format !== "gzip" && format !== "deflate") return bytes;
  return looksLike(format, bytes) ? through(bytes, new DecompressionStream(format)) : bytes;
}

function looksLike(format: Compression, bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  if (format === "gzip") return first === 0x1f && second === 0x8b;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0 && bytes.length > 2;
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(transform as GenericTransformStream);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

interface GenericTransformStream {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;
}
