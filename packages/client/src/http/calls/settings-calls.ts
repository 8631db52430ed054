import type { CallOptions } from "../client-options.js";
import type { JsonSource } from "../json/write-json.js";
import { modelPath } from "../paths.js";
import { jsonOf } from "./http-endpoint.js";
import { RepositoryCalls } from "./repository-calls.js";
import type { Settings } from "./server-answers.js";

/** Options of calls about trace settings: of the server, or of one model. */
export interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** New values by name; null undoes an earlier change. */
export type NewSettings = Readonly<Record<string, JsonSource>>;

/** Calls of trace and log settings. */
export abstract class SettingsCalls extends RepositoryCalls {
  /** Returns the trace settings of the server or of a model. */
  getTraceSettings({ modelName, ...call }: TraceCallOptions = {}): Promise<Settings> {
    return this.get(tracePath(modelName), call);
  }

  /**
   * Changes trace settings and returns all of them.
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

  /** Returns the log settings. */
  getLogSettings(call: CallOptions = {}): Promise<Settings> {
    return this.get("v2/logging", call);
  }

  /** Changes log settings and returns all of them. */
  async updateLogSettings(settings: NewSettings, call: CallOptions = {}): Promise<Settings> {
    return jsonOf(await this.post("v2/logging", settings, "changes", call)) as Settings;
  }
}

function tracePath(modelName: string | undefined): string {
  return modelName === undefined ? "v2/trace/setting" : modelPath(modelName, undefined, "trace/setting");
}
