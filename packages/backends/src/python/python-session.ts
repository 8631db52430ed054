import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { setPriority } from "node:os";
import { delimiter, dirname, isAbsolute } from "node:path";
import type { Duplex, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { HostPolicy } from "@tritonjs/core";
import type { Clock, Timer } from "@tritonjs/core/internal";
import type { Log } from "@tritonjs/core/internal/worker";
import { startBound, startProcess } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { telemetryVariable } from "../onnx-telemetry.js";
import {
  type FrameBody,
  type MemoryDescription,
  PythonFrameReader,
  pythonFrame,
  TensorMemory,
} from "./frames.js";
import type { FromPython, MissingModule } from "./messages.js";

/** The Python that runs a model, and its limits. */
export interface PythonSettings {
  /** The program: a path, or a name to look up in PATH. */
  readonly python: string;
  /** The file of the model, or that of its backend. */
  readonly path: string;
  /** The backend whose models share the file, and the directory of the model's version. */
  readonly backend?: { readonly name: string; readonly modelDirectory: string } | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** How long Python may take to start, and a model to finalize. */
  readonly stubTimeoutMs: number;
  readonly loadTimeoutMs: number;
}

/** The task of a process after its start. */
interface PythonTask extends Readonly<Record<string, unknown>> {
  readonly type: "load" | "complete";
}

const HINT =
  "; install Python 3.8 or newer with numpy as 'python3', or name it in the setting 'executable' " +
  "of the backend 'python' or by TRITONJS_PYTHON";

const PROGRAM = fileURLToPath(new URL("../../python/run_model.py", import.meta.url));

/** How long output may still arrive after the process has ended. A descendant that left its group may hold it open. */
const LAST_WORDS_MS = 1000;

/** What a process is started for, and who is told of it. */
interface SessionParts {
  readonly settings: PythonSettings;
  readonly modelName: string;
  /** Name of the instance, or of the model that completes its configuration. */
  readonly name: string;
  readonly task: PythonTask;
  readonly clock: Clock;
  readonly log: Log;
  readonly hostPolicy?: HostPolicy | undefined;
  /** Called with each message of the model, from the start. */
  message(message: FromPython, body: Uint8Array): void;
  /** Called when a process that was ready ends by itself. */
  crashed?(why: string): void;
}

/**
 * A process with a Python model from its start to its end. It gets commands over its descriptor 5, and sends and
 * receives all other frames over 3. It leads a process group of its own, which ends with it. A guardian in the group
 * holds descriptor 4 and ends the group when this process is gone.
 */
export class PythonSession {
  /** Resolves when the model is loaded, or has completed its configuration; rejects when that fails. */
  readonly ready: Promise<void>;
  /** Resolves when the process and all its descendants have ended. */
  readonly ended: Promise<void>;
  /** Whether the model has `is_ready`. */
  canTellReadiness = false;
  /** Most elements of inputs in one request, by their names, where the model limits them. */
  maxElements: Readonly<Record<string, number>> = {};
  /** Whether it can map memory of GPUs, or why not. Undefined if it was not asked. */
  gpu: true | string | undefined;
  isReady = false;
  #hasStarted = false;
  #failure: string | undefined;
  /** A module that cannot be imported, and the Python that lacks it. */
  #lacks: MissingModule | undefined;
  #timer: Timer | undefined;
  #resolve = () => {};
  #reject: (error: TritonError) => void = () => {};
  #over = () => {};
  readonly #child: ChildProcess;
  /** Undefined if the process could not be started, as the other line is. */
  readonly #line: Duplex | undefined;
  readonly #commands: Duplex | undefined;
  readonly #reader = new PythonFrameReader((header, body) => this.#receive(header as FromPython, body));
  /** Pieces of commands that are sent at the end of this turn of the event loop, in one call of the system. */
  #outbox: Uint8Array[] = [];
  #memory: TensorMemory | undefined;
  #isGone = false;
  #fault: string | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(private readonly parts: SessionParts) {
    const { settings, modelName, log, hostPolicy } = parts;
    const { python, env, stubTimeoutMs } = settings;
    this.ready = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.ended = new Promise((resolve) => {
      this.#over = resolve;
    });
    this.#limit(stubTimeoutMs, `'${python}' did not start`);
    const variables = { ...process.env, ...telemetryVariable(), ...env };
    const child = startBound(hostPolicy, () =>
      startProcess(() =>
        spawn(python, [PROGRAM], {
          detached: true,
          stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe"],
          env: isAbsolute(python)
            ? { ...variables, PATH: `${dirname(python)}${delimiter}${variables.PATH ?? ""}` }
            : variables,
        }),
      ),
    );
    this.#child = child;
    child.on("error", (error) => {
      if (child.pid === undefined) this.#gone(`could not be started (${error.message})`);
    });
    // Without a free descriptor, Node makes no streams either. Its types say otherwise.
    const streams = (child.stdio ?? []) as readonly (Duplex | undefined)[];
    const [, stdout, stderr, line, lifeline, commands] = streams;
    this.#line = line;
    this.#commands = commands;
    // A write to a process that has ended fails. The event `exit` reports the end.
    for (const stream of [stdout, stderr, line, lifeline, commands]) stream?.on("error", () => {});
    if (child.pid === undefined) return;
    if (hostPolicy?.nice !== undefined) lowerPriority(child.pid, hostPolicy.nice);
    for (const stream of [stdout!, stderr!]) {
      const lines = new OutputLines((text) =>
        log.info(`model '${modelName}': ${text}`, { model: modelName }),
      );
      stream.on("data", (chunk: Buffer) => lines.push(chunk)).on("end", () => lines.end());
    }
    line!.on("data", (chunk: Buffer) => this.#read(chunk));
    child.on("exit", (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      this.#killGroup();
      lifeline!.destroy();
      commands!.destroy();
      const end = () => this.#gone(this.#fault ?? how);
      child.once("close", end);
      this.#patience = setTimeout(() => {
        for (const stream of [stdout!, stderr!, line!]) stream.destroy();
        end();
      }, LAST_WORDS_MS);
    });
  }

  /** Number of the process, as text; empty when the process did not start. */
  get pid(): string {
    return String(this.#child.pid ?? "");
  }

  /** Keeps this process alive while the session lives, as from its start on. */
  ref(): void {
    this.#child.ref();
    for (const pipe of this.#pipes) pipe.ref();
  }

  /** Lets this process end while the session lives; its guardian then ends the process group. */
  unref(): void {
    this.#child.unref();
    for (const pipe of this.#pipes) pipe.unref();
  }

  get #pipes(): Socket[] {
    return (this.#child.stdio ?? []).filter(
      (stream): stream is Socket & Writable => stream instanceof Socket,
    );
  }

  /** Sends a frame to the thread that reads messages. Does nothing when the process has ended. */
  send(header: object, body?: FrameBody): void {
    if (this.#isGone || !this.#line?.writable) return;
    writePieces(this.#line, pythonFrame(header, body, this.#memory));
  }

  /**
   * Sends a frame to the main thread, which takes one after the other. Commands of one turn of the event loop wake the
   * process once.
   */
  command(header: object, body?: FrameBody): void {
    if (this.#isGone || !this.#commands?.writable) return;
    if (this.#outbox.length === 0) setImmediate(() => this.#sendCommands());
    this.#outbox.push(...pythonFrame(header, body, this.#memory));
  }

  #sendCommands(): void {
    const pieces = this.#outbox;
    this.#outbox = [];
    if (!this.#isGone && this.#commands?.writable) writePieces(this.#commands, pieces);
  }

  /** Finalizes the model and ends the process, by force when that takes too long. */
  end(): void {
    const { stubTimeoutMs } = this.parts.settings;
    this.command({ type: "stop" });
    this.#timer?.cancel();
    this.#timer = this.parts.clock.setTimer(stubTimeoutMs, () => {
      const why = `finalize() did not return within ${stubTimeoutMs / 1000} s`;
      this.parts.log.warning(`model '${this.parts.modelName}' was ended: ${why}`);
      this.kill();
    });
  }

  /** Ends the process and all its descendants by force. */
  kill(): void {
    if (!this.#isGone) this.#killGroup();
  }

  #killGroup(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // All of them have ended already.
    }
  }

  #read(chunk: Buffer): void {
    if (this.#fault !== undefined) return;
    try {
      this.#reader.push(chunk);
    } catch (error) {
      this.#fault = `wrote data that the library cannot read (${TritonError.from(error).message})`;
      this.kill();
    }
  }

  #receive(message: FromPython, body: Uint8Array): void {
    switch (message.type) {
      case "started":
        this.#hasStarted = true;
        this.#limit(this.parts.settings.loadTimeoutMs, "the model did not load");
        this.#start(message.memory);
        break;
      case "ready":
        this.#timer?.cancel();
        this.isReady = true;
        this.canTellReadiness = message.canTellReadiness ?? false;
        this.maxElements = message.maxElements ?? {};
        this.gpu = message.gpu;
        this.#resolve();
        break;
      case "failed":
        this.#failure = message.error;
        this.#lacks = message.lacks;
        this.kill();
        break;
      default:
        this.parts.message(message, body);
    }
  }

  /** Gives the process its task, and shares the memory that it has described if both can see it. */
  #start(memory: MemoryDescription | undefined): void {
    if (this.parts.task.type === "load" && memory !== undefined) this.#memory = TensorMemory.open(memory);
    this.#reader.memory = this.#memory;
    this.command({ ...this.parts.task, sharesMemory: this.#memory !== undefined });
  }

  #limit(ms: number, what: string): void {
    this.#timer?.cancel();
    this.#timer = this.parts.clock.setTimer(ms, () => {
      this.#failure = `${what} within ${ms / 1000} s`;
      this.kill();
    });
  }

  /** Ends the session, once, when the process and all its descendants have ended. */
  #gone(why: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#reader.memory = undefined;
    this.#memory?.close();
    clearTimeout(this.#patience);
    this.#timer?.cancel();
    if (!this.isReady) this.#reject(this.#missingModule() ?? this.#notLoaded(why));
    else if (this.parts.task.type === "load") this.parts.crashed?.(why);
    this.#over();
  }

  #notLoaded(why: string): TritonError {
    const { modelName, name } = this.parts;
    const death = this.#hasStarted
      ? `Stub process '${name}' is not healthy. It ${why} while the model loaded.`
      : `cannot start model '${modelName}' with '${this.parts.settings.python}': it ${why}${HINT}`;
    return errorFor("WORKER_CRASHED", this.#failure ?? death);
  }

  /** The error of a backend whose program imports a module that is not installed. */
  #missingModule(): TritonError | undefined {
    const { backend } = this.parts.settings;
    if (this.#lacks === undefined || backend === undefined) return undefined;
    const { module, python } = this.#lacks;
    const text =
      `the backend '${backend.name}' of model '${this.parts.modelName}' needs the Python module '${module}', which ` +
      `${python} cannot import: install it there, or name another Python by the parameter EXECUTION_ENV_PATH of the ` +
      `model, by the setting 'executable' of the backend, or by TRITONJS_PYTHON. ${this.#failure ?? ""}`;
    return errorFor("PACKAGE_NOT_INSTALLED", text);
  }
}

