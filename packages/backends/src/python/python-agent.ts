import { type ChildProcess, spawn } from "node:child_process";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { RepositoryAgent, RepositoryAgentAction, RepositoryAgentModel } from "@tritonjs/core";
import { type Log, startProcess, toConfigJson } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { assertPythonCanRun } from "./complete-with-python.js";

const PROGRAM = fileURLToPath(new URL("../../python/run_agent.py", import.meta.url));

/** A line from the process: a question, or the end of the action. */
interface FromAgent {
  readonly type: "replaceLocation" | "done" | "failed";
  readonly location?: string | null;
  readonly error?: string;
}

/**
 * A repository agent that is a file `agent.py`. Its process starts with the first action, and handles one action at a
 * time. It ends with this process, or when an action takes too long; the next action then starts another one.
 */
export function pythonAgent(
  name: string,
  path: string,
  log: Log,
): { readonly agent: RepositoryAgent; close(): void } {
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
  return { agent, close: () => running?.end() };
}

class AgentProcess {
  isOver = false;
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
      spawn(python, [PROGRAM, path], {
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
      this.#send({ action, name: modelName, location, parameters, config: toConfigJson(model.config) });
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
