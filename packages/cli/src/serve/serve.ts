import { type Frontend, Triton } from "@tritonjs/core";
import { lineLogger } from "@tritonjs/core/internal";
import type { Terminal } from "@tritonjs/perf/internal";
import { LONGEST_TIMEOUT_MS, type ServerMetadata, statusText } from "@tritonjs/protocol";
import { type InferenceService, serviceOf } from "@tritonjs/server";
import type { CommandAdditions } from "../command-context.js";
import { descriptorFault } from "../descriptor-fault.js";
import { OptionError } from "../options/option.js";
import { type OptionValues, SERVICES, type ServiceName } from "../options/options.js";
import { readArguments } from "../options/read-arguments.js";
import { repositoryPaths } from "./class-models.js";
import { loadExtensions } from "./extensions.js";
import {
  accessWarning,
  frontendThreads,
  openChosenFrontends,
  openDashboard,
  openOpenAi,
  StartError,
} from "./open-frontends.js";
import { keepHeapRoom, limitMalloc, returnFreeMemory } from "./process-memory.js";
import { metricsComplaints, traceSettings, tritonSettings } from "./triton-settings.js";

const PROGRESS_SECONDS = 10;

/**
 * Serves model repositories until the process is asked to stop.
 *
 * @returns the exit code: 0 if all requests were answered before the stop, 1 otherwise
 * @throws OptionError for an invalid command line.
 */
export async function serve(
  args: readonly string[],
  terminal: Terminal,
  additions: CommandAdditions,
): Promise<number> {
  const { values, warnings } = readArguments(args, terminal.environment);
  limitMalloc(terminal.environment);
  returnFreeMemory();
  keepHeapRoom();
  const traces = traceSettings(values, terminal.environment);
  let triton: Triton | undefined;
  const format = () => triton?.server.log.settings.format ?? values["log-format"];
  const logger = lineLogger((line) => terminal.writeError(line), format);
  /** Writes a line for the user of the command, which is plain text unless the log is in JSON. */
  const say: Say = (level, text) => {
    if (format() === "json") logger[level](text);
    else terminal.writeError(`${text}\n`);
  };
  for (const warning of [...warnings, ...traces.warnings]) say("warn", warning);
  const stopRequested = terminal.stopRequested();
  let isServing = false;
  try {
    const pages = values.dashboard ? await openDashboard(values) : undefined;
    const frontends = await openChosenFrontends(values, pages, await openOpenAi(values));
    const loaded = await loadExtensions({
      values,
      additions,
      environment: terminal.environment,
      spans: traces.spans,
      logError: (part, message) => triton?.server.log.of(part).error(message),
    });
    triton = new Triton({
      ...tritonSettings(values, logger),
      trace: traces.options,
      extensions: loaded.map(({ extension }) => extension),
    });
    for (const complaint of metricsComplaints(values["metrics-config"])) {
      triton.server.log.of("metrics").error(complaint);
    }
    const started = start(triton, loaded, frontends, values, terminal.columns).then(() => {
      isServing = true;
    });
    started.catch(() => {});
    // A request to stop during the load of models takes effect at once.
    await Promise.race([started, stopRequested]);
    await stopRequested;
  } catch (error) {
    return await fail(error, triton, say);
  }
  say("info", `Signal (${await stopRequested}) received.`);
  if (isServing) return stopServer(triton, values["exit-timeout-secs"], values["exit-delay-secs"]);
  await settlesWithin(triton.close(), LAST_WORDS_MS);
  return 0;
}

type Say = (level: "error" | "warn" | "info", text: string) => void;

const DEFAULT_COLUMNS = 80;

