import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { Log } from "../log/log.js";
import { RequestTrace } from "./request-trace.js";
import { SpanExporter } from "./span-exporter.js";
import { readTraceparent } from "./trace-context.js";
import { TraceFiles } from "./trace-files.js";
import { resolveOpenTelemetry, resolveTraceOptions, type TraceOptions } from "./trace-options.js";
import { TraceSetting, type TraceSettingOwner } from "./trace-setting.js";
import {
  CHANGEABLE_TRACE_SETTINGS,
  type ChangeableTraceSetting,
  type TraceChanges,
  type TraceSettings,
} from "./trace-settings.js";
import { spansOf } from "./trace-spans.js";

const NOTHING: ReadonlySet<ChangeableTraceSetting> = new Set();

/**
 * The traces of a server: decides which requests are traced, with which settings, and where the traces go. A model has
 * the settings of the server, except for its own ones.
 *
 * @example
 * ```ts
 * triton.service.tracing?.update("resnet", { levels: ["TIMESTAMPS"], rate: 100 });
 * ```
 */
export class Tracing {
  readonly #clock: Clock;
  readonly #files: TraceFiles;
  readonly #exporter: SpanExporter | undefined;
  readonly #owner: TraceSettingOwner;
  /** The settings with which the server was started. */
  readonly #initial: TraceSettings;
  #server: TraceSetting;
  readonly #models = new Map<string, TraceSetting>();
  /** Replaced settings that still have traces in progress. */
  readonly #replaced = new Set<TraceSetting>();
  #lastId = 0;

  /** @throws TritonError INVALID_ARG that lists every problem of the options. */
  constructor(options: TraceOptions, clock: Clock, log: Log) {
    this.#initial = resolveTraceOptions(options);
    this.#clock = clock;
    this.#files = new TraceFiles(this.#initial.file, log);
    const exporter =
      this.#initial.mode === "opentelemetry"
        ? new SpanExporter(resolveOpenTelemetry(options), clock, log)
        : undefined;
    this.#exporter = exporter;
    this.#owner = {
      files: this.#files,
      exportTrace: exporter && ((trace) => exporter.add(spansOf(trace))),
      wallOffsetMs: () => clock.wallNow() - clock.now(),
      nextId: () => ++this.#lastId,
      forget: (setting) => this.#replaced.delete(setting),
    };
    this.#server = new TraceSetting(this.#initial, NOTHING, this.#owner);
    const { invalidReason, levels } = this.#server;
    if (levels.includes("TENSORS") && exporter !== undefined) {
      log.warning("trace level TENSORS has no effect in trace mode opentelemetry: use mode triton");
    }
    // With a rate of 0, traces that clients began are still continued.
    if (levels.length > 0 && invalidReason !== "" && exporter === undefined)
      log.warning(`tracing is off: ${invalidReason}`);
  }

  /** The settings for requests to a model, or those of the server for an empty name. */
  settings(modelName = ""): TraceSettings {
    return this.#settingOf(modelName).settings;
  }

  /**
   * Changes settings of a model, or of the server for an empty name. Models follow the server in settings that they do
   * not have themselves. Finished traces are written.
   *
   * @throws TritonError INVALID_ARG for settings with which nothing could be recorded, unless tracing is off.
   */
  update(modelName: string, changes: TraceChanges): void {
    this.#update(modelName, changes);
    if (modelName !== "") return;
    for (const name of [...this.#models.keys()]) this.#update(name, {});
  }

  /**
   * Samples a request that is about to be sent to a model. Returns its trace, or undefined if it is not traced. The
   * caller must release the trace.
   *
   * @param traceparent header `traceparent` of the request, whose trace is continued if the server supports it
   */
  sample(modelName: string, traceparent?: string): RequestTrace | undefined {
    const context = this.continuesTraces ? readTraceparent(traceparent) : undefined;
    const trace = this.#settingOf(modelName).sample(context);
    return trace && new RequestTrace(trace);
  }

  /** True if traces that clients began are continued: W3C's `traceparent` is then read. */
  get continuesTraces(): boolean {
    return this.#exporter !== undefined;
  }

  /** Milliseconds on the clock that times traces. */
  now(): number {
    return this.#clock.now();
  }

  /** Writes all finished traces. Resolves when they are written. */
  async close(): Promise<void> {
    for (const setting of [this.#server, ...this.#models.values(), ...this.#replaced]) setting.save();
    await Promise.all([this.#files.close(), this.#exporter?.close()]);
  }

  #settingOf(modelName: string): TraceSetting {
    return this.#models.get(modelName) ?? this.#server;
  }

  #update(modelName: string, changes: TraceChanges): void {
    const isServer = modelName === "";
    const current = isServer ? this.#server : this.#models.get(modelName);
    const above = isServer ? this.#initial : this.#server.settings;
    const specified = new Set(
      CHANGEABLE_TRACE_SETTINGS.filter(
        (name) => changes[name] !== null && (changes[name] !== undefined || current?.specified.has(name)),
      ),
    );
    if (!isServer && specified.size === 0) {
      this.#models.delete(modelName);
      this.#retire(current);
      return;
    }
    const own = Object.fromEntries(
      [...specified].map((name) => [name, changes[name] ?? current?.settings[name]]),
    );
    const next = new TraceSetting({ ...above, ...own }, specified, this.#owner);
    if (!next.valid && next.levels.length > 0) {
      throw new TritonError("INVALID_ARG", `Attempting to set invalid trace setting :${next.invalidReason}`, {
        reason: "INVALID_SETTING",
      });
    }
    if (isServer) this.#server = next;
    else this.#models.set(modelName, next);
    this.#retire(current);
  }

  #retire(setting: TraceSetting | undefined): void {
    if (setting === undefined) return;
    this.#replaced.add(setting);
    setting.replace();
  }
}
