import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Frontend } from "@tritonjs/core";
import type { EndpointGroup } from "@tritonjs/core/extension";
import type { FrontendThreads } from "@tritonjs/core/types";
import { grpc, type RestrictedProtocols } from "@tritonjs/grpc";
import { type HttpOptions, http, metrics } from "@tritonjs/http";
import type { ChatTemplateSettings, OpenAiOptions } from "@tritonjs/llm/openai";
import { statusText } from "@tritonjs/protocol";
import {
  placeInThreads,
  type Restriction,
  type Restrictions,
  type ServiceFrontend,
  type WebPages,
} from "@tritonjs/server";
import { headerPattern, isLoopback } from "@tritonjs/server/internal";
import { canReusePorts } from "../options/frontend-options.js";
import { OptionError } from "../options/option.js";
import {
  allOptions,
  listenerOf,
  metricsAddress,
  type OptionValues,
  SERVICES,
  type ServiceName,
} from "../options/options.js";

export class StartError extends Error {
  override readonly name = "StartError";

  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/** Creates the frontends that the command line requests. */
export async function openChosenFrontends(
  values: OptionValues,
  pages?: WebPages,
  openAi?: Frontend,
): Promise<Frontend[]> {
  const makers: Readonly<Record<ServiceName, (at: Listener) => Frontend | undefined | Promise<Frontend>>> = {
    grpc: (at) => grpcFrontend(at, values),
    http: (at) => httpFrontend(at, values, pages),
    metrics: (at) => metrics({ ...at, pages }),
    openai: () => openAi,
    sagemaker: (at) => sageMakerFrontend(at, values),
    "vertex-ai": (at) => vertexAiFrontend(at, values),
  };
  const frontends: Frontend[] = [];
  for (const name of Object.keys(makers) as ServiceName[]) {
    const at = listenerOf(values, name);
    const frontend = at && (await makers[name](at));
    if (frontend !== undefined) frontends.push(withStartError(frontend, name, `${at!.address}:${at!.port}`));
  }
  return frontends;
}

interface Listener {
  readonly address: string;
  readonly port: number;
}

async function sageMakerFrontend(at: Listener, values: OptionValues): Promise<Frontend> {
  const { sageMaker } = await import("@tritonjs/http/cloud");
  return sageMaker({
    ...at,
    maxInputSize: values["http-max-input-size"],
    restrictions: sageMakerRestrictions(values),
    inferenceType: values["sagemaker-inference-type"],
    pingMode: values["sagemaker-ping-mode"],
    multiModel: values["sagemaker-multi-model"],
    defaultModelName: values["sagemaker-default-model"] || undefined,
  });
}

/** The platform passes on no secrets, and loads models itself: its routes are open until an access token is set. */
function sageMakerRestrictions(values: OptionValues): Restrictions {
  const closed = values["access-token"] === "" ? {} : { "model-repository": closedBy(values) };
  return { ...closed, ...givenRestrictions(values) };
}

async function vertexAiFrontend(at: Listener, values: OptionValues): Promise<Frontend> {
  const { vertexAi } = await import("@tritonjs/http/cloud");
  return vertexAi({
    ...at,
    maxInputSize: values["http-max-input-size"],
    restrictions: httpRestrictions(values, "vertex-ai"),
    defaultModel: values["vertex-ai-default-model"],
    predictRoute: values["vertex-ai-predict-route"],
    healthRoute: values["vertex-ai-health-route"],
  });
}

/** Wraps a frontend, so that its failure to open is reported in the words of the command line. */
function withStartError(frontend: ServiceFrontend, name: ServiceName, socket: string): ServiceFrontend {
  const startError = (error: unknown): StartError => {
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
    const isTaken = code === "EADDRINUSE";
    const why = isTaken
      ? `Unavailable - Socket '${socket}' already in use`
      : statusText(error).replace(": ", " - ");
    return new StartError(
      `failed to start ${SERVICES[name].service}: ${why}`,
      isTaken ? `Choose another port with --${name}-port.` : "",
    );
  };
  return {
    name: frontend.name,
    place: placeInThreads,
    get threaded() {
      return frontend.threaded && { ...frontend.threaded, startError };
    },
    leave: () => frontend.leave?.(),
    stop: (drainTimeoutMs) => frontend.stop(drainTimeoutMs),
    start: async (served) => {
      try {
        return await frontend.start(served);
      } catch (error) {
        throw startError(error);
      }
    },
  };
}

/** Number of threads for HTTP and gRPC. One thread of tritonserver's for HTTP means none besides the main thread. */
export function frontendThreads(values: OptionValues): FrontendThreads {
  const threads = values["frontend-threads"];
  return threads === "auto" && values["http-thread-count"] <= 1 ? 0 : threads;
}

function httpRestrictions(values: OptionValues, name: ManagedFrontendName): Restrictions {
  const closed = closedBy(values);
  return {
    ...Object.fromEntries(closedGroups(values, name).map((group) => [group, closed])),
    ...givenRestrictions(values),
  };
}

/** The groups of routes that need a header according to `--http-restricted-api`. */
function givenRestrictions(values: OptionValues): Restrictions {
  return byGroup(values["http-restricted-api"]);
}

function byGroup<Group extends string>(
  restrictions: readonly {
    readonly groups: readonly Group[];
    readonly header: string;
    readonly value: string;
  }[],
) {
  return Object.fromEntries(
    restrictions.flatMap(({ groups, header, value }) => groups.map((group) => [group, { header, value }])),
  ) as Partial<Record<Group, { header: string; value: string }>>;
}

function grpcRestrictions(values: OptionValues): RestrictedProtocols[] {
  const closing = closedBy(values);
  const closed = closedGroups(values, "grpc");
  return [
    ...values["grpc-restricted-protocol"],
    ...(closed.length > 0 ? [{ groups: closed, ...closing }] : []),
  ].map(({ groups, header: key, ...secret }) => ({ protocols: groups, key, ...secret }));
}

function httpFrontend(at: Listener, values: OptionValues, pages: WebPages | undefined): Frontend {
  return http({
    ...at,
    reusePort: values["reuse-http-port"] && canReusePorts(),
    maxInputSize: values["http-max-input-size"],
    maxInputSizeName: "--http-max-input-size",
    headerForwardPattern: pattern(values, "http-header-forward-pattern"),
    openApi: values["http-openapi"],
    cors: cors(values["http-cors-origin"]),
    restrictions: httpRestrictions(values, "http"),
    ...(pages && (values["allow-metrics"] ? { landing: pages } : { pages })),
  });
}

const cors = (origins: readonly string[]): HttpOptions["cors"] =>
  origins.length === 0 ? undefined : { origins: origins.includes("*") ? true : origins };

function grpcFrontend(at: Listener, values: OptionValues): Frontend {
  const age = values["grpc-max-connection-age"];
  const grace = values["grpc-max-connection-age-grace"];
  return grpc({
    ...at,
    reusePort: values["reuse-grpc-port"] && canReusePorts(),
    headerForwardPattern: pattern(values, "grpc-header-forward-pattern"),
    inferResponseCompressionLevel: values["grpc-infer-response-compression-level"],
    keepaliveTimeMs: values["grpc-keepalive-time"],
    keepaliveTimeoutMs: values["grpc-keepalive-timeout"],
    keepalivePermitWithoutCalls: values["grpc-keepalive-permit-without-calls"],
    http2MaxPingsWithoutData: values["grpc-http2-max-pings-without-data"],
    http2MinRecvPingIntervalWithoutDataMs: values["grpc-http2-min-recv-ping-interval-without-data"],
    http2MaxPingStrikes: values["grpc-http2-max-ping-strikes"],
    maxConcurrentStreams: values["grpc-max-concurrent-streams"],
    maxSessionMemory: values["grpc-max-session-memory"],
    maxConnectionAgeMs: age > 0 ? age : undefined,
    maxConnectionAgeGraceMs: grace > 0 ? grace : undefined,
    restrictedProtocols: grpcRestrictions(values),
    maxReceiveMessageSize: values["grpc-max-receive-message-size"],
    maxReceiveMessageSizeName: "--grpc-max-receive-message-size",
    reflection: values["grpc-reflection"],
    stopGraceMs: Math.max(0, values["exit-timeout-secs"]) * 1000,
    ...grpcTls(values),
  });
}

function grpcTls(values: OptionValues) {
  const mutual = values["grpc-use-ssl-mutual"];
  if (!mutual && !values["grpc-use-ssl"]) return {};
  const roots = mutual ? { ca: pem(values, "grpc-root-cert") } : {};
  return { tls: { cert: pem(values, "grpc-server-cert"), key: pem(values, "grpc-server-key"), ...roots } };
}

function pem(values: OptionValues, name: "grpc-server-cert" | "grpc-server-key" | "grpc-root-cert"): Buffer {
  return readOption(name, () => readFileSync(values[name]));
}

/** Returns a pattern as it was given: the frontend reads it, and flags in it hold. */
function pattern(
  values: OptionValues,
  name: "http-header-forward-pattern" | "grpc-header-forward-pattern",
): string {
  readOption(name, () => headerPattern(values[name]));
  return values[name];
}

/** @throws OptionError with the text of the error of `read` */
function readOption<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new OptionError(`Bad option: "--${name}".\n${(error as Error).message}`, "alone");
  }
}

