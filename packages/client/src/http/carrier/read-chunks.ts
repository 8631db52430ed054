/** The chunks of a body. Not every browser can iterate over a stream. */
export async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<Uint8Array, void, void> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Drops the unread rest: the connection closes, which tells the server. After the end this has no effect.
    reader.cancel().catch(() => {});
  }
}
