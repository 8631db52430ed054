import type { TritonOptions } from "@tritonjs/core";
import { LOG_FORMATS, type TraceMode } from "@tritonjs/core/internal";
import type { LogFormat, ModelControlMode } from "@tritonjs/core/types";
import {
  boolean,
  choice,
  flag,
  integer,
  integerFrom,
  list,
  type NamedSetting,
  type Option,
  OptionError,
  readBackendSetting,
  readBoolean,
  readCacheSetting,
  readChoice,
  readDouble,
  readHostPolicy,
  readInteger,
  readLevel,
  readLong,
  readPair,
  readResource,
  splitSetting,
  text,
  value,
} from "./option.js";

const repository = list(
  "string",
  "Path of a model repository: a directory, or an s3://, gs:// or as:// path in tritonserver's form. May be given " +
    "several times.",
  (path) => path,
  { completes: "directory" },
);

export const repositoryOptions = {
  "Model Repository": {
    "model-store": { ...repository, description: "Alias of --model-repository." },
    "model-repository": repository,
    model: list(
      "model",
      "Model that is a class with predict: module.js#Class, module.py#Class. Or a folder with a model-settings.json of " +
        "MLServer. name=... gives it another name. May be given several times.",
      (text) => text,
    ),
    "exit-on-error": boolean("Exit when anything fails during the start.", true),
    "disable-auto-complete-config": flag(
      "Do not complete model configurations from the model files. Each model then needs a complete config.pbtxt.",
    ),
    "strict-readiness": boolean(
      "If true, /v2/health/ready reports ready only while all models are available.",
      true,
    ),
    "crash-readiness": choice<"model" | "server">(
      ["model", "server"],
      'Whose readiness ends while all instances of a model have crashed and could not be restarted. "model": that of ' +
        'the model. "server": with --strict-readiness also that of the server.',
      "model",
      "invalid argument for --crash-readiness",
    ),
    "ready-with-older-version": boolean(
      "A version that is loading or failed to load leaves the server ready while another version of its model serves.",
      false,
    ),
    "model-control-mode": choice<ModelControlMode>(
      ["none", "poll", "explicit"],
      '"none" loads all models at the start. "poll" also applies changes in the repository. "explicit" loads the ' +
        "models of --load-model at the start, and others on request.",
      "none",
      "invalid argument for --model-control-mode",
    ),
    "repository-poll-secs": integer("Interval between polls in seconds, for --model-control-mode=poll.", 15),
    "load-model": list(
      "string",
      "Model to load at the start, for --model-control-mode=explicit. May be given several times; * loads all models.",
      (name) => name,
    ),
    rollout: list(
      "<model>:<option>=<value>,...",
      "Replace a version of a model by another, little by little: resnet:from=1,to=2,share=10. Values may be JSON. May " +
        "be given several times.",
      readRollout,
    ),
    "scheduling-tape": text(
      "File for a recording of the scheduling, written when the server ends: its first minute from the first request on. `tritonjs replay --batches` replays it.",
      "",
    ),
    "scheduling-ring": integerFrom(
      0,
      "Seconds of scheduling that the server keeps at any time. The dashboard shows them, and --scheduling-tape gets them " +
        "when the server ends. 0 for none.",
      0,
    ),
    "capture-directory": text(
      "Directory of Parquet files in which some requests are captured with their answers, also their errors' texts and " +
        "parameters. Needs hyparquet-writer.",
      "",
    ),
    "capture-rate": value(
      "number",
      "Share of the requests that are captured, from 0 to 1.",
      0.01,
      readDouble,
    ),
    "rollout-directory": text(
      "Directory in which the states of rollouts are kept, so that they continue after a restart.",
      "",
    ),
    "model-config-name": value(
      "string",
      "Use configs/<name>.pbtxt of a model instead of its config.pbtxt, if it exists.",
      "",
      readConfigName,
    ),
    "model-load-thread-count": integer("Number of models that load at the same time.", 4),
    "load-on-demand": boolean("Load models at their first request, not at the start.", false),
    "model-ttl-secs": value(
      "seconds",
      "Seconds without a request after which a model leaves memory until its next request. 0 for never.",
      0,
      readDouble,
    ),
    "model-memory-budget-mb": value(
      "megabytes",
      "Megabytes that models may take together. Idle ones make room for those that get requests. 0 for no limit.",
      0,
      readDouble,
    ),
    "model-load-retry-count": integer("Number of retries after a failed load.", 0),
    "model-namespacing": boolean("Allow models of the same name in different repositories.", false),
    substitute: text(
      "JSON file of rules that say which backend and file stand for a model that cannot run here: " +
        '[{"platform": "tensorrt_plan", "use": {"backend": "onnxruntime", "file": "model.onnx"}}].',
      "",
    ),
    "enable-peer-access": boolean("Memory access between GPUs.", true, {
      noEffect: "the providers of ONNX Runtime manage this access",
    }),
  },
  Backend: {
    "backend-directory": text(
      "Directory of backends that models share: <backend>/model.py, or <backend>/backend.js. Shared libraries in it are " +
        "not loaded.",
      "/opt/tritonserver/backends",
      { completes: "directory" },
    ),
  },
  "Repository Agent": {
    "repoagent-directory": text(
      "Directory of repository agents: <agent>/agent.js or <agent>/agent.py. Shared libraries in it are not loaded.",
      "/opt/tritonserver/repoagents",
      { completes: "directory" },
    ),
    "repoagent-timeout-secs": integerFrom(
      1,
      "Seconds that a repository agent may take to handle the load or unload of a model.",
      300,
    ),
  },
};