async function start(
  triton: Triton,
  loaded: Awaited<ReturnType<typeof loadExtensions>>,
  frontends: readonly Frontend[],
  values: OptionValues,
  columns = DEFAULT_COLUMNS,
): Promise<void> {
  const service = serviceOf(triton);
  const progress = reportProgress(service);
  try {
    await triton.ready();
  } finally {
    progress.stop();
    await logStart(service, values, columns);
  }
  for (const { ready } of loaded) await ready?.();
  const { addresses } = await triton.serve({ frontends, frontendThreads: frontendThreads(values) });
  for (const [name, { host, port }] of Object.entries(addresses)) {
    const address = host.includes(":") ? `[${host}]` : host;
    const log = service.log.of(name === "grpc" ? "grpc_server" : "http_server");
    log.info(`Started ${SERVICES[name as ServiceName]?.logName ?? name} at ${address}:${port}`);
  }
  const warning = accessWarning(values);
  if (warning !== undefined) service.log.of("main").warning(warning);
}

/** Logs the models that are still loading, every ten seconds until stopped. */
export function reportProgress(service: InferenceService): { stop(): void } {
  let seconds = 0;
  const timer = setInterval(async () => {
    seconds += PROGRESS_SECONDS;
    const index = await service.repositoryIndex(false).catch(() => undefined);
    if (index === undefined) {
      // The server is closing.
      clearInterval(timer);
      return;
    }
    const loading = index.filter(({ state }) => state === "LOADING");
    const names = loading.map(({ name, version }) => `${name}:${version}`).join(", ");
    if (names !== "") service.log.of("server").info(`still loading after ${seconds} seconds: ${names}`);
  }, PROGRESS_SECONDS * 1000).unref();
  return { stop: () => clearInterval(timer) };
}

async function fail(error: unknown, triton: Triton | undefined, say: Say): Promise<number> {
  if (error instanceof OptionError) throw error;
  if (error instanceof StartError) {
    triton?.server.log.of("main").error(error.message);
    if (error.hint !== "") say("error", error.hint);
  } else say("error", `error: creating server: ${statusText(error).replace(": ", " - ")}`);
  const fault = descriptorFault(error);
  if (fault !== undefined) say("error", fault);
  await triton?.close();
  return 1;
}

/** Time after the drain to close connections, and for a model that is still loading. */
const LAST_WORDS_MS = 1000;

/** Stops a server. Requests in flight may finish within the time limit. */
async function stopServer(triton: Triton, exitTimeoutSecs: number, exitDelaySecs: number): Promise<number> {
  const log = triton.server.log.of("server");
  const delaySecs = Math.max(0, exitDelaySecs);
  if (delaySecs > 0) log.info(`Accepting requests for ${delaySecs} more seconds.`);
  else log.info("Waiting for in-flight requests to complete.");
  const timeoutMs = Math.min((delaySecs + Math.max(0, exitTimeoutSecs)) * 1000, LONGEST_TIMEOUT_MS);
  const closed = triton.close();
  if (await settlesWithin(closed, timeoutMs)) return 0;
  log.error("Exit timeout expired. Exiting immediately.");
  await settlesWithin(closed, LAST_WORDS_MS);
  return 1;
}

