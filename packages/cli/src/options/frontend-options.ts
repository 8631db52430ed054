import { ENDPOINT_GROUPS, type EndpointGroup } from "@tritonjs/core/extension";
import type { FrontendThreads } from "@tritonjs/core/types";
import type { GrpcOptions } from "@tritonjs/grpc";
import type { SageMakerInferenceType } from "@tritonjs/http/cloud";
import type { OpenAiGroup } from "@tritonjs/llm/openai";
import { HostRule } from "@tritonjs/server/internal";
import {
  boolean,
  choice,
  flag,
  integer,
  list,
  OptionError,
  readInteger,
  readLong,
  readMetricsSetting,
  text,
  value,
} from "./option.js";

const pools = { noEffect: "requests and responses are not pooled" };
const pem = { completes: "file" } as const;
const none: readonly Restricted<EndpointGroup>[] = [];
const reusing = canReusePorts() ? {} : { noEffectHere: "it needs Node.js 22.12 or newer" };

/** Groups of endpoints, with the names of Triton's OpenAI frontend. */
const GROUPS: readonly OpenAiGroup[] = ["inference", "model-repository", "metrics", "health"];

/** Groups of endpoints that need a header. */
export interface Restricted<Group extends string> {
  readonly groups: readonly Group[];
  readonly header: string;
  readonly value: string;
}

const noOpenAiOptions: readonly Restricted<OpenAiGroup>[] = [];

/** Options of the OpenAI frontend. It listens if it has a port. */
const openAiOptions = {
  "openai-port": value(
    "integer",
    "Port to listen on for OpenAI's endpoints, such as 9000; unless given, there are none.",
    undefined as number | undefined,
    (text) => readInteger(text),
  ),
  "openai-address": text("Address to listen on for OpenAI's endpoints.", "0.0.0.0"),
  "openai-api-key": list(
    "key",
    "Key that clients of OpenAI's endpoints must send, or sha256: and its hash. May be given several times. " +
      "Other users of the machine see command lines, so set TRITONJS_OPENAI_API_KEY instead.",
    readKey,
  ),
  "openai-api-key-file": text("File with a key, or sha256: and its hash, on each line.", "", {
    completes: "file",
  }),
  "openai-restricted-api": value(
    "<apis>:<key>=<value>",
    "Comma-separated groups of OpenAI's endpoints that need the header <key> with this value: inference, " +
      "model-repository, metrics, health.",
    noOpenAiOptions,
    readRestriction(GROUPS, ofOpenAi()),
  ),
  "openai-chat-template": list(
    "<model>=<directory>",
    "Directory with the tokenizer_config.json of a model, whose chat template makes the prompt. May be given several times.",
    readPair,
  ),
  "openai-tool-call-family": list(
    "<model>=<family>",
    "Form in which a model writes calls of tools, where its chat template does not show it: hermes, llama3, mistral, " +
      "pythonic, deepseek or json. May be given several times.",
    readPair,
  ),
  "openai-default-max-tokens": integer(
    "max_tokens of requests to OpenAI's endpoints without one; 0 for 16 in completions and the model's own limit in chats.",
    0,
  ),
  "openai-max-body-size": integer(
    "Largest body of a request to OpenAI's endpoints in bytes.",
    64 * 1024 * 1024,
  ),
  "openai-cors-origin": list(
    "origin",
    "Origin of web pages that may use OpenAI's endpoints; * for all. May be given several times.",
    readOrigin,
  ),
};

function readOrigin(origin: string): string {
  if (origin === "*" || (URL.canParse(origin) && new URL(origin).origin === origin)) return origin;
  throw new OptionError(`expected * or an origin such as https://app.example.com, got ${origin}`);
}

function readKey(key: string): string {
  if (key !== "") return key;
  throw new OptionError("--openai-api-key: expected a key, got an empty text");
}

/** Reads `<model>=<value>`. */
function readPair(text: string): readonly [model: string, value: string] {
  const equals = text.indexOf("=");
  const pair = [text.slice(0, equals), text.slice(equals + 1)] as const;
  if (equals > 0 && pair[1] !== "") return pair;
  throw new OptionError(`expected <model>=<value>, got ${text}`);
}

