import { inference } from "@tritonjs/grpc-messages";
import { method } from "../carrier/grpc-calls.js";
import type { CallOptions } from "../client-options.js";
import { RepositoryCalls } from "./repository-calls.js";

const { TraceSettingRequest, TraceSettingResponse, LogSettingsRequest, LogSettingsResponse } = inference;

const readTrace = method("TraceSetting", "reads", TraceSettingRequest, TraceSettingResponse);
const changeTrace = method("TraceSetting", "changes", TraceSettingRequest, TraceSettingResponse);
const readLog = method("LogSettings", "reads", LogSettingsRequest, LogSettingsResponse);
const changeLog = method("LogSettings", "changes", LogSettingsRequest, LogSettingsResponse);

/** Options of calls about trace settings: of the server, or of one model. */
export interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** Trace settings by name: all are lists of strings. */
export type ServerTraceSettings = Readonly<Record<string, readonly string[]>>;

/** New trace settings by name: null, or an empty list, undoes an earlier change. */
export type NewTraceSettings = Readonly<Record<string, string | number | readonly string[] | null>>;

/** Log settings by name. */
export type ServerLogSettings = Readonly<Record<string, string | number | boolean>>;

/** Calls of trace and log settings. */
export abstract class SettingsCalls extends RepositoryCalls {
  /** Returns the trace settings of the server or of a model. */
  async getTraceSettings({ modelName = "", ...call }: TraceCallOptions = {}): Promise<ServerTraceSettings> {
    return traceSettings(await this.calls.unary(readTrace, { modelName }, call));
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
    settings: NewTraceSettings,
    { modelName = "", ...call }: TraceCallOptions = {},
  ): Promise<ServerTraceSettings> {
    const values = Object.entries(settings).map(([name, value]) => [name, { value: texts(value) }]);
    const request = { modelName, settings: Object.fromEntries(values) };
    return traceSettings(await this.calls.unary(changeTrace, request, call));
  }

  /** Returns the log settings. */
  async getLogSettings(call: CallOptions = {}): Promise<ServerLogSettings> {
    return logSettings(await this.calls.unary(readLog, {}, call));
  }

  /** Changes log settings and returns all of them. */
  async updateLogSettings(settings: ServerLogSettings, call: CallOptions = {}): Promise<ServerLogSettings> {
    const values = Object.entries(settings).map(([name, value]) => [name, logValue(value)]);
    return logSettings(await this.calls.unary(changeLog, { settings: Object.fromEntries(values) }, call));
  }
}

function texts(value: NewTraceSettings[string]): string[] {
  if (value === null) return [];
  return typeof value === "object" ? [...value] : [String(value)];
}

function traceSettings({ settings }: inference.TraceSettingResponse): ServerTraceSettings {
  return Object.fromEntries(Object.entries(settings).map(([name, { value }]) => [name, value ?? []]));
}

function logValue(value: string | number | boolean): inference.LogSettingsRequest.SettingValue.$Properties {
  if (typeof value === "boolean") return { boolParam: value };
  return typeof value === "number" ? { uint32Param: value } : { stringParam: value };
}

function logSettings({ settings }: inference.LogSettingsResponse): ServerLogSettings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, { boolParam, uint32Param, stringParam }]) => [
      name,
      boolParam ?? uint32Param ?? stringParam ?? "",
    ]),
  );
}
