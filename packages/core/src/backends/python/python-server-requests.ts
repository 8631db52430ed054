import { TritonError } from "@tritonjs/protocol";
import type { ExecutorContext } from "../../instance/backend.js";
import type { LogSubject } from "../../observe/log/logger.js";
import { type FromPython, type WireAsk, writeError } from "./messages.js";
import { ModelMetrics } from "./model-metrics.js";

/**
 * Serves the requests of a Python model to the server other than inference: metrics, loading of models, log messages.
 */
export class PythonServerRequests {
  readonly #metrics: ModelMetrics;

  constructor(
    private readonly context: Pick<ExecutorContext, "control" | "log" | "metrics" | "info">,
    private readonly send: (header: object) => void,
    /** Returns the fields of lines about the requests that run now. */
    private readonly running: () => LogSubject,
  ) {
    this.#metrics = new ModelMetrics(context.metrics());
  }

  answer(ask: WireAsk, body: Uint8Array): void {
    const { call } = ask;
    this.#do(ask, body).then(
      (value) => this.send({ type: "answer", call, value: value ?? null }),
      (thrown) => this.send({ type: "answer", call, error: writeError(thrown) }),
    );
  }

  forget({ what, id }: Extract<FromPython, { type: "forget" }>): void {
    if (what === "deleteMetric") this.#metrics.deleteMetric(id);
    else this.#metrics.deleteFamily(id);
  }

  log({ level, message }: Extract<FromPython, { type: "log" }>): void {
    const { log, info } = this.context;
    const about = { model: info.modelName, version: info.modelVersion, ...this.running() };
    if (level === "ERROR") log.error(message, about);
    else if (level === "WARNING") log.warning(message, about);
    else if (level === "INFO") log.info(message, about);
    else log.verbose(1, message, about);
  }

  /** Releases everything when the process has ended. */
  close(): void {
    this.#metrics.clear();
  }

  async #do({ what, arguments: given, files }: WireAsk, body: Uint8Array): Promise<unknown> {
    const metrics = this.#metrics;
    switch (what) {
      case "family":
        return metrics.createFamily(...(given as Parameters<ModelMetrics["createFamily"]>));
      case "metric":
        return metrics.createMetric(...(given as Parameters<ModelMetrics["createMetric"]>));
      case "increment":
      case "set":
      case "observe":
        return metrics.change(given[0] as number, what, given[1] as number);
      case "value":
        return metrics.value(given[0] as number);
      default:
        return this.#control(what, given, files, body);
    }
  }

  async #control(
    what: string,
    given: readonly unknown[],
    files: WireAsk["files"],
    body: Uint8Array,
  ): Promise<unknown> {
    const { control, info } = this.context;
    if (control === undefined) {
      throw new TritonError(
        "UNAVAILABLE",
        `model '${info.modelName}' runs without a server, so it cannot ask one`,
        {
          reason: "NO_SERVER",
        },
      );
    }
    const name = String(given[0]);
    if (what === "ready") return control.isReady(name, String(given[1]));
    if (what === "unload") return control.unload(name, { unloadDependents: given[1] === true });
    if (what !== "load")
      throw new TritonError(
        "INTERNAL",
        `model '${info.modelName}' asked the server for '${what}', which it does not know`,
      );
    const config = given[1] === "" ? {} : { config: String(given[1]) };
    const entries = files.map(
      ({ name: path, offset, size }) =>
        [path.replace(/^file:/, ""), new Uint8Array(body.subarray(offset, offset + size))] as const,
    );
    return control.load(name, { ...config, ...(entries.length === 0 ? {} : { files: new Map(entries) }) });
  }
}
