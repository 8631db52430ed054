import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { IncomingFrame, KIND, OutgoingFrame } from "./frames.js";
import { MAX_FRAME_BYTES, RingReader, RingWriter } from "./ring.js";

/** The memory and the port of one end of a link. All of them can be sent to another thread. */
export interface LinkEnd {
  readonly incoming: SharedArrayBuffer;
  readonly outgoing: SharedArrayBuffer;
  /** Carries memory that is handed over. */
  readonly memory: MessagePort;
}

/**
 * Milliseconds after which frames become visible before the end of the turn. A model may compute for all its requests in
 * one turn. Its answers would come in one burst, and the thread would serve nobody else while it encodes them.
 */
const PUBLISH_AFTER_MS = 2;

/**
 * Bytes of memory that a turn takes over, for each millisecond since the last turn, and for one at least. The frames
 * after them wait for the next turn. Memory that waits in the port does not belong to a heap. If all of it came at once,
 * the collector of young objects would find it in use, promote it, and soon collect the whole heap. A turn after a long
 * one takes over more: the requests belong in the queues of their models.
 */
const MOVED_BYTES_A_MS = 1024 * 1024;

/** Gets the frames that arrive. */
interface FrameReceiver {
  /** Called for each frame. It must not throw. The frame is valid until it returns. */
  frame(frame: IncomingFrame): void;
  /** Called when the other end has taken all frames that waited for space. */
  drained?(): void;
}

/**
 * One end of the way between the engine and a thread: a ring in each direction. Frames are written during a turn of the
 * event loop and shown to the other end at its end, with one wake-up if the other end sleeps. A long turn shows them
 * every two milliseconds. The other end sleeps after a turn that brought no frames.
 *
 * ```
 * send --ring has space--> ring --end of the turn, or 2 ms--> other end
 *      --ring is full--> waiting frames --other end has read--> ring
 * ```
 */
export class ThreadLink {
  /** For the next frame to send. */
  readonly outgoing = new OutgoingFrame();
  readonly #reader: RingReader;
  readonly #incoming: IncomingFrames;
  readonly #writer: RingWriter;
  readonly #memory: MessagePort;
  /** Frames that found the ring full, oldest first. Their number is bounded by that of the requests in flight. */
  #waiting: Uint8Array[] = [];
  #publishing = false;
  /** Time of the first frame that the other end does not see. */
  #hiddenSinceMs = 0;
  #awake = true;
  readonly #now: () => number;
  #turnedAtMs: number;
  #closed = false;

