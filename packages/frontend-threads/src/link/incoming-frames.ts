import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { KIND } from "../frames/frame-kind.js";
import { IncomingFrame } from "../frames/incoming-frame.js";
import type { RingReader } from "../ring/ring-reader.js";

/** The frames that arrive at one end of a link, with the memory that is handed over with them. */
export class IncomingFrames {
  /** Bytes of all memory that was handed over so far. */
  movedBytes = 0;
  readonly #reader: RingReader;
  readonly #memory: MessagePort;
  /** Frames that were read in one piece; undefined when all of them are delivered. */
  #read: IncomingFrame | undefined;
  /** Offset of the next one of them. */
  #at = 0;

  constructor(reader: RingReader, memory: MessagePort) {
    this.#reader = reader;
    this.#memory = memory;
  }

  /** The next frame, valid until the next call; undefined if there is none. */
  next(): IncomingFrame | undefined {
    this.#read ??= this.#readMore();
    const frame = this.#read;
    if (frame === undefined) return undefined;
    this.#at = frame.open(this.#at);
    if (this.#at === frame.memory.byteLength) this.#read = undefined;
    return frame.kind === KIND.elsewhere ? inElsewhere(frame) : frame;
  }

  #readMore(): IncomingFrame | undefined {
    const copy = this.#reader.read();
    if (copy === undefined) return undefined;
    this.#at = 0;
    return new IncomingFrame(copy, this.#takeMemory);
  }

  readonly #takeMemory = (): readonly ArrayBuffer[] => {
    const moved: readonly ArrayBuffer[] = receiveMessageOnPort(this.#memory)?.message ?? [];
    for (const { byteLength } of moved) this.movedBytes += byteLength;
    return moved;
  };
}

/** The frame that was too large for the ring. */
function inElsewhere({ moved: [whole, ...moved] }: IncomingFrame): IncomingFrame {
  const frame = new IncomingFrame(whole!, () => moved);
  frame.open(0);
  return frame;
}
