import type { Socket } from "node:net";
import { decodeHeaders, type HeaderBlocks } from "./hpack.js";
import {
  CANCEL,
  clientPreface,
  errorName,
  FLAG,
  FRAME,
  FRAME_HEAD_BYTES,
  FrameOutput,
  Http2FrameReader,
  LARGEST_WINDOW,
  readGoAway,
  resetStream,
  SETTING,
  shortFrame,
  windowUpdate,
  writeFrameHead,
} from "./http2-frames.js";
import { connectionText, type Endpoint, openSocket } from "./target-options.js";

export interface Http2Stream extends SendingStream, ReceivingStream {
  readonly call: ClientCall;
}

const DEFAULT_TABLE_BYTES = 4096;
const LAST_STREAM = 2 ** 31 - 3;

/**
 * The client's side of an HTTP/2 connection on which all calls have the same headers. It does what a load generator
 * needs of RFC 9113: no push, no priorities, no dynamic table for answers.
 */
export class Http2Session {
  openCalls = 0;
  bytesReceived = 0;
  readonly #socket: Socket;
  readonly #output: FrameOutput;
  readonly #reader: Http2FrameReader;
  readonly #windows: SendWindows;
  readonly #streams = new Map<number, Http2Stream>();
  readonly #receive: ReceiveWindows;
  readonly #answerHeaders = new AnswerHeaders();
  #nextStream = 1;
  #mostCalls = Number.POSITIVE_INFINITY;
  #wasConnected = false;
  #isClosing = false;
  #headers: "plain" | "adding" | "added" = "plain";

  constructor(
    endpoint: Endpoint,
    private readonly blocks: HeaderBlocks,
    private readonly onClose: () => void,
  ) {
    this.#reader = new Http2FrameReader({
      onData: (id, bytes, isLast) => this.#data(id, bytes, isLast),
      onFlow: (id, byteSize) => this.#receive.received(byteSize, this.#streams.get(id)),
      onHeaders: (id, block, isLast) => this.#headersCame(id, block, isLast),
      onFrame: (type, flags, id, payload) => this.#frame(type, flags, id, payload),
    });
    this.#socket = openSocket(
      endpoint,
      {
        onConnect: () => {
          this.#wasConnected = true;
        },
        onBytes: (bytes) => this.#read(bytes),
        onClose: (error) => this.#closed(connectionText(endpoint, this.#wasConnected, error)),
      },
      ["h2"],
    );
    this.#output = new FrameOutput(this.#socket);
    this.#windows = new SendWindows(this.#output);
    this.#receive = new ReceiveWindows(this.#output);
    this.#output.add(clientPreface());
  }

  get bytesSent(): number {
    return this.#output.byteSize;
  }

  get isOpen(): boolean {
    return !this.#isClosing && this.#nextStream <= LAST_STREAM;
  }

  get hasRoom(): boolean {
    return this.isOpen && this.openCalls < this.#mostCalls;
  }

  /** Starts a call with its first data: a prefix of its own, and a shared rest. */
  start(call: ClientCall, prefix: Buffer | undefined, rest: Buffer, ends: boolean): Http2Stream {
    const id = this.#nextStream;
    this.#nextStream += 2;
    const onSent = () => call.onSent();
    const stream: Http2Stream = {
      id,
      call,
      received: 0,
      window: this.#windows.initialWindow,
      pending: [],
      endsAfterPending: false,
      onSent,
    };
    this.#streams.set(id, stream);
    this.openCalls++;
    const block = this.blocks[this.#headers];
    if (this.#headers === "adding") this.#headers = "added";
    const byteSize = (prefix?.length ?? 0) + rest.length;
    const isWhole = byteSize > 0 && this.#windows.fits(byteSize);
    const head = { length: block.length, type: FRAME.HEADERS, flags: FLAG.END_HEADERS, stream: id };
    const frames = Buffer.allocUnsafe(
      FRAME_HEAD_BYTES + block.length + (isWhole ? FRAME_HEAD_BYTES + byteSize : 0),
    );
    let at = writeFrameHead(frames, 0, head);
    at += block.copy(frames, at);
    if (!isWhole) {
      this.#output.add(frames);
      this.#windows.send(stream, prefix === undefined ? [rest] : [prefix, rest], ends);
      return stream;
    }
    const flags = ends ? FLAG.END_STREAM : 0;
    at = writeFrameHead(frames, at, { length: byteSize, type: FRAME.DATA, flags, stream: id });
    if (prefix !== undefined) at += prefix.copy(frames, at);
    rest.copy(frames, at);
    stream.window -= byteSize;
    this.#windows.spend(byteSize);
    this.#output.add(frames, onSent);
    return stream;
  }

  write(stream: Http2Stream, parts: readonly Buffer[]): void {
    this.#windows.send(stream, parts, false);
  }

  /** Cancels a call. Its callbacks are not called again. */
  reset(stream: Http2Stream): void {
    if (!this.#forget(stream.id)) return;
    this.#output.add(resetStream(stream.id, CANCEL));
  }

  destroy(): void {
    this.#isClosing = true;
    this.#streams.clear();
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.bytesReceived += bytes.length;
    try {
      this.#reader.read(bytes);
    } catch (cause) {
      this.#closed(`cannot read the answers of the server: ${(cause as Error).message}`);
      this.#socket.destroy();
      return;
    }
    // Answers start further calls, whose frames are sent together.
    this.#output.flush();
  }

  #data(id: number, bytes: Buffer, isLast: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (bytes.length > 0) stream.call.onData(bytes);
    if (isLast) this.#end(stream);
  }

  #headersCame(id: number, block: Buffer, isLast: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.call.onHeaders(this.#answerHeaders.decode(block));
    if (isLast) this.#end(stream);
  }

  #end({ id, call }: Http2Stream): void {
    if (this.#forget(id)) call.onEnd();
  }

  #forget(id: number): boolean {
    const stream = this.#streams.get(id);
    if (stream === undefined) return false;
    this.#streams.delete(id);
    this.#windows.forget(stream);
    this.openCalls--;
    return true;
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case FRAME.SETTINGS:
        if ((flags & FLAG.ACK) === 0) this.#settings(payload);
        break;
      case FRAME.PING:
        if ((flags & FLAG.ACK) === 0) this.#output.add(shortFrame(FRAME.PING, FLAG.ACK, 0, payload));
        break;
      case FRAME.WINDOW_UPDATE: {
        const increment = payload.readUInt32BE() & 0x7fff_ffff;
        const stream = this.#streams.get(id);
        if (id === 0) this.#windows.grow(increment);
        else if (stream !== undefined) this.#windows.growStream(stream, increment);
        break;
      }
      case FRAME.RST_STREAM:
        this.#fault(id, `the server reset the call: ${errorName(payload.readUInt32BE())}`, false);
        break;
      case FRAME.GOAWAY:
        this.#goAway(payload);
        break;
    }
  }

  #settings(payload: Buffer): void {
    let tableBytes = DEFAULT_TABLE_BYTES;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      const id = payload.readUInt16BE(at);
      if (id === SETTING.HEADER_TABLE_SIZE) tableBytes = value;
      else if (id === SETTING.MAX_CONCURRENT_STREAMS) this.#mostCalls = value;
      else if (id === SETTING.MAX_FRAME_SIZE) this.#windows.largestFrame = value;
      else if (id === SETTING.INITIAL_WINDOW_SIZE)
        this.#windows.setInitialWindow(value, this.#streams.values());
    }
    const hasTable = tableBytes >= DEFAULT_TABLE_BYTES && this.blocks.tableBytes <= DEFAULT_TABLE_BYTES;
    if (hasTable && this.#headers === "plain") this.#headers = "adding";
    this.#output.add(shortFrame(FRAME.SETTINGS, FLAG.ACK, 0, new Uint8Array()));
  }

  #goAway(payload: Buffer): void {
    const { lastStream, text } = readGoAway(payload);
    this.#isClosing = true;
    for (const id of [...this.#streams.keys()]) if (id > lastStream) this.#fault(id, text, true);
    this.onClose();
  }

  #fault(id: number, text: string, isConnectionLost: boolean): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined && this.#forget(id)) stream.call.onFault(text, isConnectionLost);
  }

  #closed(text: string): void {
    this.#isClosing = true;
    this.onClose();
    for (const id of [...this.#streams.keys()]) this.#fault(id, text, true);
  }
}

