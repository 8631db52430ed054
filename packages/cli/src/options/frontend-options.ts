import type { GrpcOptions } from "@tritonjs/grpc";
import { boolean, flag, integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { type RestrictionArgument, readRestriction } from "./read-restriction.js";
import { readMetricsSetting } from "./read-setting.js";
import { readChoice, readInteger, readLong } from "./read-value.js";

const threads = { noEffect: "Node.js serves all connections from its event loop" };
const pools = { noEffect: "requests and responses are not pooled" };
const none: readonly RestrictionArgument[] = [];
const reusing = canReusePorts() ? {} : { noEffectHere: "Node.js can do it from version 22.12 on" };

/** Options of the HTTP, gRPC and metrics frontends. */
export const frontendOptions = {
  HTTP: {
    "allow-http": boolean("Listen for HTTP requests.", true),
    "http-address": text("Address to listen on for HTTP.", "0.0.0.0"),
    "http-port": integer("Port to listen on for HTTP.", 8000),
    "reuse-http-port": boolean(
      "Let several servers listen on the HTTP port; from Node.js 22.12 on.",
      false,
      reusing,
    ),
    "http-header-forward-pattern": text(
      "Regular expression in the syntax of RE2: headers whose names match become parameters of inference requests.",
      "",
    ),
    "http-thread-count": integer("Threads for HTTP.", 8, threads),
    "http-max-input-size": value(
      "integer",
      "Largest tensor of an HTTP request in bytes; a body may have eight times as many, a decompressed one as many.",
      64 * 1024 * 1024,
      readInputSize,
    ),
    "http-restricted-api": value(
      "<apis>:<key>=<value>",
      "Groups of the HTTP API, separated by commas, that need a header <key> of this value.",
      none,
      readRestriction("http-restricted-api", "api"),
    ),
  },
  GRPC: {
    "allow-grpc": boolean("Listen for gRPC requests.", true),
    "grpc-address": text("Address to listen on for gRPC; 0.0.0.0 means IPv6 as well.", "0.0.0.0"),
    "grpc-port": integer("Port to listen on for gRPC.", 8001),
    "reuse-grpc-port": boolean(
      "Let several servers listen on the gRPC port; from Node.js 22.12 on.",
      false,
      reusing,
    ),
    "grpc-header-forward-pattern": text(
      "Regular expression in the syntax of RE2: metadata whose names match become parameters of inference requests.",
      "",
    ),
    "grpc-infer-thread-count": value("integer", "Threads for gRPC.", 2, readThreadCount, threads),
    "grpc-infer-allocation-pool-size": integer("States that are kept for reuse.", 8, pools),
    "grpc-max-response-pool-size": value(
      "integer",
      "Responses that may be in the response queue.",
      2 ** 31 - 1,
      readPositive("grpc-max-response-pool-size"),
      { noEffect: "a stream is slowed down by what its client reads" },
    ),
    "grpc-use-ssl": boolean("Use TLS for gRPC.", false),
    "grpc-use-ssl-mutual": boolean("Use TLS for gRPC, and ask clients for certificates.", false),
    "grpc-server-cert": text("PEM file with the certificate of the server, for --grpc-use-ssl.", ""),
    "grpc-server-key": text("PEM file with the key of the server, for --grpc-use-ssl.", ""),
    "grpc-root-cert": text("PEM file with the certificates that sign those of clients.", ""),
    "grpc-infer-response-compression-level": value(
      "string",
      "How much responses are compressed: none, low, medium or high.",
      "none",
      readChoice<NonNullable<GrpcOptions["inferResponseCompressionLevel"]>>(
        { none: true, low: true, medium: true, high: true },
        "invalid argument for --grpc_infer_response_compression_level",
      ),
    ),
    "grpc-keepalive-time": integer("Milliseconds after which a silent connection is pinged.", 7_200_000),
    "grpc-keepalive-timeout": integer("Milliseconds that a ping is waited for.", 20_000),
    "grpc-keepalive-permit-without-calls": boolean("Ping also while there is no call.", false),
    "grpc-http2-max-pings-without-data": integer("Pings that are sent while there is no data.", 2),
    "grpc-http2-min-recv-ping-interval-without-data": integer(
      "Milliseconds that a client has to leave between pings.",
      300_000,
    ),
    "grpc-http2-max-ping-strikes": integer(
      "Bad pings after which a connection is closed; 0 for no limit.",
      2,
    ),
    "grpc-max-connection-age": integer("Milliseconds after which a connection is ended; 0 for never.", 0),
    "grpc-max-connection-age-grace": integer(
      "Milliseconds that calls may go on after that; 0 for no limit.",
      0,
    ),
    "grpc-max-concurrent-streams": value(
      "integer",
      "Calls that a connection may have at the same time.",
      1024,
      readPositive("grpc-max-concurrent-streams"),
    ),
    "grpc-max-session-memory": value(
      "integer",
      "Bytes that a connection may hold, above all of responses that its client has not read; then its new calls are refused.",
      1024 * 1024 * 1024,
      readPositive("grpc-max-session-memory", readLong),
    ),
    "grpc-restricted-protocol": value(
      "<protocols>:<key>=<value>",
      "Groups of the gRPC protocol, separated by commas, that need metadata triton-grpc-protocol-<key> of this value.",
      none,
      readRestriction("grpc-restricted-protocol", "protocol"),
    ),
    "grpc-max-receive-message-size": value(
      "integer",
      "Largest gRPC message in bytes, also after decompression; 64 MiB for a tensor and 64 KiB for what describes it.",
      64 * 1024 * 1024 + 64 * 1024,
      readPositive("grpc-max-receive-message-size"),
    ),
    "grpc-reflection": flag("Let clients ask for the services and messages of the protocol."),
  },
  Metrics: {
    "allow-metrics": boolean("Serve metrics.", true),
    "allow-gpu-metrics": boolean("Metrics of GPUs.", true, { noEffect: "there are no metrics of GPUs yet" }),
    "allow-cpu-metrics": boolean("Metrics of the CPU and the memory.", true),
    "metrics-address": text("Address to listen on for metrics; that of HTTP unless given.", ""),
    "metrics-port": integer("Port to listen on for metrics.", 8002),
    "metrics-interval-ms": integer("Milliseconds between two looks at the machine.", 2000, {
      noEffect: "the machine is looked at whenever the metrics are read",
    }),
    "metrics-config": list(
      "<setting>=<value>",
      "Setting of the metrics. May be given several times.",
      readMetricsSetting,
    ),
  },
};

function canReusePorts(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

function readInputSize(size: string): number {
  const bytes = readLong(size);
  if (bytes <= 0) throw new OptionError("Error: --http-max-input-size must be greater than 0.");
  return bytes;
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
