import type { FrameOutput } from "./frame-output.js";
import { FLAG, FRAME, FRAME_HEAD_BYTES, writeFrameHead } from "./frames.js";

const DEFAULT_WINDOW = 65_535;
const DEFAULT_FRAME = 16_384;

/** The sending half of a stream. */
export interface SendingStream {
  readonly id: number;
  /** Bytes that the server still accepts on it. */
  window: number;
  /** Data that does not fit into the windows yet. */
  readonly pending: Buffer[];
  /** Whether the stream ends with the pending data. */
  endsAfterPending: boolean;
  /** Called when all data was accepted by the connection. */
  readonly onSent: () => void;
}

/** Sends data within the windows of the server. */
export class SendWindows {
  readonly #output: FrameOutput;
  readonly #blocked = new Set<SendingStream>();
  #window = DEFAULT_WINDOW;
  /** Window of new streams. */
  initialWindow = DEFAULT_WINDOW;
  largestFrame = DEFAULT_FRAME;

  constructor(output: FrameOutput) {
    this.#output = output;
  }

  /** True if data of this size could be sent as one frame at once, on a new stream. */
  fits(byteSize: number): boolean {
    return byteSize <= this.largestFrame && byteSize <= this.#window && byteSize <= this.initialWindow;
  }

  /** Counts data that the caller sends itself. */
  spend(byteSize: number): void {
    this.#window -= byteSize;
  }

  send(stream: SendingStream, parts: readonly Buffer[], ends: boolean): void {
    for (const part of parts) if (part.length > 0) stream.pending.push(part);
    stream.endsAfterPending = ends;
    this.#pump(stream);
  }

  /** The server accepts more on the connection. */
  grow(byteSize: number): void {
    this.#window += byteSize;
    for (const stream of this.#blocked) {
      this.#pump(stream);
      if (this.#window <= 0) return;
    }
  }

  /** The server accepts more on a stream. */
  growStream(stream: SendingStream, byteSize: number): void {
    stream.window += byteSize;
    this.#pump(stream);
  }

  /** The window of new streams has changed, and with it that of the open ones. */
  setInitialWindow(byteSize: number, open: Iterable<SendingStream>): void {
    const change = byteSize - this.initialWindow;
    this.initialWindow = byteSize;
    for (const stream of open) this.growStream(stream, change);
  }

  forget(stream: SendingStream): void {
    this.#blocked.delete(stream);
  }

  #pump(stream: SendingStream): void {
    const { pending } = stream;
    while (pending.length > 0) {
      const length = Math.min(pending[0]!.length, stream.window, this.#window, this.largestFrame);
      if (length <= 0) {
        this.#blocked.add(stream);
        return;
      }
      const part = pending[0]!;
      if (length === part.length) pending.shift();
      else pending[0] = part.subarray(length);
      stream.window -= length;
      this.#window -= length;
      const isEnd = pending.length === 0;
      const flags = isEnd && stream.endsAfterPending ? FLAG.END_STREAM : 0;
      const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
      writeFrameHead(head, 0, { length, type: FRAME.DATA, flags, stream: stream.id });
      this.#output.add(head);
      this.#output.add(part.subarray(0, length), isEnd ? stream.onSent : undefined);
    }
    this.#blocked.delete(stream);
  }
}
