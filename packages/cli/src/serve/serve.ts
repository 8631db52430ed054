import { type Frontend, Triton } from "@tritonjs/core";
import type { InferenceService } from "@tritonjs/core/frontend";
import { lineLogger } from "@tritonjs/core/internal";
import { LONGEST_TIMEOUT_MS, statusText } from "@tritonjs/protocol";
import type { Extensions, Terminal } from "../command-context.js";
import { descriptorFault } from "../descriptor-fault.js";
import { OptionError } from "../options/option.js";
import type { OptionValues } from "../options/options.js";
import { readArguments } from "../options/read-arguments.js";
import { accessNote } from "./management-access.js";
import {
  frontendThreads,
  openChosenFrontends,
  openDashboard,
  openOpenAi,
  SERVICE_NAMES,
  StartError,
} from "./open-frontends.js";
import { keepHeapRoom, limitMalloc, returnFreeMemory } from "./process-memory.js";
import { logStart } from "./start-tables.js";
import { loadSpanTracer, traceSettings } from "./trace-settings.js";
import { metricsComplaints, tritonSettings } from "./triton-settings.js";

/** Seconds between two reports on models that are still loading. */
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
  extensions: Extensions,
): Promise<number> {
  const { values, warnings } = readArguments(args, terminal.environment);
  limitMalloc(terminal.environment);
  returnFreeMemory();
  keepHeapRoom();
  const traces = traceSettings(values, terminal.environment);
  let triton: Triton | undefined;
  const format = () => triton?.service.log.settings.format ?? values["log-format"];
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
    const tracer =
      traces.spans && (await loadSpanTracer(traces.spans, (message) => triton?.service.log.error(message)));
    triton = new Triton({
      ...tritonSettings(values, logger),
      trace: traces.options,
      ...(tracer !== undefined && { tracer }),
      ...extensions,
    });
    for (const complaint of metricsComplaints(values["metrics-config"])) {
      triton.service.log.error(complaint);
    }
    const started = start(triton, frontends, values, terminal.columns).then(() => {
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
  return isServing
    ? stopServer(triton, values["exit-timeout-secs"], values["exit-delay-secs"])
    : abandonServer(triton);
}

/** Writes a line for the user of the command. */
type Say = (level: "error" | "warn" | "info", text: string) => void;

/** Width of tables where the output is not a terminal. */
const DEFAULT_COLUMNS = 80;

/** Loads the models, shows the result, and opens the frontends. */
async function start(
  triton: Triton,
  frontends: readonly Frontend[],
  values: OptionValues,
  columns = DEFAULT_COLUMNS,
): Promise<void> {
  const { service } = triton;
  const progress = reportProgress(service);
  try {
    await triton.ready();
  } finally {
    progress.stop();
    await logStart(service, values, columns);
  }
  const { addresses } = await triton.serve({ frontends, frontendThreads: frontendThreads(values) });
  for (const [name, { host, port }] of Object.entries(addresses)) {
    const address = host.includes(":") ? `[${host}]` : host;
    service.log.info(`Started ${SERVICE_NAMES[name] ?? name} at ${address}:${port}`);
  }
  const note = accessNote(values);
  if (note !== undefined) service.log[note.level](note.text);
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
    if (names !== "") service.log.info(`still loading after ${seconds} seconds: ${names}`);
  }, PROGRESS_SECONDS * 1000).unref();
  return { stop: () => clearInterval(timer) };
}

async function fail(error: unknown, triton: Triton | undefined, say: Say): Promise<number> {
  if (error instanceof OptionError) throw error;
  if (error instanceof StartError) {
    triton?.service.log.error(error.message);
    if (error.hint !== "") say("error", error.hint);
  } else say("error", `error: creating server: ${statusText(error).replace(": ", " - ")}`);
  const fault = descriptorFault(error);
  if (fault !== undefined) say("error", fault);
  await triton?.close();
  return 1;
}

/** Time after the drain to close connections, and for a model that is still loading. */
const LAST_WORDS_MS = 1000;

/**
 * Stops a server. Requests in flight may finish within the time limit.
 *
 * @returns the exit code: 0, or 1 when requests were left at the time limit
 */
async function stopServer(triton: Triton, exitTimeoutSecs: number, exitDelaySecs: number): Promise<number> {
  const { log } = triton.service;
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

/** Stops a server that has not begun to serve. @returns the exit code */
async function abandonServer(triton: Triton): Promise<number> {
  await settlesWithin(triton.close(), LAST_WORDS_MS);
  return 0;
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