/** Loads the OpenAI frontend and sets it up, if the command line asks for it. */
export async function openOpenAi(values: OptionValues): Promise<Frontend | undefined> {
  const port = values["openai-port"];
  if (port === undefined) return undefined;
  const { openai } = await import("@tritonjs/llm/openai");
  return openai(openAiSettings(values, port));
}

function openAiSettings(values: OptionValues, port: number): OpenAiOptions {
  const defaultMaxTokens = values["openai-default-max-tokens"];
  return {
    port,
    address: values["openai-address"],
    apiKeys: [...values["openai-api-key"], ...keysOfFile(values["openai-api-key-file"])],
    restrictions: byGroup(values["openai-restricted-api"]),
    chatTemplates: Object.fromEntries(values["openai-chat-template"]),
    toolCallFamilies: Object.fromEntries(values["openai-tool-call-family"]) as NonNullable<
      ChatTemplateSettings["toolCallFamilies"]
    >,
    maxBodySize: values["openai-max-body-size"],
    ...(defaultMaxTokens > 0 && { defaultMaxTokens }),
    cors: cors(values["openai-cors-origin"]),
  };
}

function keysOfFile(path: string): string[] {
  if (path === "") return [];
  const keys = readOption("openai-api-key-file", () => readFileSync(path, "utf8"))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length > 0) return keys;
  throw new OptionError(
    `Bad option: "--openai-api-key-file".\nexpected a key on a line of ${path}, got none`,
    "alone",
  );
}

