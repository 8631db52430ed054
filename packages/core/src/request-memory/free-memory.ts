import { MessageChannel, type MessagePort } from "node:worker_threads";

/** The method of Node 22 and later that detaches a buffer. */
type Transferable = ArrayBuffer & { transfer?(newByteLength: number): ArrayBuffer };

/**
 * Bytes of a request from which its memory is freed as soon as its model has used it. The memory of smaller ones is
 * left to the garbage collector, and a transport may share it among several requests.
 */
export const LARGE_REQUEST_BYTES = 64 * 1024;

/** Memory of answers that belongs to them alone. */
const ownedByAnswers = new WeakSet<ArrayBufferLike>();

let closed: MessagePort | undefined;

/**
 * Frees memory now that would otherwise be freed by a garbage collection. All views of it have a length of 0 from then
 * on. V8 collects the whole heap for each 64 MiB of such memory, which costs ten times as much as reading it.
 */
export function freeMemory(memory: ArrayBuffer): void {
  if (memory.byteLength === 0) return;
  const { transfer } = memory as Transferable;
  if (transfer !== undefined) transfer.call(memory, 0);
  else closedPort().postMessage(undefined, [memory]);
}

/**
 * A function that frees the memory of a request, for `InferInit.onInputsUsed`; undefined for one that is not large.
 *
 * @param bytes the request as it arrived, or a part of it; if large, in memory that belongs to the request alone
 */
export function freeWhenUsed({ buffer, byteLength }: Uint8Array): (() => void) | undefined {
  if (byteLength < LARGE_REQUEST_BYTES || !(buffer instanceof ArrayBuffer)) return undefined;
  return () => freeMemory(buffer);
}

/** Tells the transports that this memory belongs to one answer alone: HTTP frees it when it has sent all of it. */
export function ownedByAnswer(memory: ArrayBuffer): void {
  ownedByAnswers.add(memory);
}

/**
 * A callback for `write` of a socket or of an answer of `node:http` that frees the memory of these bytes; undefined for
 * memory that does not belong to one answer alone. Memory that could not be sent is left to the garbage collector. Not for
 * streams of `node:http2`, which call back while the system still sends from the memory.
 */
export function freeWhenSent({
  buffer,
  byteLength,
}: Uint8Array): ((error?: Error | null) => void) | undefined {
  if (byteLength < LARGE_REQUEST_BYTES || byteLength < buffer.byteLength) return undefined;
  if (!ownedByAnswers.has(buffer)) return undefined;
  return (error) => {
    if (error == null) freeMemory(buffer as ArrayBuffer);
  };
}

/** A port without a receiver: what it is given is freed. This takes 2 µs on Node 20, which has no `transfer`. */
function closedPort(): MessagePort {
  if (closed === undefined) {
    closed = new MessageChannel().port1;
    closed.close();
  }
  return closed;
}
