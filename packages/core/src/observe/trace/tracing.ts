import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { Log } from "../log/log.js";
import { RecordedTrace } from "./recorded-trace.js";
import type { RequestTrace } from "./request-trace.js";
import type { RequestArrival, RequestTracer } from "./request-tracer.js";
import { TraceFiles } from "./trace-files.js";
import { resolveTraceOptions, type TraceOptions } from "./trace-options.js";
import { TraceSetting, type TraceSettingOwner } from "./trace-setting.js";
import {
  CHANGEABLE_TRACE_SETTINGS,
  type ChangeableTraceSetting,
  type TraceChanges,
  type TraceSettings,
} from "./trace-settings.js";

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
  readonly #tracer: RequestTracer | undefined;
  readonly #owner: TraceSettingOwner;
  /** The settings with which the server was started. */
  readonly #initial: TraceSettings;
  /** Called when the settings have changed. */
  onUpdate: (() => void) | undefined;
  #server: TraceSetting;
  readonly #models = new Map<string, TraceSetting>();
  /** Replaced settings that still have traces in progress. */
  readonly #replaced = new Set<TraceSetting>();
  #lastId = 0;

  /**
   * @param tracer makes the spans of mode "opentelemetry"
   * @throws TritonError INVALID_ARG that lists every problem of the options, or names the missing tracer.
   */
  constructor(options: TraceOptions, clock: Clock, log: Log, tracer?: RequestTracer) {
    this.#initial = resolveTraceOptions(options, tracer !== undefined);
    this.#clock = clock;
    this.#files = new TraceFiles(this.#initial.file, log);
    this.#tracer = this.#initial.mode === "opentelemetry" ? tracer : undefined;
    this.#owner = {
      files: this.#files,
      nextId: () => ++this.#lastId,
      forget: (setting) => this.#replaced.delete(setting),
    };
    this.#server = new TraceSetting(this.#initial, NOTHING, this.#owner);
    const { invalidReason, levels } = this.#server;
    if (levels.includes("TENSORS") && this.#tracer !== undefined) {
      log.warning("trace level TENSORS has no effect in trace mode opentelemetry: use mode triton");
    }
    // With a rate of 0, traces that clients began are still continued.
    if (levels.length > 0 && invalidReason !== "" && this.#tracer === undefined)
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
    if (modelName === "") for (const name of [...this.#models.keys()]) this.#update(name, {});
    this.onUpdate?.();
  }

  /** True if requests of some model may be traced. */
  get active(): boolean {
    return [this.#server, ...this.#models.values()].some(({ levels }) => levels.length > 0);
  }

  /**
   * Samples a request that is about to be sent to a model. Returns its trace, or undefined if it is not traced. The
   * caller must release the trace.
   *
   * @param arrival how the request came; undefined for a request of this process
   */
  sample(modelName: string, arrival?: RequestArrival): RequestTrace | undefined {
    const setting = this.#settingOf(modelName);
    if (this.#tracer === undefined) {
      const trace = setting.sample();
      return trace && new RecordedTrace(trace);
    }
    if (setting.levels.length === 0) return undefined;
    const now = () => this.now();
    const wallOffsetMs = this.#clock.wallNow() - now();
    return this.#tracer.start({ modelName, selected: setting.selects(), arrival, now, wallOffsetMs });
  }

  /** Milliseconds on the clock that times traces. */
  now(): number {
    return this.#clock.now();
  }

  /** Writes all finished traces. Resolves when they are written. */
  async close(): Promise<void> {
    for (const setting of [this.#server, ...this.#models.values(), ...this.#replaced]) setting.save();
    await Promise.all([this.#files.close(), this.#tracer?.close?.()]);
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