/** Options whose values hold secrets. */
const SECRET: ReadonlySet<string> = new Set([
  "access-token",
  "http-restricted-api",
  "grpc-restricted-protocol",
  "openai-api-key",
  "openai-restricted-api",
  "cache-config",
]);

export async function openDashboard(values: OptionValues): Promise<WebPages> {
  const { dashboard } = await import("@tritonjs/http/dashboard");
  return dashboard({
    restrictions: httpRestrictions(values, "dashboard"),
    configuration: changedOptions(values),
  });
}

export function changedOptions(values: OptionValues): Record<string, string> {
  const initial: Readonly<Record<string, { readonly initial: unknown }>> = allOptions;
  const changed: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    const text = textOf(value);
    if (text !== textOf(initial[name]?.initial)) changed[`--${name}`] = SECRET.has(name) ? "(set)" : text;
  }
  return changed;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

const MANAGEMENT: readonly EndpointGroup[] = ["model-repository", "shared-memory", "trace", "logging"];

/** Header of `--access-token`: that of the library's clients. Over gRPC it has the prefix `triton-grpc-protocol-`. */
const ACCESS_TOKEN_HEADER = "triton-access-token";

/** A frontend with operations that change the server. */
export type ManagedFrontendName = "http" | "grpc" | "openai" | "dashboard" | "vertex-ai";

interface ManagedFrontend {
  readonly name: ManagedFrontendName;
  readonly title: string;
  readonly address: string;
  readonly addressOption: string;
  readonly restrictOption: string;
  /** Operations that no other option restricts; none where the frontend does not listen. */
  readonly groups: readonly EndpointGroup[];
}

/**
 * The operations that the command closes at a frontend: with an access token all that no other option restricts, and
 * without one those that other machines could use, unless `--compat=triton` opens them.
 */
export function closedGroups(values: OptionValues, name: ManagedFrontendName): readonly EndpointGroup[] {
  return closedFrontends(values).find((one) => one.name === name)?.groups ?? [];
}

/** The header of closed operations. Without an access token nobody knows the value, and refusals say how to open them. */
export function closedBy(values: OptionValues): Restriction {
  const value = values["access-token"];
  if (value !== "") return { header: ACCESS_TOKEN_HEADER, value };
  return {
    header: ACCESS_TOKEN_HEADER,
    value: randomBytes(32).toString("base64url"),
    hint: OPENED_BY,
    isGenerated: true,
  };
}

/** How the operator opens operations that no option opened. */
const OPENED_BY =
  "start the server with --compat=triton to open it to every client, as tritonserver does, or with " +
  "TRITONJS_ACCESS_TOKEN to open it to clients with this token";

/**
 * A warning that says which operations `--compat=triton` opens to other machines, or which are closed to everyone and
 * how to open them.
 *
 * @returns undefined if the options decide about all of them, or the server listens on loopback addresses
 */
export function accessWarning(values: OptionValues): string | undefined {
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
    return (
      `--compat=triton: other machines can use ${groups} over ${places}; to close them: leave it out, or ` +
      ways.join("; ")
    );
  }
  return (
    `clients of Triton that use ${groups} need --compat=triton: these are closed to every client over ${places}; to ` +
    `open them to clients with a secret: set TRITONJS_ACCESS_TOKEN, or ${ways.join("; ")}`
  );
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
    .map(([name, title, addressOption, restrictOption, , groups]) => {
      const address = addressOption === "metrics-address" ? metricsAddress(values) : values[addressOption];
      return { name, title, address, addressOption, restrictOption, groups };
    });
}

function hasKeys(values: OptionValues): boolean {
  return values["openai-api-key"].length > 0 || values["openai-api-key-file"] !== "";
}
