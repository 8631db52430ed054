import type { InferenceService } from "@tritonjs/core/frontend";
import type { ServerMetadata } from "@tritonjs/protocol";
import type { OptionValues } from "../options/options.js";
import { repositoryPaths } from "./triton-settings.js";

/** The options of a server as a table, as tritonserver shows them at the start. */
export function optionTable(server: ServerMetadata, values: OptionValues): string {
  const isStrict = values["disable-auto-complete-config"] || values["strict-model-config"] === true;
  const isCached = values["cache-config"].length > 0 || values["response-cache-byte-size"] !== undefined;
  const rows: [option: string, value: string][] = [
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
  return table(["Option", "Value"], rows);
}

function flag(value: boolean): string {
  return value ? "1" : "0";
}

/** The models of a server as a table with versions and states, as tritonserver shows them at the start. */
export async function modelTable(service: InferenceService): Promise<string> {
  const index = await service.repositoryIndex(false);
  const rows = index.map(({ name, version = "-", state = "Not loaded", reason }) => {
    const status = [state, reason].filter((part) => part !== undefined && part !== "").join(": ");
    return [name, version, status.replaceAll("\n", " ")];
  });
  return table(["Model", "Version", "Status"], rows);
}

/** A table with lines around its cells, as tritonserver draws them. */
function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map((cell) => cell.length)),
  );
  const rule = `+${widths.map((width) => "-".repeat(width + 2)).join("+")}+`;
  const line = (cells: readonly string[]) =>
    `|${widths.map((width, column) => ` ${(cells[column] ?? "").padEnd(width)} `).join("|")}|`;
  return [rule, line(titles), rule, ...rows.map(line), rule].join("\n");
}
