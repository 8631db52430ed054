import type { CallOptions } from "../client-options.js";
import type { JsonSource } from "../json/write-json.js";
import { modelPath } from "../paths.js";
import { jsonOf } from "./http-endpoint.js";
import { RepositoryCalls } from "./repository-calls.js";
import type { Settings } from "./server-answers.js";

/** Settings of traces: those of the server, or those of one model. */
export interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** New values by name; null takes a change back. */
export type NewSettings = Readonly<Record<string, JsonSource>>;

/** Trace and log settings. */
export abstract class SettingsCalls extends RepositoryCalls {
  /** The trace settings of the server or of a model. */
  getTraceSettings({ modelName, ...call }: TraceCallOptions = {}): Promise<Settings> {
    return this.get(tracePath(modelName), call);
  }

  /**
   * Changes trace settings and returns what they are then.
   *
   * @example
   * ```ts
   * await client.updateTraceSettings({ trace_level: ["TIMESTAMPS"], trace_rate: "100" }, { modelName: "linear" });
   * ```
   */
  async updateTraceSettings(
    settings: NewSettings,
    { modelName, ...call }: TraceCallOptions = {},
  ): Promise<Settings> {
    return jsonOf(await this.post(tracePath(modelName), settings, "changes", call)) as Settings;
  }

  /** The log settings. */
  getLogSettings(call: CallOptions = {}): Promise<Settings> {
    return this.get("v2/logging", call);
  }

  /** Changes log settings and returns what they are then. */
  async updateLogSettings(settings: NewSettings, call: CallOptions = {}): Promise<Settings> {
    return jsonOf(await this.post("v2/logging", settings, "changes", call)) as Settings;
  }
}

function tracePath(modelName: string | undefined): string {
  return modelName === undefined ? "v2/trace/setting" : modelPath(modelName, undefined, "trace/setting");
}
