import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { encodeMessage, inference, inferencePath } from "@tritonjs/protocol/grpc";
import { headerBlocks } from "../../../packages/perf/src/target/http2-frames.js";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import {
  frameBytes,
  framedMessage,
  type Http2Frame,
  PREFACE,
  readHttp2Frames,
} from "../structures/http2-frames.js";

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const ACK = 1;
const END_STREAM = 1;
const END_HEADERS = 4;

/** How much faster the server's timers and clock run than the machine's. */
const SPEED = 100;

/** Bytes in which a response begins before its tensor. */
const HEAD_BYTES = 300;

/** Milliseconds that a client has at its end to read all answers. */
const LAST_MS = 2000;

/**
 * Clients that stall, read slowly, read on and leave at random moments, while the connection is pinged, grows old and is
 * given up. Each input is the plan of one client: pairs of a step and its measure. Every answer must consist of the
 * bytes that its request asked for, and the process must live.
 */
export async function open(): Promise<FuzzTarget> {
  hurry();
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  triton.bind({
    modelName: "fill",
    inputs: [
      { name: "size", dtype: "INT32", shape: [1] },
      { name: "value", dtype: "UINT8", shape: [1] },
    ],
    outputs: [{ name: "y", dtype: "UINT8", shape: [-1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { size, value } }) => ({
        y: new Uint8Array(size.data[0]!).fill(value.data[0]!),
      })),
    config: { batching: false },
  });
  const { addresses } = await triton.serve({
    frontends: [
      grpc({
        port: 0,
        keepaliveTimeMs: 5000,
        keepaliveTimeoutMs: 20_000,
        keepalivePermitWithoutCalls: true,
        http2MaxPingsWithoutData: 0,
        maxConnectionAgeMs: 60_000,
        maxConnectionAgeGraceMs: 20_000,
      }),
    ],
  });
  const { port } = addresses.grpc!;
  const whole = Buffer.of(5, 15, 0, 12, 0, 4);
  return {
    seeds: [
      whole,
      // Stalls, grants a window, and reads on.
      Buffer.of(0, 15, 1, 0, 3, 200, 5, 15, 3, 200, 2, 0),
      // Reads in small parts, pings, and resets a call.
      Buffer.of(5, 15, 0, 14, 4, 1, 3, 40, 4, 1, 7, 0, 0, 3, 6, 1, 3, 80, 4, 1),
      // Opens several calls, stalls, and leaves.
      Buffer.of(5, 15, 1, 0, 0, 15, 0, 15, 0, 2, 3, 255, 3, 255, 7, 250),
    ],
    maxBytes: 80,
    lanes: 24,
    async run(input) {
      const client = new SlowReader(port);
      for (let at = 0; at + 1 < input.length && !client.isClosed; at += 2) {
        await client.step(input[at]!, input[at + 1]!);
      }
      await client.finish();
      return client.outcome();
    },
    async check() {
      const client = new SlowReader(port);
      for (let at = 0; at < whole.length; at += 2) await client.step(whole[at]!, whole[at + 1]!);
      await client.finish();
      expectThat(client.outcome() === "2 of 2 answered", () => client.outcome());
    },
    close: () => triton.close(),
  };
}

/** Lets timers and the monotonic clock of this process run faster. */
function hurry(): void {
  const { setTimeout: start } = globalThis;
  const now = performance.now.bind(performance);
  performance.now = () => now() * SPEED;
  globalThis.setTimeout = ((action: () => void, ms = 0, ...args: []) =>
    start(action, ms / SPEED, ...args)) as typeof setTimeout;
}

/** A call, and what has arrived of its answer. */
interface OpenCall {
  readonly value: number;
  readonly size: number;
  received: number;
  isReset: boolean;
  isAnswered: boolean;
}

class SlowReader {
  isClosed = false;
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  readonly #calls = new Map<number, OpenCall>();
  #rest: Buffer = Buffer.alloc(0);
  #readsOnce = false;
  #granted = 0;
  /** Reason that the server gave for its GOAWAY. */
  #end = "";
  #isLeft = false;
  #fault: Error | undefined;
  #progress = (): void => {};