function writePieces(stream: Duplex, pieces: readonly Uint8Array[]): void {
  if (pieces.length === 1) {
    stream.write(pieces[0]!);
    return;
  }
  stream.cork();
  for (const piece of pieces) stream.write(piece);
  stream.uncork();
}

function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch (error) {
    process.emitWarning(`cannot give a child process the priority ${nice}: ${(error as Error).message}`);
  }
}

/** Longer lines are written in pieces. */
const MOST_BYTES = 8192;
const LINE_FEED = 10;

/** Splits the output of a process into lines. Holds at most one piece of one line. */
class OutputLines {
  #rest = Buffer.alloc(0);

  constructor(private readonly write: (line: string) => void) {}

  push(chunk: Buffer): void {
    let data = this.#rest.byteLength === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = data.indexOf(LINE_FEED);
      const size = end < 0 ? data.byteLength : end;
      if (size > MOST_BYTES) {
        this.#line(data.subarray(0, MOST_BYTES));
        data = data.subarray(MOST_BYTES);
      } else if (end < 0) {
        break;
      } else {
        this.#line(data.subarray(0, end));
        data = data.subarray(end + 1);
      }
    }
    // A copy, so that the chunk is not kept for its last bytes.
    this.#rest = Buffer.from(data);
  }

  end(): void {
    if (this.#rest.byteLength > 0) this.#line(this.#rest);
    this.#rest = Buffer.alloc(0);
  }

  #line(bytes: Buffer): void {
    const line = bytes.toString("utf8");
    this.write(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}
