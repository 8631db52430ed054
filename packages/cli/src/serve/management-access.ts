import { randomBytes } from "node:crypto";
import type { Restriction } from "@tritonjs/core/frontend";
import { isLoopback } from "@tritonjs/core/internal";
import type { EndpointGroup } from "@tritonjs/core/types";
import { metricsAddress, type OptionValues } from "../options/options.js";

/** Groups of operations that change the server. */
const MANAGEMENT: readonly EndpointGroup[] = ["model-repository", "shared-memory", "trace", "logging"];

/** Header of `--access-token`: that of the library's clients. Over gRPC it has the prefix `triton-grpc-protocol-`. */
const ACCESS_TOKEN_HEADER = "triton-access-token";

/** A place with operations that change the server. */
export type ManagedPlace = "http" | "grpc" | "openai" | "dashboard" | "vertex-ai";

interface ManagedFrontend {
  readonly place: ManagedPlace;
  readonly title: string;
  readonly address: string;
  readonly addressOption: string;
  readonly restrictOption: string;
  /** Operations that no other option restricts; none where the frontend does not listen. */
  readonly groups: readonly EndpointGroup[];
}

/**
 * The operations that the command closes at a place: with an access token all that no other option restricts, and
 * without one those that other machines could use, unless `--compat=triton` opens them.
 */
export function closedGroups(values: OptionValues, place: ManagedPlace): readonly EndpointGroup[] {
  return closedFrontends(values).find((one) => one.place === place)?.groups ?? [];
}

/** The header of closed operations. Without an access token nobody knows the value. */
export function closedBy(values: OptionValues): Restriction {
  const value = values["access-token"] || randomBytes(32).toString("base64url");
  return { header: ACCESS_TOKEN_HEADER, value };
}

/** A line for the log about operations that change the server. */
export interface AccessNote {
  readonly level: "warning" | "info";
  readonly text: string;
}

/**
 * Says which operations `--compat=triton` opens to other machines, or which are closed to everyone and how to open them.
 *
 * @returns undefined if the options decide about all of them, or the server listens on loopback addresses
 */
export function accessNote(values: OptionValues): AccessNote | undefined {
  if (values["access-token"] !== "") return undefined;
  const frontends = exposedFrontends(values);
  if (frontends.length === 0) return undefined;
  const groups = MANAGEMENT.filter((group) => frontends.some((one) => one.groups.includes(group))).join(", ");
  const places = frontends.map(({ title, address }) => `${title} on ${address}`).join(" and ");
  const ways = frontends.map(
    ({ addressOption, restrictOption, groups: open }) =>
      `--${addressOption}=127.0.0.1 or --${restrictOption}=${open.join(",")}:<header>=<secret>`,
  );
  if (values.compat === "triton") {
    return {
      level: "warning",
      text:
        `--compat=triton: other machines can use ${groups} over ${places}; to close them: leave it out, or ` +
        ways.join("; "),
    };
  }
  return {
    level: "info",
    text:
      `no client can use ${groups} over ${places}; to open them to clients with a secret: set TRITONJS_ACCESS_TOKEN, ` +
      `or ${ways.join("; ")}; to everyone: --compat=triton`,
  };
}

function closedFrontends(values: OptionValues): readonly ManagedFrontend[] {
  if (values["access-token"] !== "") return managedFrontends(values);
  return values.compat === "triton" ? [] : exposedFrontends(values);
}

function exposedFrontends(values: OptionValues): readonly ManagedFrontend[] {
  return managedFrontends(values).filter(({ address }) => !isLoopback(address));
}

function managedFrontends(values: OptionValues): readonly ManagedFrontend[] {
  const restricted = (
    option: "http-restricted-api" | "grpc-restricted-protocol" | "openai-restricted-api",
  ) => {
    const closed = new Set<string>(values[option].flatMap(({ groups }) => groups));
    return MANAGEMENT.filter((group) => !closed.has(group));
  };
  const overHttp = restricted("http-restricted-api");
  const overGrpc = restricted("grpc-restricted-protocol");
  const pagesOverMetrics = values["allow-metrics"];
  // OpenAI's endpoints load and unload models only if clients control which models are loaded.
  const loadsOverOpenAi =
    values["openai-port"] !== undefined && !hasKeys(values) && values["model-control-mode"] === "explicit";
  // Redirects of Vertex AI can only read.
  const redirected = overHttp.filter((group) => group === "model-repository" || group === "shared-memory");
  const pagesAddress = pagesOverMetrics ? "metrics-address" : "http-address";
  const ofOpenAi = restricted("openai-restricted-api").filter((group) => group === "model-repository");
  const rows = [
    ["http", "HTTP", "http-address", "http-restricted-api", values["allow-http"], overHttp],
    ["grpc", "gRPC", "grpc-address", "grpc-restricted-protocol", values["allow-grpc"], overGrpc],
    ["openai", "OpenAI's endpoints", "openai-address", "openai-restricted-api", loadsOverOpenAi, ofOpenAi],
    ["dashboard", "the dashboard", pagesAddress, "http-restricted-api", values.dashboard, overHttp],
    [
      ...(["vertex-ai", "redirects of Vertex AI", "http-address", "http-restricted-api"] as const),
      ...([values["allow-vertex-ai"], redirected] as const),
    ],
  ] as const;
  return rows
    .filter(([, , , , isOn, groups]) => isOn && groups.length > 0)
    .map(([place, title, addressOption, restrictOption, , groups]) => {
      const address = addressOption === "metrics-address" ? metricsAddress(values) : values[addressOption];
      return { place, title, address, addressOption, restrictOption, groups };
    });
}

function hasKeys(values: OptionValues): boolean {
  return values["openai-api-key"].length > 0 || values["openai-api-key-file"] !== "";
}