export const frontendOptions = {
  HTTP: {
    "allow-http": boolean("Listen for HTTP requests.", true),
    "http-address": text("Address to listen on for HTTP.", "0.0.0.0"),
    "http-port": integer("Port to listen on for HTTP.", 8000),
    "reuse-http-port": boolean(
      "Allow several servers to listen on the HTTP port. Needs Node.js 22.12 or newer.",
      false,
      reusing,
    ),
    "http-header-forward-pattern": text(
      "Regular expression in RE2 syntax. Headers with matching names become parameters of inference requests.",
      "",
    ),
    "http-thread-count": integer(
      "Number of threads for HTTP in tritonserver. With 1, --frontend-threads=auto starts none; other values do not change it.",
      8,
    ),
    "frontend-threads": value(
      "auto|integer",
      "Threads that serve HTTP and gRPC; 0 for none. auto: none with less than 4 cores, then half of the cores, at most 3.",
      "auto",
      readFrontendThreads,
      { completes: ["auto"] },
    ),
    "http-max-input-size": value(
      "integer",
      "Largest tensor of an HTTP request in bytes, and largest decompressed body. A body may have eight times as many.",
      64 * 1024 * 1024,
      readInputSize,
    ),
    "http-restricted-api": value(
      "<apis>:<key>=<value>",
      "Comma-separated groups of the HTTP API that need the header <key> with this value.",
      none,
      readRestriction(ENDPOINT_GROUPS, ofProtocol("http-restricted-api", "api")),
    ),
    "http-openapi": flag(
      "Serve the OpenAPI document of the HTTP API at /v2/openapi.json, and a page of it at /v2/docs.",
    ),
    "http-cors-origin": list(
      "origin",
      "Origin of web pages that may use the HTTP API, such as https://app.example.com; * for all. May be given several times.",
      readOrigin,
    ),
  },
  GRPC: {
    "allow-grpc": boolean("Listen for gRPC requests.", true),
    "grpc-address": text("Address to listen on for gRPC; 0.0.0.0 includes IPv6.", "0.0.0.0"),
    "grpc-port": integer("Port to listen on for gRPC.", 8001),
    "reuse-grpc-port": boolean(
      "Allow several servers to listen on the gRPC port. Needs Node.js 22.12 or newer.",
      false,
      reusing,
    ),
    "grpc-header-forward-pattern": text(
      "Regular expression in RE2 syntax. Metadata with matching names become parameters of inference requests.",
      "",
    ),
    "grpc-infer-thread-count": value("integer", "Number of threads for gRPC.", 2, readThreadCount, {
      noEffect: "the threads of --frontend-threads serve HTTP and gRPC together",
    }),
    "grpc-infer-allocation-pool-size": integer("Number of states kept for reuse.", 8, pools),
    "grpc-max-response-pool-size": value(
      "integer",
      "Largest number of responses in the response queue.",
      2 ** 31 - 1,
      readPositive("grpc-max-response-pool-size"),
      { noEffect: "back-pressure from the client limits a stream" },
    ),
    "grpc-use-ssl": boolean("Use TLS for gRPC.", false),
    "grpc-use-ssl-mutual": boolean("Use TLS for gRPC, and require certificates from clients.", false),
    "grpc-server-cert": text("PEM file with the certificate of the server, for --grpc-use-ssl.", "", pem),
    "grpc-server-key": text("PEM file with the key of the server, for --grpc-use-ssl.", "", pem),
    "grpc-root-cert": text(
      "PEM file with the certificates of the authorities that sign client certificates.",
      "",
      pem,
    ),
    "grpc-infer-response-compression-level": choice<
      NonNullable<GrpcOptions["inferResponseCompressionLevel"]>
    >(
      ["none", "low", "medium", "high"],
      "Compression level of responses: none, low, medium or high.",
      "none",
      "invalid argument for --grpc_infer_response_compression_level",
    ),
    "grpc-keepalive-time": integer(
      "Milliseconds without traffic after which a connection gets a keepalive ping.",
      7_200_000,
    ),
    "grpc-keepalive-timeout": integer("Milliseconds to wait for the answer to a keepalive ping.", 20_000),
    "grpc-keepalive-permit-without-calls": boolean(
      "Send keepalive pings also without a call in flight.",
      false,
    ),
    "grpc-http2-max-pings-without-data": integer("Largest number of pings in a row without data.", 2),
    "grpc-http2-min-recv-ping-interval-without-data": integer(
      "Shortest interval in milliseconds between pings of a client without data.",
      300_000,
    ),
    "grpc-http2-max-ping-strikes": integer(
      "Number of too frequent pings after which a connection is closed; 0 for no limit.",
      2,
    ),
    "grpc-max-connection-age": integer("Milliseconds after which a connection is closed; 0 for never.", 0),
    "grpc-max-connection-age-grace": integer(
      "Milliseconds that calls may continue after --grpc-max-connection-age; 0 for no limit.",
      0,
    ),
    "grpc-max-concurrent-streams": value(
      "integer",
      "Largest number of calls in flight on a connection.",
      1024,
      readPositive("grpc-max-concurrent-streams"),
    ),
    "grpc-max-session-memory": value(
      "integer",
      "Bytes that a connection may hold, mostly unread responses. Above the limit, new calls are refused.",
      1024 * 1024 * 1024,
      readPositive("grpc-max-session-memory", readLong),
    ),
    "grpc-restricted-protocol": value(
      "<protocols>:<key>=<value>",
      "Comma-separated groups of the gRPC protocol that need the metadata triton-grpc-protocol-<key> with this value.",
      none,
      readRestriction(ENDPOINT_GROUPS, ofProtocol("grpc-restricted-protocol", "protocol")),
    ),
    "grpc-max-receive-message-size": value(
      "integer",
      "Largest gRPC message in bytes, also after decompression: 64 MiB for a tensor plus 64 KiB for its description.",
      64 * 1024 * 1024 + 64 * 1024,
      readPositive("grpc-max-receive-message-size"),
    ),
    "grpc-reflection": flag("Serve gRPC reflection, which lists the services and messages of the protocol."),
  },
  OpenAI: openAiOptions,
  Metrics: {
    "allow-metrics": boolean("Serve metrics.", true),
    "allow-gpu-metrics": boolean("Serve metrics of GPUs, as the driver reports them.", true),
    "allow-cpu-metrics": boolean("Serve metrics of the CPU, the memory and the process.", true),
    "metrics-address": text("Address to listen on for metrics; by default that of HTTP.", ""),
    "metrics-port": integer("Port to listen on for metrics.", 8002),
    "metrics-interval-ms": integer(
      "Age in milliseconds up to which a measurement of the GPUs is used again.",
      2000,
    ),
    dashboard: flag(
      "Serve the dashboard at /dashboard on the metrics port, or on the HTTP port without metrics.",
    ),
    "metrics-config": list(
      "<setting>=<value>",
      "Setting of the metrics. May be given several times.",
      readMetricsSetting,
    ),
  },
};

