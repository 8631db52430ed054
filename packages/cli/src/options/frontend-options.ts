import type { FrontendThreads } from "@tritonjs/core/types";
import type { GrpcOptions } from "@tritonjs/grpc";
import { openAiOptions, readOrigin } from "./openai-options.js";
import { boolean, flag, integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { type RestrictionArgument, readRestriction } from "./read-restriction.js";
import { readMetricsSetting } from "./read-setting.js";
import { readChoice, readInteger, readLong } from "./read-value.js";

const pools = { noEffect: "requests and responses are not pooled" };
const pem = { completes: "file" } as const;
const none: readonly RestrictionArgument[] = [];
const reusing = canReusePorts() ? {} : { noEffectHere: "it needs Node.js 22.12 or newer" };

/** Options of the HTTP, gRPC and metrics frontends. */
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
      readRestriction("http-restricted-api", "api"),
    ),
    "http-openapi": flag("Serve the OpenAPI document of the HTTP API at /v2/openapi.json."),
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
    "grpc-infer-response-compression-level": value(
      "string",
      "Compression level of responses: none, low, medium or high.",
      "none",
      readChoice<NonNullable<GrpcOptions["inferResponseCompressionLevel"]>>(
        { none: true, low: true, medium: true, high: true },
        "invalid argument for --grpc_infer_response_compression_level",
      ),
      { completes: ["none", "low", "medium", "high"] },
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
      readRestriction("grpc-restricted-protocol", "protocol"),
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
    "allow-gpu-metrics": boolean("Serve metrics of GPUs, as nvidia-smi reports them.", true),
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

/** True if this version of Node.js can share a port with other processes. */
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

/** Reads a number above 0 for the option `name`. */
function readPositive(name: string, read = readInteger): (text: string) => number {
  return (text) => {
    const number = read(text);
    if (number > 0) return number;
    throw new OptionError(`Error: --${name} must be greater than 0.`);
  };
}
