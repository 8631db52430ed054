import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../../scripts/run.mjs";
import { now, until } from "../clock.mjs";
import { servedFiles, writeFiles } from "../repository/models.mjs";
import { childrenOf, commandOf } from "./processes.mjs";

const DEATH = /instance '([^']+)' of model '([^']+)' version \d+ restarts in \d+ ms: (.*?)"?$/;
const STARTED = /Started (.+) at ([^\s"]+)/;

/** A server of the run in a process of its own. It reads the server's log for addresses and for instances that died. */
export class ServerProcess {
  /** Instances that died: `{ server, model, instance, why, at }`, with milliseconds of this process. */
  deaths = [];
  /** Number of instances that have restarted. */
  restarts = 0;
  /** Lines of the log at error level that are neither deaths nor expected by the run. */
  errors = [];
  addresses = {};
  #child;
  #started = deferred();
  #log;

  /**
   * @param name of the server in reports
   * @param services number of frontends to wait for
   * @param logFile file for a copy of the log
   */
  constructor(name, args, { env, services, logFile, ipc = false }) {
    this.name = name;
    this.#log = createWriteStream(logFile);
    this.#child = spawn(process.execPath, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe", ...(ipc ? ["ipc"] : [])],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      createInterface({ input: stream }).on("line", (line) => this.#read(line, services));
    this.ended = once(this.#child, "close").then(([code, signal]) => {
      this.#log.end();
      this.#started.reject(new Error(`${name} ended with ${signal ?? code} before it served`));
      return { code, signal };
    });
    this.#started.promise.catch(() => {});
  }

  /** Resolves when the server accepts requests. */
  started() {
    return this.#started.promise;
  }

  get pid() {
    return this.#child.pid;
  }

  get child() {
    return this.#child;
  }

  signal(name) {
    this.#child.kill(name);
  }

  /** Processes that run instances of models. */
  modelProcesses() {
    return childrenOf(this.pid).filter((pid) => /worker-main|run_model\.py/.test(commandOf(pid)));
  }

  /** Guardians, which end the processes of Python models when the server is gone. */
  guardians() {
    return this.modelProcesses()
      .flatMap(childrenOf)
      .filter((pid) => commandOf(pid).includes("run_model.py"));
  }

  /** Resolves when a dead instance has restarted; rejects after three minutes. */
  async restarted(countBefore) {
    await until(() => this.restarts > countBefore, `an instance of ${this.name} to restart`);
  }

  #read(line, services) {
    this.#log.write(`${line}\n`);
    const death = DEATH.exec(line);
    if (death !== null) {
      const [, instance, model, why] = death;
      this.deaths.push({ server: this.name, model, instance, why, at: now() });
    } else if (/ has restarted"?$/.test(line)) this.restarts++;
    else if (/^E\d{4} /.test(line)) this.errors.push(line);
    const [, service, address] = STARTED.exec(line) ?? [];
    if (service === undefined) return;
    this.addresses[service] = address;
    if (Object.keys(this.addresses).length === services) this.#started.resolve();
  }
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** Megabytes of the heap of each server and of its JavaScript processes. */
const HEAP_MB = 192;
/**
 * Megabytes of a half of the young generation. V8 doubles it up to 16 while a heap lives, in each thread. In an hour this
 * looks like a leak.
 */
const YOUNG_MB = 2;
/** Limits of V8's heaps in a server. */
export const HEAP_LIMITS = [`--max-old-space-size=${HEAP_MB}`, `--max-semi-space-size=${YOUNG_MB}`];
/** Bytes that the requests in flight may take, so that a flood reaches the limit. */
export const REQUEST_MEMORY = 12 * 2 ** 20;

/** `tritonjs serve` on a polled repository in `folder`, with traces in the same folder. */
export function startServeCommand({ folder, python, logFile, env }) {
  const repository = join(folder, "models");
  writeFiles(repository, servedFiles({ python }));
  const args = [
    ...HEAP_LIMITS,
    join(root, "packages", "cli", "dist", "main.js"),
    ...["serve", `--model-repository=${repository}`, "--model-control-mode=poll", "--repository-poll-secs=1"],
    ...["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"],
    ...["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--allow-gpu-metrics=false"],
    ...["--allow-client-shm=true", `--request-memory-byte-size=${REQUEST_MEMORY}`],
    ...[
      "--trace-config=level=TIMESTAMPS",
      "--trace-config=rate=20",
      "--trace-config=triton,log-frequency=500",
    ],
    `--trace-config=triton,file=${join(folder, "trace.json")}`,
    "--backend-config=python,stub-timeout-seconds=120",
  ];
  const server = new ServerProcess("serve", args, { env, services: 3, logFile });
  return Object.assign(server, { repository });
}
