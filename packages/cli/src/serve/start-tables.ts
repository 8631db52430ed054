import type { InferenceService } from "@tritonjs/core/frontend";
import type { ServerMetadata } from "@tritonjs/protocol";
import type { OptionValues } from "../options/options.js";
import { repositoryPaths } from "./triton-settings.js";

/** The options of a server, as tritonserver shows them at the start. */
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

/** A model version, as the tables show it. */
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
 *
 * @param columns width of the tables in characters
 */
export async function logStart(
  service: InferenceService,
  values: OptionValues,
  columns: number,
): Promise<void> {
  const { log } = service;
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

/** Fewest columns that a cell is cut down to. */
const NARROWEST = 8;

/**
 * A table with lines around its cells, as tritonserver draws them. Cells that are too long for the width continue on
 * further lines.
 *
 * @param columns width that the table should fit, in characters
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

/** Takes characters from the widest column until all columns together fit. */
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

/** Breaks a text at spaces, and words that are longer than a line anywhere. */
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