export interface ClientCall {
  /** The connection has accepted all that was sent so far. */
  onSent(): void;
  onHeaders(headers: ReadonlyMap<string, string>): void;
  /** Bytes that are valid only during the call. */
  onData(bytes: Buffer): void;
  onEnd(): void;
  onFault(text: string, isConnectionLost: boolean): void;
}

/** Blocks of headers whose meaning is remembered: answers repeat them, until the date changes. */
const KNOWN_BLOCKS = 8;

class AnswerHeaders {
  readonly #known: { readonly block: Buffer; readonly headers: ReadonlyMap<string, string> }[] = [];
  #next = 0;

  decode(block: Buffer): ReadonlyMap<string, string> {
    const known = this.#known.find((one) => one.block.equals(block));
    if (known !== undefined) return known.headers;
    const headers = decodeHeaders(block);
    this.#known[this.#next] = { block: Buffer.from(block), headers };
    this.#next = (this.#next + 1) % KNOWN_BLOCKS;
    return headers;
  }
}

const DEFAULT_WINDOW = 65_535;
const DEFAULT_FRAME = 16_384;

/** The sending half of a stream. */
interface SendingStream {
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
class SendWindows {
  readonly #blocked = new Set<SendingStream>();
  #window = DEFAULT_WINDOW;
  /** Window of new streams. */
  initialWindow = DEFAULT_WINDOW;
  largestFrame = DEFAULT_FRAME;

  constructor(private readonly output: FrameOutput) {}

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

  grow(byteSize: number): void {
    this.#window += byteSize;
    for (const stream of this.#blocked) {
      this.#pump(stream);
      if (this.#window <= 0) return;
    }
  }

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
      this.output.add(head);
      this.output.add(part.subarray(0, length), isEnd ? stream.onSent : undefined);
    }
    this.#blocked.delete(stream);
  }
}

/** Windows are opened again when half of them is used. */
const HALF_WINDOW = LARGEST_WINDOW / 2;

/** The receiving side of a stream. */
interface ReceivingStream {
  readonly id: number;
  /** Bytes that came since its window was opened. */
  received: number;
}

/**
 * Flow control of what a connection receives. The windows are so large that only long connections and streams ever open
 * them again.
 */
class ReceiveWindows {
  #received = 0;

  constructor(private readonly output: FrameOutput) {}

  /** Bytes came, on a stream unless it has ended. */
  received(byteSize: number, stream: ReceivingStream | undefined): void {
    this.#received += byteSize;
    if (this.#received >= HALF_WINDOW) {
      this.output.add(windowUpdate(0, this.#received));
      this.#received = 0;
    }
    if (stream === undefined) return;
    stream.received += byteSize;
    if (stream.received < HALF_WINDOW) return;
    this.output.add(windowUpdate(stream.id, stream.received));
    stream.received = 0;
  }
}
