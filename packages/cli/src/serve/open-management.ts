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
  const frontends = [
    { name: "http", title: "HTTP", restricted: values["http-restricted-api"], option: "http-restricted-api" },
    {
      name: "grpc",
      title: "gRPC",
      restricted: values["grpc-restricted-protocol"],
      option: "grpc-restricted-protocol",
    },
  ] as const;
  for (const { name, title, restricted, option } of frontends) {
    const address = values[`${name}-address`];
    if (!values[`allow-${name}`] || isLoopback(address)) continue;
    const closed = new Set(restricted.flatMap(({ groups }) => groups));
    const groups = MANAGEMENT.filter((group) => !closed.has(group));
    if (groups.length === 0) continue;
    for (const group of groups) open.add(group);
    places.push(`${title} on ${address}`);
    fixes.push(`--${name}-address=127.0.0.1 or --${option}=${groups.join(",")}:<header>=<secret>`);
  }
  if (open.size === 0) return undefined;
  const groups = MANAGEMENT.filter((group) => open.has(group)).join(", ");
  return `other machines can use ${groups} over ${places.join(" and ")}; to close them: ${fixes.join("; ")}`;
}

function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127(?:\.\d+){3}$/.test(address);
}
