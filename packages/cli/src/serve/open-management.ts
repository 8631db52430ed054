import type { EndpointGroup } from "@tritonjs/core/types";
import type { OptionValues } from "../options/options.js";

/** Groups of operations that change the server. */
const MANAGEMENT: readonly EndpointGroup[] = ["model-repository", "shared-memory", "trace", "logging"];

/**
 * Warns of groups of operations that change the server and are open to other machines, as those of tritonserver are by
 * default.
 *
 * @returns one line; undefined if the groups are restricted, or the server listens on loopback addresses
 */
export function openManagementWarning(values: OptionValues): string | undefined {
  const open = new Set<EndpointGroup>();
  const places: string[] = [];
  const fixes: string[] = [];
  const frontends: readonly ManagedFrontend[] = [
    {
      name: "http",
      title: "HTTP",
      listens: values["allow-http"],
      restricted: values["http-restricted-api"],
      option: "http-restricted-api",
      offered: MANAGEMENT,
    },
    {
      name: "grpc",
      title: "gRPC",
      listens: values["allow-grpc"],
      restricted: values["grpc-restricted-protocol"],
      option: "grpc-restricted-protocol",
      offered: MANAGEMENT,
    },
    {
      name: "openai",
      title: "OpenAI's endpoints",
      listens: values["openai-port"] !== undefined && !hasKeys(values),
      restricted: values["openai-restricted-api"],
      option: "openai-restricted-api",
      // They load and unload models only if clients control which models are loaded.
      offered: values["model-control-mode"] === "explicit" ? ["model-repository"] : [],
    },
  ];
  for (const { name, title, listens, restricted, option, offered } of frontends) {
    const address = values[`${name}-address`];
    if (!listens || isLoopback(address)) continue;
    const closed = new Set<string>(restricted.flatMap(({ groups }) => groups));
    const groups = offered.filter((group) => !closed.has(group));
    if (groups.length === 0) continue;
    for (const group of groups) open.add(group);
    places.push(`${title} on ${address}`);
    fixes.push(`--${name}-address=127.0.0.1 or --${option}=${groups.join(",")}:<header>=<secret>`);
  }
  if (open.size === 0) return undefined;
  const groups = MANAGEMENT.filter((group) => open.has(group)).join(", ");
  return `other machines can use ${groups} over ${places.join(" and ")}; to close them: ${fixes.join("; ")}`;
}

/** A frontend with operations that change the server. */
interface ManagedFrontend {
  readonly name: "http" | "grpc" | "openai";
  readonly title: string;
  readonly listens: boolean;
  readonly restricted: readonly { readonly groups: readonly string[] }[];
  readonly option: string;
  readonly offered: readonly EndpointGroup[];
}

function hasKeys(values: OptionValues): boolean {
  return values["openai-api-key"].length > 0 || values["openai-api-key-file"] !== "";
}

function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127(?:\.\d+){3}$/.test(address);
}