function readConfigName(name: string): string {
  if (name === "") throw new OptionError("Error: empty argument for --model-config-name");
  return name;
}

export const serverOptions = {
  Server: {
    id: text("Name of the server in its metadata.", "triton"),
    "exit-timeout-secs": integer(
      "Seconds that requests in flight may take to finish after SIGTERM or SIGINT. After that the server exits with 1.",
      30,
    ),
    "exit-delay-secs": integer(
      "Seconds after SIGTERM or SIGINT in which the server still accepts requests, but reports that it is not ready. " +
        "They come before --exit-timeout-secs.",
      0,
    ),
    config: list(
      "file",
      "JSON file with options, by their names without the dashes. The command line and the environment " +
        "(TRITONJS_HTTP_PORT for --http-port) take precedence.",
      (path) => path,
    ),
  },
  Logging: {
    "log-verbose": value("integer", "Log verbose messages up to this level; 0 for none.", 0, readLevel),
    "log-info": boolean("Log messages of level INFO.", true),
    "log-warning": boolean("Log messages of level WARNING.", true),
    "log-error": boolean("Log messages of level ERROR.", true),
    "log-format": value(
      "string",
      'Format of the log: "default", "ISO8601", or "json" for an object on each line.',
      "default",
      readFormat,
      { completes: LOG_FORMATS },
    ),
    "log-file": text("File for the log; by default standard error.", "", { completes: "file" }),
  },
};

function readFormat(format: string): LogFormat {
  const known = LOG_FORMATS.find((one) => one === format);
  if (known !== undefined) return known;
  throw new OptionError("invalid argument for --log-format");
}

const noGpuMemory = { noEffect: "the providers of ONNX Runtime manage the memory of GPUs" };