  constructor(port: number) {
    const socket = connect({ port, host: "127.0.0.1" });
    this.#socket = socket;
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.isClosed = true;
        this.#progress();
        resolve();
      });
    });
    socket.on("data", (piece: Buffer) => this.#read(piece));
    socket.write(PREFACE);
    this.#send({ type: SETTINGS, flags: 0, stream: 0, payload: Buffer.of(0, 4, 0x10, 0, 0, 0) });
  }

  /** Makes one step of a plan. */
  async step(kind: number, measure: number): Promise<void> {
    switch (kind % 8) {
      case 0:
        return this.#call(256 << (measure % 16));
      case 1:
        this.#socket.pause();
        return;
      case 2:
        this.#socket.resume();
        return;
      case 3:
        await wait(measure / 4);
        return;
      case 4:
        this.#readsOnce = true;
        this.#socket.resume();
        return;
      case 5:
        return this.#grant(2 ** (10 + (measure % 16)));
      case 6: {
        const stream = [...this.#calls.keys()].at(measure % Math.max(1, this.#calls.size));
        if (stream === undefined) return;
        this.#calls.get(stream)!.isReset = true;
        return this.#send({ type: RST_STREAM, flags: 0, stream, payload: Buffer.of(0, 0, 0, 8) });
      }
      default:
        this.#isLeft = measure > 220;
        if (measure > 240) this.#socket.destroy();
        else if (measure > 220) this.#socket.end();
        else this.#send({ type: PING, flags: 0, stream: 0, payload: Buffer.alloc(8) });
    }
  }

  /** Reads all that is left. */
  async finish(): Promise<void> {
    this.#readsOnce = false;
    this.#grant(2 ** 29);
    this.#socket.resume();
    const deadline = wait(LAST_MS, undefined, { ref: false });
    const over = new Promise<void>((resolve) => {
      this.#progress = () => {
        const open = [...this.#calls.values()].some(({ isReset, isAnswered }) => !isReset && !isAnswered);
        if (this.isClosed || !open) resolve();
      };
      this.#progress();
    });
    await Promise.race([over, deadline]);
    this.#socket.destroy();
    await this.#closed;
    if (this.#fault !== undefined) throw this.#fault;
  }

  outcome(): string {
    const kept = [...this.#calls.values()].filter(({ isReset }) => !isReset);
    const answered = kept.filter(({ isAnswered }) => isAnswered);
    return `${answered.length} of ${kept.length} answered${this.#isLeft ? ", left" : ""}${this.#end}`;
  }

  #call(size: number): void {
    const stream = 2 * this.#calls.size + 1;
    const value = 1 + Math.floor(Math.random() * 255);
    this.#calls.set(stream, { value, size, received: 0, isReset: false, isAnswered: false });
    const { plain } = headerBlocks([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", inferencePath("ModelInfer")],
      [":authority", "x"],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ]);
    const message = encodeMessage(inference.ModelInferRequest, {
      modelName: "fill",
      inputs: [
        { name: "size", datatype: "INT32", shape: [1] },
        { name: "value", datatype: "UINT8", shape: [1] },
      ],
      rawInputContents: [new Uint8Array(Int32Array.of(size).buffer), Uint8Array.of(value)],
    });
    this.#send({ type: HEADERS, flags: END_HEADERS, stream, payload: plain });
    this.#send({ type: DATA, flags: END_STREAM, stream, payload: framedMessage(message) });
  }

  /** Opens the window of the connection, which must not become larger than 2^31. */
  #grant(bytes: number): void {
    if (this.#granted + bytes > 2 ** 30) return;
    this.#granted += bytes;
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.#send({ type: WINDOW_UPDATE, flags: 0, stream: 0, payload });
  }

  #send(frame: Http2Frame): void {
    if (!this.#socket.destroyed && this.#socket.writable) this.#socket.write(frameBytes(frame));
  }

  #read(piece: Buffer): void {
    if (this.#readsOnce) this.#socket.pause();
    const { frames, rest } = readHttp2Frames(
      this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]),
    );
    this.#rest = rest;
    for (const frame of frames) this.#take(frame);
    this.#progress();
  }

  #take({ type, flags, stream, payload }: Http2Frame): void {
    if ((type === PING || type === SETTINGS) && flags === 0) {
      this.#send({ type, flags: ACK, stream: 0, payload: type === PING ? payload : Buffer.alloc(0) });
    }
    if (type === GOAWAY && payload.length > 8) this.#end = `, ${Buffer.from(payload.subarray(8))}`;
    if (type > 9) this.#fail(`a frame of type ${type}`);
    const call = this.#calls.get(stream);
    if (call === undefined) {
      if (stream !== 0) this.#fail(`a frame of type ${type} on ${stream}`);
      return;
    }
    if (type === RST_STREAM) call.isReset = true;
    if (type === DATA) {
      const from = Math.max(0, HEAD_BYTES - call.received);
      call.received += payload.length;
      const other = payload.subarray(from).find((byte) => byte !== call.value);
      if (other !== undefined) this.#fail(`the byte ${other} in an answer of bytes ${call.value}`);
    }
    if (type === HEADERS && (flags & END_STREAM) !== 0 && !call.isReset) {
      if (call.received === 0) call.isReset = true;
      else if (call.received < call.size) this.#fail(`${call.received} of ${call.size} bytes`);
      else call.isAnswered = true;
    }
  }

  #fail(text: string): void {
    this.#fault ??= new Error(text);
  }
}