  /** @param now milliseconds of a monotonic clock */
  constructor(
    { incoming, outgoing, memory }: LinkEnd,
    /** Wakes up the other end: there, `wake` is to be called. */
    private readonly control: { wakeOther(): void },
    private readonly receiver: FrameReceiver,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now;
    this.#turnedAtMs = now();
    this.#reader = new RingReader(incoming);
    this.#writer = new RingWriter(outgoing);
    this.#incoming = new IncomingFrames(this.#reader, memory);
    this.#memory = memory;
    setImmediate(() => this.#turn());
  }

  /** True while frames wait for space. */
  get behind(): boolean {
    return this.#waiting.length > 0;
  }

  /** Sends `outgoing`, which is closed. */
  send(): void {
    if (this.#closed) return;
    const now = this.#now();
    if (!this.#publishing) {
      this.#publishing = true;
      this.#hiddenSinceMs = now;
      setImmediate(this.#endTurn);
    }
    const frame = this.outgoing;
    if (frame.size > MAX_FRAME_BYTES) this.#sendOversized(frame);
    const { moved, size } = frame;
    const parts = frame.parts();
    const isWritten = this.#waiting.length === 0 && this.#writer.write(parts, size);
    // The frame is copied before memory that its tensors may be views of is handed over.
    if (!isWritten) this.#waiting.push(joined(parts, size));
    if (moved.length > 0) this.#memory.postMessage(moved, moved);
    if (now - this.#hiddenSinceMs > PUBLISH_AFTER_MS) {
      this.#hiddenSinceMs = now;
      this.#publish();
    }
  }

  /** The other end has called for attention. */
  wake(): void {
    if (this.#awake || this.#closed) return;
    this.#awake = true;
    this.#turn();
  }

  /** Nothing is sent or delivered any more. */
  close(): void {
    this.#closed = true;
    this.#waiting = [];
    this.#memory.close();
  }

  #turn(): void {
    if (this.#closed) return;
    this.#sendWaiting();
    const incoming = this.#incoming;
    const now = this.#now();
    const most = incoming.movedBytes + MOVED_BYTES_A_MS * Math.max(1, now - this.#turnedAtMs);
    this.#turnedAtMs = now;
    let isBusy = false;
    while (incoming.movedBytes < most) {
      const frame = incoming.next();
      if (frame === undefined) break;
      isBusy = true;
      this.receiver.frame(frame);
      if (this.#closed) return;
    }
    if (isBusy && this.#reader.wasAwaited()) this.control.wakeOther();
    // While frames keep coming, looking again after a turn is cheaper than a wake-up.
    if (isBusy || !this.#reader.sleep()) setImmediate(() => this.#turn());
    else this.#awake = false;
  }

  /** Sends a frame that is too large for the ring as memory that is handed over. */
  #sendOversized(frame: OutgoingFrame): void {
    const { moved } = frame;
    const whole = joined(frame.parts(), frame.size);
    frame.open(KIND.oversized, 0);
    frame.hand(whole.buffer);
    for (const memory of moved) frame.hand(memory);
    frame.close(0);
  }

  readonly #endTurn = (): void => {
    this.#publishing = false;
    this.#publish();
  };

  #publish(): void {
    if (!this.#closed && this.#writer.publish()) this.control.wakeOther();
    if (this.#waiting.length > 0) this.#awaitSpace();
  }

  #sendWaiting(): void {
    if (this.#waiting.length === 0) return;
    let sent = 0;
    while (sent < this.#waiting.length) {
      const frame = this.#waiting[sent]!;
      if (!this.#writer.write([frame], frame.length)) break;
      sent++;
    }
    this.#waiting = this.#waiting.slice(sent);
    if (sent > 0 && this.#writer.publish()) this.control.wakeOther();
    if (this.#waiting.length > 0) this.#awaitSpace();
    else this.receiver.drained?.();
  }

  /** Asks for a wake-up, and looks once more: the other end may have read in between. */
  #awaitSpace(): void {
    this.#writer.awaitSpace();
    const [frame] = this.#waiting;
    if (frame !== undefined && this.#writer.fits(frame.length)) setImmediate(() => this.#sendWaiting());
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at = (at + part.length + 7) & -8;
  }
  return whole;
}

/** The frames that arrive at one end of a link, with the memory that is handed over with them. */
class IncomingFrames {
  /** Bytes of all memory that was handed over so far. */
  movedBytes = 0;
  /** Frames that were read in one piece; undefined when all of them are delivered. */
  #read: IncomingFrame | undefined;
  #at = 0;

  constructor(
    private readonly reader: RingReader,
    private readonly memory: MessagePort,
  ) {}

  /** The next frame, valid until the next call; undefined if there is none. */
  next(): IncomingFrame | undefined {
    this.#read ??= this.#readMore();
    const frame = this.#read;
    if (frame === undefined) return undefined;
    this.#at = frame.open(this.#at);
    if (this.#at === frame.memory.byteLength) this.#read = undefined;
    return frame.kind === KIND.oversized ? unwrapped(frame) : frame;
  }

  #readMore(): IncomingFrame | undefined {
    const copy = this.reader.read();
    if (copy === undefined) return undefined;
    this.#at = 0;
    return new IncomingFrame(copy, this.#takeMemory);
  }

  readonly #takeMemory = (): readonly ArrayBuffer[] => {
    const moved: readonly ArrayBuffer[] = receiveMessageOnPort(this.memory)?.message ?? [];
    for (const { byteLength } of moved) this.movedBytes += byteLength;
    return moved;
  };
}

function unwrapped({ moved: [whole, ...moved] }: IncomingFrame): IncomingFrame {
  const frame = new IncomingFrame(whole!, () => moved);
  frame.open(0);
  return frame;
}
