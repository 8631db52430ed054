import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Socket } from "node:net";
import { basename, dirname, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Backend, BackendFactory } from "@tritonjs/core/backend";
import { type Log, startProcess } from "@tritonjs/core/internal/worker";
import { assertOptions, errorFor, optionTypes, TritonError } from "@tritonjs/protocol";
import { configText } from "@tritonjs/protocol/config";
import type { RepositoryAgent, RepositoryAgentAction, RepositoryAgentModel } from "@tritonjs/repository";
import {
  assertPythonCanRun,
  configParameters,
  describeWithPython,
  LOAD_TIMEOUT_SECONDS,
  STUB_TIMEOUT_SECONDS,
} from "./complete-with-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";
import { pythonBackend, pytorchBackend } from "./repository-backends.js";

/** Options of {@link python}. */
export interface PythonOptions {
  /** Path of a `model.py` with a class `TritonPythonModel`. */
  readonly model: string | URL;
  /**
   * The program that runs the model: a path, or a name to look up in PATH. It must be Python 3.8 or newer, with numpy.
   * @default the environment variable TRITONJS_PYTHON, or `python3`
   */
  readonly python?: string;
  /** `parameters` of the model's configuration, as their `string_value`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Environment variables of its processes, in addition to those of this process; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long Python may take to start, and the model to finalize, in seconds. @default 30 */
  readonly stubTimeoutSeconds?: number;
  /** How long the model may take to load in each instance, in seconds. @default 3600 */
  readonly loadTimeoutSeconds?: number;
}

const PYTHON_OPTION_TYPES = optionTypes<PythonOptions>({
  model: ["object", "string"],
  python: "string",
  parameters: "object",
  env: "object",
  stubTimeoutSeconds: "number",
  loadTimeoutSeconds: "number",
});

/**
 * A backend that runs an unchanged model of Triton's Python backend: a `model.py` with a class `TritonPythonModel`.
 * Each instance is a process of `python3` with numpy. Its `auto_complete_config` adds to the configuration that `bind`
 * gets: inputs, outputs, the largest batch, and whether the model is decoupled.
 *
 * @throws TritonError at `bind` INVALID_ARG for invalid options, NOT_FOUND for a missing file, INTERNAL for a file that
 * cannot be imported and for errors that its `auto_complete_config` raises; UNSUPPORTED on Windows.
 * @example
 * ```ts
 * triton.bind({ modelName: "add", inferFunc: python({ model: "models/add/1/model.py" }) });
 * ```
 */
export function python(options: PythonOptions): Backend {
  assertOptions("python()", options, PYTHON_OPTION_TYPES, {}, ["model"]);
  assertPythonCanRun();
  const settings = settingsOf(options);
  const { parameters = {} } = options;
  return {
    backendName: "python",
    platform: "",
    isolations: ["process"],
    describe: () => {
      if (existsSync(settings.path)) return describeWithPython({ settings, parameters });
      throw errorFor("MODEL_FILES_NOT_FOUND", `cannot find the Python model '${settings.path}'`);
    },
    createExecutor: ({ info, ...context }) => {
      const { modelConfig } = info;
      const all = { ...configParameters(parameters), ...modelConfig.parameters };
      return new PythonExecutor(settings, modelDirectory(settings.path), {
        ...context,
        info: { ...info, modelConfig: { ...modelConfig, parameters: all } },
      });
    },
  };
}

function settingsOf(options: PythonOptions): PythonSettings {
  const { model, env, stubTimeoutSeconds = STUB_TIMEOUT_SECONDS } = options;
  const { loadTimeoutSeconds = LOAD_TIMEOUT_SECONDS } = options;
  const path = resolve(model instanceof URL ? fileURLToPath(model) : model);
  const problems = Object.entries({ stubTimeoutSeconds, loadTimeoutSeconds })
    .filter(([, seconds]) => !(seconds > 0 && seconds < 2 ** 31 / 1000))
    .map(([name, seconds]) => `${name}: expected a number above 0, got ${seconds}`);
  if (!path.endsWith(".py")) problems.push(`model: expected a '.py' file, got '${path}'`);
  if (problems.length > 0) throw errorFor("INVALID_OPTION", `python(): ${problems.join("; ")}`);
  return {
    python: options.python ?? process.env.TRITONJS_PYTHON ?? "python3",
    path,
    env,
    stubTimeoutMs: 1000 * stubTimeoutSeconds,
    loadTimeoutMs: 1000 * loadTimeoutSeconds,
  };
}

/**
 * The model's directory: `<model>` in the layout of a repository, `<model>/<version>/model.py`; otherwise the directory
 * of the file.
 */
function modelDirectory(path: string): string {
  const directory = dirname(path);
  return /^[1-9]\d*$/.test(basename(directory)) ? dirname(directory) : directory;
}

/** @internal */
export { sharedBackend } from "./repository-backends.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  python: pythonBackend,
  pytorch: pytorchBackend,
};

const AGENT_PROGRAM = fileURLToPath(new URL("../../python/run_agent.py", import.meta.url));

