import type { ServerMetadata } from "@tritonjs/core";
import type { OptionValues } from "../options/options.js";
import { table } from "./table.js";
import { repositoryPaths } from "./triton-settings.js";

/** What a server was started with, as tritonserver shows it. */
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
