import type { Socket } from "node:net";

/** Frames up to this size are copied into one piece: a copy is cheaper than a further part of a write. */
const LARGEST_JOINED = 64 * 1024;

/** Collects frames and writes those of one turn at once. */
export class FrameOutput {
  byteSize = 0;
  readonly #socket: Socket;
  #frames: Buffer[] = [];
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** @param onSent called when the connection has accepted everything up to this frame */
  add(frame: Buffer, onSent?: () => void): void {
    this.#frames.push(frame);
    if (onSent !== undefined) this.#waiting.push(onSent);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => this.flush());
  }

  flush(): void {
    this.#isScheduled = false;
    const frames = this.#frames;
    if (frames.length === 0) return;
    const waiting = this.#waiting;
    this.#frames = [];
    this.#waiting = [];
    const onSent = (error?: Error | null): void => {
      if (error == null) for (const sent of waiting) sent();
    };
    const byteSize = frames.reduce((sum, frame) => sum + frame.length, 0);
    this.byteSize += byteSize;
    const socket = this.#socket;
    if (frames.length === 1 || byteSize <= LARGEST_JOINED) {
      socket.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames, byteSize), onSent);
      return;
    }
    socket.cork();
    frames.forEach((frame, i) => void socket.write(frame, i === frames.length - 1 ? onSent : undefined));
    socket.uncork();
  }
}