/** A line from the process: a question, or the end of the action. */
interface FromAgent {
  readonly type: "replaceLocation" | "done" | "failed";
  readonly location?: string | null;
  readonly error?: string;
}

/**
 * A repository agent that is a file `agent.py`. Its process starts with the first action, and handles one action at a
 * time. It ends with this process, or when an action takes too long; the next action then starts another one.
 *
 * @internal
 */
export function pythonAgent(
  name: string,
  path: string,
  log: Log,
): { readonly agent: RepositoryAgent; close(): Promise<void> } {
  assertPythonCanRun();
  let running: AgentProcess | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const agent: RepositoryAgent = (action, model) => {
    const turn = last.then(() => {
      model.signal.throwIfAborted();
      if (running === undefined || running.isOver) running = new AgentProcess(name, path, log);
      return running.act(action, model);
    });
    last = turn.catch(() => {});
    return turn;
  };
  return { agent, close: async () => running?.close() };
}

/** Milliseconds that the output of an ended process may take to end. Descendants that left its group may hold it. */
const LONGEST_OUTPUT_MS = 5000;

class AgentProcess {
  isOver = false;
  #isClosed = false;
  readonly #child: ChildProcess;
  readonly #line: Duplex | undefined;
  #model: RepositoryAgentModel | undefined;
  #end: { resolve(location: string | undefined): void; reject(error: TritonError): void } | undefined;

  constructor(
    private readonly name: string,
    private readonly path: string,
    log: Log,
  ) {
    const python = process.env.TRITONJS_PYTHON ?? "python3";
    const child = startProcess(() =>
      spawn(python, [AGENT_PROGRAM, path], {
        cwd: dirname(path),
        detached: true,
        stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
      }),
    );
    this.#child = child;
    const [, stdout, stderr, line, lifeline] = (child.stdio ?? []) as readonly (Duplex | undefined)[];
    this.#line = line;
    // A write to a process that has ended fails. The event `exit` reports the end.
    for (const stream of [stdout, stderr, line, lifeline]) stream?.on("error", () => {});
    child.on("error", (error) => this.#gone(`cannot start '${python}' (${error.message})`));
    child.on("close", () => {
      this.#isClosed = true;
    });
    child.on("exit", (code, signal) => {
      this.#kill();
      lifeline?.destroy();
      this.#gone(
        signal === null ? `its process exited with code ${code}` : `its process was ended by ${signal}`,
      );
    });
    if (line === undefined) return;
    for (const stream of [stdout!, stderr!]) {
      readLines(stream, (text) => log.info(`repository agent '${name}': ${text}`));
    }
    readLines(line, (text) => this.#receive(text));
  }

  /** Runs an action. @returns the directory that the agent returned */
  act(action: RepositoryAgentAction, model: RepositoryAgentModel): Promise<string | undefined> {
    const { modelName, location, parameters, signal } = model;
    const late = () => this.end();
    signal.addEventListener("abort", late);
    this.#child.ref();
    return new Promise<string | undefined>((resolve, reject) => {
      this.#model = model;
      this.#end = { resolve, reject };
      this.#send({ action, name: modelName, location, parameters, config: configText(model.config) });
    }).finally(() => {
      signal.removeEventListener("abort", late);
      this.#child.unref();
      for (const stream of this.#child.stdio) (stream as { unref?(): void } | null)?.unref?.();
    });
  }

  end(): void {
    this.isOver = true;
    this.#kill();
  }

  /** Ends the process. Resolves when its last lines are in the log. */
  async close(): Promise<void> {
    this.end();
    const child = this.#child;
    if (child.pid === undefined || this.#isClosed) return;
    const output = [child.stdout, child.stderr] as readonly unknown[] as readonly Socket[];
    child.ref();
    for (const stream of output) stream.ref();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LONGEST_OUTPUT_MS);
      child.once("close", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    for (const stream of output) stream.destroy();
  }

  #kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // All of them have ended already.
    }
  }

  #send(message: object): void {
    if (this.#line?.writable) this.#line.write(`${JSON.stringify(message)}\n`);
    else this.#gone("its process has ended");
  }

  #receive(text: string): void {
    const { type, location, error } = JSON.parse(text) as FromAgent;
    if (type === "failed") this.#failed(error!);
    else if (type === "done") this.#end?.resolve(location ?? undefined);
    else {
      this.#model!.replaceLocation().then(
        (folder) => this.#send({ location: folder }),
        (cause) => this.#send({ error: TritonError.from(cause).message }),
      );
    }
  }

  #failed(message: string): void {
    this.#end?.reject(errorFor("INVALID_MODEL", message));
  }

  #gone(why: string): void {
    this.isOver = true;
    this.#failed(`repository agent '${this.name}' ('${this.path}'): ${why}`);
  }
}

/** Reads lines until the stream ends or fails. The event `exit` of the process reports a failure. */
function readLines(input: Duplex, take: (line: string) => void): void {
  createInterface({ input })
    .on("line", take)
    .on("error", () => {});
}
