import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { root } from "../../scripts/run.mjs";
import { now } from "../now.mjs";
import { until } from "../until.mjs";
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
    return childrenOf(this.pid).filter((pid) => /process-main|run_model\.py/.test(commandOf(pid)));
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