export const machineOptions = {
  "Backend Settings": {
    "backend-config": list(
      "<backend>,<setting>=<value>",
      "Setting of a backend; without the name, of all backends. May be given several times.",
      readBackendSetting,
    ),
  },
  "Response Cache": {
    "cache-config": list(
      "<cache>,<setting>=<value>",
      "Setting of the response cache: local,size=<bytes>, or redis,host=<name>. May be given several times.",
      readCacheSetting,
    ),
    "cache-directory": text("Directory of shared libraries of caches.", "", {
      noEffect: "caches are JavaScript modules, not shared libraries",
    }),
  },
  "Rate Limiter": {
    "rate-limit": choice<NonNullable<TritonOptions["rateLimit"]>>(
      ["execution_count", "off"],
      '"execution_count" runs instances by priority when their resources are free. "off" runs them at once.',
      "off",
      "invalid argument for --rate-limit",
    ),
    "rate-limit-resource": list(
      "<resource>:<count>:<device>",
      "Available amount of a resource; without <device>, on each device. May be given several times.",
      readResource,
    ),
    "shares-by": text(
      'Callers share the time of all models: "caller" tells them apart by the header tritonjs-caller, any other text by ' +
        "the header of this name.",
      "",
    ),
    "shares-weights": text("Weights of callers, such as gold=3,silver=2. Others have weight 1.", ""),
  },
  "Memory/Device Management": {
    "pinned-memory-pool-byte-size": value(
      "integer",
      "Largest number of bytes of pinned memory, for tensors on their way to GPUs and back.",
      2 ** 28,
      readLong,
    ),
    "cuda-memory-pool-byte-size": list(
      "<device>:<bytes>",
      "Largest number of bytes on a GPU for inputs and outputs of models; 67108864 on each GPU by default.",
      readPair(readLong),
    ),
    "cuda-virtual-address-size": list(
      "<device>:<bytes>",
      "Bytes of address space for growing states on a GPU.",
      readPair(readLong),
      noGpuMemory,
    ),
    "min-supported-compute-capability": value(
      "number",
      "Lowest compute capability of GPUs to use.",
      0,
      readDouble,
      {
        noEffect: "the providers of ONNX Runtime choose the GPUs",
      },
    ),
    "buffer-manager-thread-count": integer("Number of threads that copy tensors.", 0, {
      noEffect:
        "tensors are passed on as views; a batch is joined in one pass on the thread that its requests arrive on",
    }),
    "host-policy": list(
      "<policy>,<setting>=<value>",
      "Setting of a host policy: numa-node or cpu-cores. The policy cpu is for all instances on the CPU.",
      readHostPolicy,
    ),
    "gpu-fallback": choice<"none" | "cpu">(
      ["none", "cpu"],
      '"cpu" runs instances of KIND_GPU on the CPU where there is no GPU. "none" refuses such a model.',
      "none",
      "invalid argument for --gpu-fallback",
    ),
    "model-load-gpu-limit": list(
      "<device>:<fraction>",
      "Largest used fraction of a GPU's memory at which models still load.",
      readPair(readDouble),
      noGpuMemory,
    ),
  },
  "Request Memory": {
    "request-memory-byte-size": integerFrom(
      0,
      "Bytes that all HTTP and gRPC requests together may take, received and unpacked. Further requests are refused. " +
        "0 stands for 1 GiB, or a quarter of the memory if that is less.",
      0,
    ),
    "max-decompressions": integerFrom(
      1,
      "Number of compressed requests that are unpacked at the same time.",
      2,
    ),
    "max-waiting-decompressions": integerFrom(
      0,
      "Number of compressed requests that may wait to be unpacked. Further ones are refused.",
      1024,
    ),
    "max-compression-ratio": integerFrom(
      0,
      "Largest ratio of unpacked to compressed bytes of a request that unpacks to more than 8 MiB; 0 for any.",
      100,
    ),
  },
  "Shared Memory": {
    "allow-client-shm": boolean("Allow clients to register regions of shared memory.", false),
  },
  DEPRECATED: {
    "strict-model-config": {
      ...value<boolean | undefined>("boolean", "Use --disable-auto-complete-config.", undefined, readBoolean),
      deprecated: () =>
        "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
    },
    "response-cache-byte-size": {
      ...value<number | undefined>("integer", "Use --cache-config.", undefined, readLong),
      deprecated: (size: string) =>
        "Warning: '--response-cache-byte-size' has been deprecated! This will default to the 'local' cache " +
        "implementation with the provided byte size for its config. Please use '--cache-config' instead. The " +
        `equivalent --cache-config CLI args would be: '--cache-config=local,size=${readLong(size)}'`,
    },
  },
};