export function canReusePorts(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

function readInputSize(size: string): number {
  const bytes = readLong(size);
  if (bytes <= 0) throw new OptionError("Error: --http-max-input-size must be greater than 0.");
  return bytes;
}

function readFrontendThreads(text: string): FrontendThreads {
  if (text === "auto") return text;
  const count = readInteger(text);
  if (count >= 0 && count <= 128) return count;
  throw new OptionError("Error: --frontend-threads must be auto, or an integer from 0 to 128.");
}

function readThreadCount(count: string): number {
  const number = readInteger(count);
  if (number >= 2 && number <= 128) return number;
  throw new OptionError("invalid argument for --grpc_infer_thread_count. Must be in the range 2 to 128.");
}

function readPositive(name: string, read = readInteger): (text: string) => number {
  return (text) => {
    const number = read(text);
    if (number > 0) return number;
    throw new OptionError(`Error: --${name} must be greater than 0.`);
  };
}

/** A server whose defaults for access the command takes over. */
type Compatibility = "" | "triton";

export const accessOptions = {
  Access: {
    "access-token": text(
      "Secret that clients send to use operations that change the server, in the header triton-access-token (gRPC: " +
        "triton-grpc-protocol-triton-access-token). Other users of the machine see command lines, so set " +
        "TRITONJS_ACCESS_TOKEN instead.",
      "",
    ),
    "allowed-host": list(
      "name",
      "Name under which browsers may use the server, such as triton.example.com, or .example.com with all names below it; " +
        "* for any. Otherwise only localhost, IP addresses and names without a dot are allowed: on loopback addresses, " +
        "and where operations that change the server need no token. May be given several times.",
      readHost,
    ),
    "allow-model-file-override": boolean(
      "Allow clients to send the files of a model with a load request, and a configuration that names paths outside of " +
        "the repository. Both can be code that the server runs.",
      false,
    ),
    compat: value<Compatibility>(
      "string",
      '"triton" opens operations that change the server to everyone, and allows the files of load requests, as ' +
        "tritonserver does. A warning says what is open.",
      "",
      readCompatibility,
      { completes: ["triton"] },
    ),
  },
};

function readHost(name: string): string {
  if (name === "*") return name;
  try {
    new HostRule([name]);
    return name;
  } catch {
    throw new OptionError(`expected * or a name such as triton.example.com, without a port, got ${name}`);
  }
}

function readCompatibility(name: string): Compatibility {
  if (name === "triton" || name === "") return name;
  throw new OptionError(`expected triton, got ${name}`);
}

/** Texts about a restriction that cannot be read. */
interface RestrictionTexts {
  format(text: string): string;
  unknown(group: string): string;
  twice(group: string): string;
}

/** `<group>,<group>:<key>=<value>`: the groups answer only requests with a header `key` of that value. */
function readRestriction<Group extends string>(all: readonly Group[], texts: RestrictionTexts) {
  return (text: string, previous: readonly Restricted<Group>[]): readonly Restricted<Group>[] => {
    const [, names, header, value] = /^([^:]+):([^=]+)=(.+)$/s.exec(text) ?? [];
    if (names === undefined || header === undefined || value === undefined)
      throw new OptionError(texts.format(text));
    const restricted = new Set(previous.flatMap(({ groups }) => groups));
    const groups = names.split(",").map((name) => {
      const group = all.find((known) => known === name);
      if (group === undefined) throw new OptionError(texts.unknown(name));
      if (restricted.has(group)) throw new OptionError(texts.twice(group));
      restricted.add(group);
      return group;
    });
    return [...previous, { groups, header, value }];
  };
}

function ofOpenAi(): RestrictionTexts {
  const option = "--openai-restricted-api";
  return {
    format: (text) => `${option}: expected '<apis>:<key>=<value>', got ${text}`,
    unknown: (name) => `${option}: expected one of ${GROUPS.join(", ")}, got ${name}`,
    twice: (group) => `${option}: expected each group once, got ${group} twice`,
  };
}

/** @param kind `api` or `protocol`, as the option calls the groups */
function ofProtocol(option: string, kind: "api" | "protocol"): RestrictionTexts {
  return {
    format: (text) => `--${option} option format is '<config name>:<setting>=<value>'. Got ${text}`,
    unknown: (group) => `unknown restricted ${kind} '${group}' `,
    twice: (group) => `restricted ${kind} '${group}' can not be specified in multiple config groups`,
  };
}

const threads = { noEffect: "Node.js serves all connections from its event loop" };
const noRange: PortRange | undefined = undefined;

/** Ports that a platform allows, both ends included. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export const cloudOptions = {
  SageMaker: {
    "allow-sagemaker": boolean("Listen for SageMaker requests, on the address of HTTP.", false),
    "sagemaker-port": integer("Port to listen on for SageMaker.", 8080),
    "sagemaker-safe-port-range": value<PortRange | undefined>(
      "<integer>-<integer>",
      "Ports that the other frontends may have.",
      noRange,
      readPortRange,
    ),
    "sagemaker-thread-count": integer("Number of threads for SageMaker.", 8, threads),
    "sagemaker-default-model": text("Model of /invocations; by default the only one in service.", ""),
    "sagemaker-inference-type": choice<SageMakerInferenceType>(
      ["infer", "generate", "generate_stream"],
      "Operation behind /invocations: infer, generate or generate_stream.",
      "infer",
      "expected infer, generate or generate_stream",
    ),
    "sagemaker-ping-mode": choice<"ready" | "live">(
      ["ready", "live"],
      'What /ping reports: "live", or "ready" once all models are.',
      "ready",
      "expected ready or live",
    ),
    "sagemaker-multi-model": flag(
      "Serve the routes of multi-model endpoints, which load models of /opt/ml/models.",
    ),
  },
  "Vertex AI": {
    "allow-vertex-ai": boolean("Listen for Vertex AI requests, on the address of HTTP.", false),
    "vertex-ai-port": integer("Port to listen on for Vertex AI.", 8080),
    "vertex-ai-thread-count": integer("Number of threads for Vertex AI.", 8, threads),
    "vertex-ai-default-model": text("Model of predictions; by default the only one in service.", ""),
    "vertex-ai-predict-route": text("Path of predictions; by default AIP_PREDICT_ROUTE.", ""),
    "vertex-ai-health-route": text("Path of the health check; by default AIP_HEALTH_ROUTE.", ""),
  },
};

function readPortRange(text: string): PortRange {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const range = { from: Number(from), to: Number(to) };
  if (from !== undefined && range.from <= range.to && range.to <= 65535) return range;
  throw new OptionError(`expected <integer>-<integer> with ports up to 65535, got '${text}'`);
}
