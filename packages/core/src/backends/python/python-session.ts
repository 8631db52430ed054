import { TritonError } from "@tritonjs/protocol";
import type { Clock, Timer } from "../../clock/clock.js";
import type { Log } from "../../observe/log/log.js";
import type { FrameBody } from "./frames.js";
import type { FromPython, MissingModule } from "./messages.js";
import { PythonProcess } from "./python-process.js";
import type { MemoryDescription } from "./tensor-memory.js";

/** The Python that runs a model, and its limits. */
export interface PythonSettings {
  /** The program: a path, or a name to look up in PATH. */
  readonly python: string;
  /** The file of the model, or that of its backend. */
  readonly path: string;
  /** The backend whose models share the file, and the directory of the model's version. */
  readonly backend?: { readonly name: string; readonly modelDirectory: string } | undefined;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** How long Python may take to start, and a model to finalize. */
  readonly stubTimeoutMs: number;
  /** How long a model may take to load. */
  readonly loadTimeoutMs: number;
}

/** The arguments that open a session. */
export interface SessionInit {
  readonly settings: PythonSettings;
  readonly modelName: string;
  /** Name of the instance, or of the model that completes its configuration. */
  readonly name: string;
  readonly nice?: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** The task of the process after its start. */
  readonly init: { readonly type: "load" | "complete" } & Readonly<Record<string, unknown>>;
  /** Called with each message of the model, from the start. */
  message(message: FromPython, body: Uint8Array): void;
  /** Called when a process that was ready ends by itself. */
  crashed(why: string): void;
}

/** A process with a Python model from its start to its end. */
export class PythonSession {
  /** Resolves when the model is loaded, or has completed its configuration; rejects when that fails. */
  readonly ready: Promise<void>;
  /** Resolves when the process and all its descendants have ended. */
  readonly ended: Promise<void>;
  readonly #process: PythonProcess;
  readonly #init: SessionInit;
  /** Whether the model has `is_ready`. */
  canTellReadiness = false;
  #hasStarted = false;
  #isReady = false;
  #failure: string | undefined;
  /** A module that cannot be imported, and the Python that lacks it. */
  #lacks: MissingModule | undefined;
  #timer: Timer | undefined;
  #resolve = () => {};
  #reject: (error: TritonError) => void = () => {};

  constructor(init: SessionInit) {
    this.#init = init;
    const { settings, modelName, log } = init;
    this.ready = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    let ended = () => {};
    this.ended = new Promise((resolve) => {
      ended = resolve;
    });
    this.#limit(settings.stubTimeoutMs, `'${settings.python}' did not start`);
    this.#process = new PythonProcess(settings, init.nice, {
      message: (header, body) => this.#message(header as FromPython, body),
      printed: (line) => log.info(`model '${modelName}': ${line}`, { model: modelName }),
      gone: (why) => {
        this.#gone(why);
        ended();
      },
    });
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get pid(): string {
    return this.#process.pid;
  }

  send(header: object, body?: FrameBody): void {
    this.#process.send(header, body);
  }

  /** Sends a command: a batch. */
  command(header: object, body: FrameBody): void {
    this.#process.command(header, body);
  }

  /** Finalizes the model and ends the process, by force when that takes too long. */
  end(): void {
    const { settings, modelName, log, clock } = this.#init;
    this.#process.command({ type: "stop" });
    this.#timer?.cancel();
    this.#timer = clock.setTimer(settings.stubTimeoutMs, () => {
      log.warning(
        `model '${modelName}' was ended: finalize() did not return within ${settings.stubTimeoutMs / 1000} s`,
      );
      this.kill();
    });
  }

  kill(): void {
    this.#process.kill();
  }

  #message(message: FromPython, body: Uint8Array): void {
    switch (message.type) {
      case "started":
        this.#hasStarted = true;
        this.#limit(this.#init.settings.loadTimeoutMs, "the model did not load");
        this.#start(message.memory);
        break;
      case "ready":
        this.#timer?.cancel();
        this.#isReady = true;
        this.canTellReadiness = message.canTellReadiness ?? false;
        this.#resolve();
        break;
      case "failed":
        this.#failure = message.error;
        this.#lacks = message.lacks;
        this.kill();
        break;
      default:
        this.#init.message(message, body);
    }
  }

  #start(memory: MemoryDescription | undefined): void {
    const { init } = this.#init;
    const sharesMemory = init.type === "load" && memory !== undefined && this.#process.share(memory);
    this.#process.command({ ...init, sharesMemory });
  }

  #limit(ms: number, what: string): void {
    this.#timer?.cancel();
    this.#timer = this.#init.clock.setTimer(ms, () => {
      this.#failure = `${what} within ${ms / 1000} s`;
      this.kill();
    });
  }

  #gone(why: string): void {
    this.#timer?.cancel();
    const { settings, modelName, name, init } = this.#init;
    if (this.#isReady) {
      if (init.type === "load") this.#init.crashed(why);
      return;
    }
    const death = this.#hasStarted
      ? `Stub process '${name}' is not healthy. It ${why} while the model loaded.`
      : `cannot start model '${modelName}' with '${settings.python}': it ${why}${HINT}`;
    this.#reject(
      this.#missingModule() ??
        new TritonError("INTERNAL", this.#failure ?? death, { reason: "WORKER_CRASHED" }),
    );
  }

  /** The error of a backend whose program imports a module that is not installed. */
  #missingModule(): TritonError | undefined {
    const { backend } = this.#init.settings;
    if (this.#lacks === undefined || backend === undefined) return undefined;
    const { module, python } = this.#lacks;
    return new TritonError(
      "UNAVAILABLE",
      `the backend '${backend.name}' of model '${this.#init.modelName}' needs the Python module '${module}', which ` +
        `${python} cannot import: install it there, or name another Python by the parameter EXECUTION_ENV_PATH of the ` +
        `model, by the setting 'executable' of the backend, or by TRITONJS_PYTHON. ${this.#failure ?? ""}`,
      { reason: "PACKAGE_NOT_INSTALLED" },
    );
  }
}

const HINT =
  "; install Python 3.8 or newer with numpy as 'python3', or name it in the setting 'executable' " +
  "of the backend 'python' or by TRITONJS_PYTHON";