/** Values of `--trace-level` and of the setting `level`. */
type TraceLevelName = "OFF" | "TIMESTAMPS" | "TENSORS";

export const traceOptions = {
  Tracing: {
    "trace-config": list(
      "<mode>,<setting>=<value>",
      "Setting of traces: level (OFF, TIMESTAMPS, TENSORS), rate (1000), count (-1). Mode triton also has triton,file " +
        "and triton,log-frequency (0). mode=opentelemetry exports spans to opentelemetry,url.",
      readTraceSetting,
    ),
    "trace-file": renamed(
      value("string", "Use --trace-config triton,file.", "", same, { completes: "file" }),
      "triton,file=<filepath>",
    ),
    "trace-level": renamed(
      list("string", "Use --trace-config level.", readTraceLevel),
      "level=<OFF|TIMESTAMPS|TENSORS>",
    ),
    "trace-rate": renamed(whole("Use --trace-config rate."), "rate=<rate value>"),
    "trace-count": renamed(whole("Use --trace-config count."), "count=<count value>"),
    "trace-log-frequency": renamed(
      whole("Use --trace-config triton,log-frequency."),
      "triton,log-frequency=<log frequency value>",
    ),
  },
};

/** Reads `OFF`, `TIMESTAMPS` or `TENSORS`, or one of their older names, in any case. */
export function readTraceLevel(text: string): TraceLevelName {
  const level = text.toLowerCase();
  if (level === "false" || level === "off") return "OFF";
  if (["true", "on", "min", "max", "timestamps"].includes(level)) return "TIMESTAMPS";
  if (level === "tensors") return "TENSORS";
  throw new OptionError(`invalid value for trace level option: ${level}`);
}

/** Reads `triton` or `opentelemetry`, in any case. */
export function readTraceMode(text: string): TraceMode {
  const mode = text.toLowerCase();
  return readChoice<TraceMode>(
    ["triton", "opentelemetry"],
    `invalid value for trace mode option: ${mode}. Available options are "triton" and "opentelemetry"`,
  )(mode);
}

/** Reads `<mode>,<setting>=<value>`, or `<setting>=<value>` for both modes, whose name is then empty. */
function readTraceSetting(text: string): NamedSetting {
  if (text.startsWith(",")) {
    throw new OptionError(
      "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or " +
        `<setting>=<value>. Got ${text}\n`,
    );
  }
  const comma = text.indexOf(",");
  if (comma > 0) readTraceMode(text.slice(0, comma));
  const format = `--trace-config option format is '<trace mode>,<setting>=<value>'. Got ${text}\n`;
  const setting = splitSetting(text, format);
  return { ...setting, name: setting.name.toLowerCase() };
}

function whole(description: string): Option<number | undefined> {
  return value<number | undefined>("integer", description, undefined, readInteger);
}

function renamed<T>(option: Option<T>, setting: string): Option<T> {
  const name = /^(?:triton,)?([a-z-]+)=/.exec(setting)![1]!;
  return {
    ...option,
    deprecated: () =>
      `Warning: '--trace-${name}' has been deprecated and will be removed in future releases. Please use ` +
      `'--trace-config ${setting} instead.`,
  };
}

function same(text: string): string {
  return text;
}

/** Reads `<model>:<option>=<value>,...`. Commas inside of JSON belong to a value. */
function readRollout(text: string): {
  readonly model: string;
  readonly options: readonly (readonly [name: string, value: string])[];
} {
  const at = text.indexOf(":");
  const parts = splitOutsideJson(text.slice(at + 1)).map((part) => {
    const equals = part.indexOf("=");
    return [part.slice(0, equals).trim(), part.slice(equals + 1).trim()] as const;
  });
  if (at > 0 && parts.every(([name]) => name !== "")) return { model: text.slice(0, at), options: parts };
  throw new OptionError(`--rollout: expected <model>:<option>=<value>,..., got '${text}'`);
}

function splitOutsideJson(text: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const letter of text) {
    if ("[{".includes(letter)) depth++;
    if ("]}".includes(letter)) depth--;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts;
}
