import type { FrameOutput } from "./frame-output.js";
import { LARGEST_WINDOW, windowUpdate } from "./frames.js";

/** Windows are opened again when half of them is used. */
const HALF_WINDOW = LARGEST_WINDOW / 2;

/** The receiving side of a stream. */
export interface ReceivingStream {
  readonly id: number;
  /** Bytes that came since its window was opened. */
  received: number;
}

/**
 * Flow control of what a connection receives. The windows are so large that only long connections and streams ever open
 * them again.
 */
export class ReceiveWindows {
  readonly #output: FrameOutput;
  #received = 0;

  constructor(output: FrameOutput) {
    this.#output = output;
  }

  /** Bytes came, on a stream unless it has ended. */
  received(byteSize: number, stream: ReceivingStream | undefined): void {
    this.#received += byteSize;
    if (this.#received >= HALF_WINDOW) {
      this.#output.add(windowUpdate(0, this.#received));
      this.#received = 0;
    }
    if (stream === undefined) return;
    stream.received += byteSize;
    if (stream.received < HALF_WINDOW) return;
    this.#output.add(windowUpdate(stream.id, stream.received));
    stream.received = 0;
  }
}
