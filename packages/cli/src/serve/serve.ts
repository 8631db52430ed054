import { type Frontend, Triton, type TritonOptions } from "@tritonjs/core";
import { type InferenceService, lineLogger } from "@tritonjs/core/frontend";
import { statusText } from "@tritonjs/protocol";
import { descriptorFault } from "../descriptor-fault.js";
import type { Extensions } from "../extensions.js";
import { OptionError } from "../options/option-error.js";
import type { OptionValues } from "../options/options.js";
import { readArguments } from "../options/read-arguments.js";
import type { Terminal } from "../terminal.js";
import { metricsComplaints } from "./metrics-settings.js";
import { openChosenFrontends, SERVICE_NAMES, StartError } from "./open-frontends.js";
import { loadSpanTracer } from "./span-tracer.js";
import { modelTable, optionTable } from "./start-tables.js";
import { abandonServer, stopServer } from "./stop-server.js";
import { traceSettings } from "./trace-settings.js";
import { tritonSettings } from "./triton-settings.js";

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
  const traces = traceSettings(values, terminal.environment);
  for (const warning of [...warnings, ...traces.warnings]) terminal.writeError(`${warning}\n`);
  const stopRequested = terminal.stopRequested();
  let triton: Triton | undefined;
  let isServing = false;
  try {
    const frontends = openChosenFrontends(values);
    const tracer =
      traces.spans && (await loadSpanTracer(traces.spans, (message) => triton?.service.log.error(message)));
    triton = createTriton(values, terminal, {
      trace: traces.options,
      ...(tracer !== undefined && { tracer }),
      ...extensions,
    });
    const started = start(triton, frontends, values).then(() => {
      isServing = true;
    });
    started.catch(() => {});
    // A request to stop during the load of models takes effect at once.
    await Promise.race([started, stopRequested]);
    await stopRequested;
  } catch (error) {
    return await fail(error, triton, terminal);
  }
  terminal.writeError(`Signal (${await stopRequested}) received.\n`);
  return isServing ? stopServer(triton, values["exit-timeout-secs"]) : abandonServer(triton);
}

function createTriton(
  values: OptionValues,
  terminal: Terminal,
  extensions: Extensions & Pick<TritonOptions, "trace">,
): Triton {
  let triton: Triton | undefined;
  const format = () => triton?.service.log.settings.format ?? values["log-format"];
  const logger = lineLogger((line) => terminal.writeError(line), format);
  triton = new Triton({ ...tritonSettings(values, logger), ...extensions });
  for (const complaint of metricsComplaints(values["metrics-config"])) triton.service.log.error(complaint);
  return triton;
}

/** Loads the models, shows the result, and opens the frontends. */
async function start(triton: Triton, frontends: readonly Frontend[], values: OptionValues): Promise<void> {
  const { service } = triton;
  const progress = reportProgress(service);
  try {
    await triton.ready();
  } finally {
    progress.stop();
    // Without a repository there is no table to show.
    const models = await modelTable(service).catch(() => undefined);
    if (models !== undefined) service.log.info(`\n${models}\n`);
    service.log.info(`\n${optionTable(service.serverMetadata(), values)}\n`);
  }
  const { addresses } = await triton.serve({ frontends });
  for (const [name, { host, port }] of Object.entries(addresses)) {
    const address = host.includes(":") ? `[${host}]` : host;
    service.log.info(`Started ${SERVICE_NAMES[name] ?? name} at ${address}:${port}`);
  }
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

async function fail(error: unknown, triton: Triton | undefined, terminal: Terminal): Promise<number> {
  if (error instanceof OptionError) throw error;
  if (error instanceof StartError) {
    triton?.service.log.error(error.message);
    if (error.hint !== "") terminal.writeError(`${error.hint}\n`);
  } else terminal.writeError(`error: creating server: ${statusText(error).replace(": ", " - ")}\n`);
  const fault = descriptorFault(error);
  if (fault !== undefined) terminal.writeError(`${fault}\n`);
  await triton?.close();
  return 1;
}