async function settlesWithin(promise: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([promise.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}

function optionRows(server: ServerMetadata, values: OptionValues): [option: string, value: string][] {
  const isStrict = values["disable-auto-complete-config"] || values["strict-model-config"] === true;
  const isCached = values["cache-config"].length > 0 || values["response-cache-byte-size"] !== undefined;
  return [
    ["server_id", server.name],
    ["server_version", server.version],
    ["server_extensions", server.extensions.join(" ")],
    ...repositoryPaths(values).map((path, i): [string, string] => [`model_repository_path[${i}]`, path]),
    ["model_control_mode", `MODE_${values["model-control-mode"].toUpperCase()}`],
    ...values["load-model"].map((name, i): [string, string] => [`startup_models_${i}`, name]),
    ["strict_model_config", flag(isStrict)],
    ["model_config_name", values["model-config-name"]],
    ["rate_limit", values["rate-limit"].toUpperCase()],
    ...values["rate-limit-resource"].map(({ name, count, device }): [string, string] => [
      `rate_limit_resource[${name}]`,
      device === undefined ? `${count}` : `${count} on device ${device}`,
    ]),
    ["strict_readiness", flag(values["strict-readiness"])],
    ["exit_timeout", `${values["exit-timeout-secs"]}`],
    ["cache_enabled", flag(isCached)],
  ];
}

function flag(value: boolean): string {
  return value ? "1" : "0";
}

interface ModelRow {
  readonly name: string;
  readonly version: string;
  readonly state: string;
  readonly reason: string;
}

async function modelRows(service: InferenceService): Promise<ModelRow[]> {
  const index = await service.repositoryIndex(false);
  return index.map(({ name, version = "-", state = "Not loaded", reason = "" }) => {
    return { name, version, state, reason: reason.replaceAll("\n", " ") };
  });
}

/**
 * Logs the models and the options of a server: as tables, as tritonserver shows them at the start, or in JSON as an
 * object for each model and one for the options.
 */
async function logStart(service: InferenceService, values: OptionValues, columns: number): Promise<void> {
  const log = service.log.of("server");
  // Without a repository there are no models to show.
  const models = await modelRows(service).catch(() => undefined);
  const options = optionRows(service.serverMetadata(), values);
  if (log.settings.format === "json") {
    for (const { name, version, state, reason } of models ?? []) {
      const about = { model: name, version, state, ...(reason !== "" && { reason }) };
      log.info(`model '${name}' version ${version}: ${statusOf(state, reason)}`, about);
    }
    log.info("options of the server", { options: Object.fromEntries(options) });
    return;
  }
  if (models !== undefined) {
    const rows = models.map(({ name, version, state, reason }) => [name, version, statusOf(state, reason)]);
    log.info(`\n${textTable(["Model", "Version", "Status"], rows, columns)}\n`);
  }
  log.info(`\n${textTable(["Option", "Value"], options, columns)}\n`);
}

function statusOf(state: string, reason: string): string {
  return [state, reason].filter((part) => part !== "").join(": ");
}

const NARROWEST = 8;

/**
 * A table with lines around its cells, as tritonserver draws them. Cells that are too long for the width continue on
 * further lines.
 */
export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number,
): string {
  const longest = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map((cell) => cell.length)),
  );
  // Each cell has a line and a space before it, and a space after it. A line ends the row.
  const widths = fittingWidths(longest, columns - 3 * titles.length - 1);
  const rule = `+${widths.map((width) => "-".repeat(width + 2)).join("+")}+`;
  const linesOf = (cells: readonly string[]): string[] => {
    const wrapped = widths.map((width, column) => wrap(cells[column] ?? "", width));
    const height = Math.max(...wrapped.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) => {
      return `|${widths.map((width, column) => ` ${(wrapped[column]![line] ?? "").padEnd(width)} `).join("|")}|`;
    });
  };
  return [rule, ...linesOf(titles), rule, ...rows.flatMap(linesOf), rule].join("\n");
}

function fittingWidths(longest: readonly number[], room: number): number[] {
  const widths = [...longest];
  for (;;) {
    const excess = widths.reduce((sum, width) => sum + width, 0) - room;
    const widest = Math.max(...widths);
    if (excess <= 0 || widest <= NARROWEST) return widths;
    const next = Math.max(NARROWEST, ...widths.filter((width) => width < widest));
    const column = widths.indexOf(widest);
    const shrunk = Math.max(widest - excess, next === widest ? widest - 1 : Math.min(next, widest - 1));
    widths[column] = Math.max(NARROWEST, shrunk);
  }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const joined = line === "" ? word : `${line} ${word}`;
    if (joined.length <= width) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    let rest = word;
    for (; rest.length > width; rest = rest.slice(width)) lines.push(rest.slice(0, width));
    line = rest;
  }
  return [...lines, line];
}
