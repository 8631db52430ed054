import type { EndpointGroup, ManagementRoute } from "@tritonjs/core/extension";
import {
  LOG_FORMATS,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  type TraceChanges,
  traceSettingTexts,
} from "@tritonjs/core/internal";
import type { LoadParameters } from "@tritonjs/core/types";
import { errorFor, optionTypes, TritonError } from "@tritonjs/protocol";
import { descriptors, grpc, inference } from "@tritonjs/protocol/grpc";
import {
  AccessGate,
  type Authentication,
  type InferenceService,
  type Log,
  type Restriction,
  type Restrictions,
} from "@tritonjs/server";
import { headerPattern } from "@tritonjs/server/internal";
import { inferMethod } from "../infer/model-infer.js";
import { streamInferMethod } from "../infer/model-stream-infer.js";
import type { Shutdown } from "../shutdown.js";
import { invalidArgument, STATUS } from "../status-from-code.js";
import {
  type CallHeaders,
  type DuplexStream,
  duplex,
  type Method,
  type ResponseStream,
  rpc,
  serverStream,
  unary,
} from "../transport/method.js";

/** Options of the handlers. */
export interface HandlerOptions {
  /**
   * Headers with a name that matches anywhere go to the model as string parameters. A string is in the syntax of RE2.
   */
  readonly headerForwardPattern?: string | RegExp;
  /**
   * Groups of methods that require a header with a secret, `[]` for none; those of the `Triton`'s `security` unless
   * given.
   */
  readonly restrictedProtocols?: readonly RestrictedProtocols[];
  /** Adds server reflection, which lists the services and describes their messages. */
  readonly reflection?: boolean;
}

export const HANDLER_OPTION_TYPES = optionTypes<HandlerOptions>({
  headerForwardPattern: ["object", "string"],
  restrictedProtocols: "array",
  reflection: "boolean",
});

export function protocolMethods(
  service: InferenceService,
  options: HandlerOptions,
  shutdown: Shutdown,
): Method[] {
  const forwarded = headerPattern(options.headerForwardPattern);
  const methods = [
    ...healthMethods(service),
    ...healthWatchMethods(service, shutdown),
    ...metadataMethods(service),
    inferMethod(service, shutdown, forwarded),
    streamInferMethod(service, shutdown, forwarded),
    ...statisticsMethods(service),
    ...repositoryMethods(service),
    ...sharedMemoryMethods(service),
    ...logMethods(service),
    ...traceMethods(service),
    ...(options.reflection ? reflectionMethods(shutdown) : []),
  ];
  const { restrictedProtocols: given } = options;
  const restrictions = given === undefined ? service.restrictions : toRestrictions(given);
  const gate = new AccessGate(restrictions);
  return methods.map((method) => ({ ...method, admit: admissionTo(method, gate, service.authentication) }));
}

/** Methods that require a header with a secret. */
export interface RestrictedProtocols {
  readonly protocols: readonly EndpointGroup[];
  /** Name of the header, without its prefix `triton-grpc-protocol-`. */
  readonly key: string;
  readonly value: string;
  /** Added to the text of a refusal: how the operator can open the group. @default nothing */
  readonly hint?: string;
}

const HEADER_PREFIX = "triton-grpc-protocol-";

/**
 * Converts the restrictions to a table by protocol.
 *
 * @throws TritonError INVALID_ARG when a protocol is restricted twice.
 */
function toRestrictions(restricted: readonly RestrictedProtocols[]): Restrictions {
  const restrictions: Partial<Record<EndpointGroup, Restriction>> = {};
  for (const { protocols, key, value, hint = "" } of restricted) {
    for (const protocol of protocols) {
      if (restrictions[protocol] !== undefined) {
        const text = `protocol '${protocol}' can not be specified in multiple config groups`;
        throw errorFor("INVALID_OPTION", text);
      }
      restrictions[protocol] = { header: key, value, hint };
    }
  }
  return restrictions;
}

/** Decides which calls of a method may be made; undefined if all may. */
function admissionTo(
  { path, protocol }: Method,
  gate: AccessGate,
  authentication: Authentication | undefined,
): Method["admit"] {
  const authenticates = authentication?.guards(protocol) === true;
  if (!authenticates && !gate.guards(protocol)) return undefined;
  return async ({ headers, remoteAddress }) => {
    if (authenticates) {
      const request = { transport: "grpc", method: "POST", path, group: protocol, remoteAddress } as const;
      await authentication.check({ ...request, headers: headersOf(headers) });
    }
    const missing = gate.missingHeader(protocol, (header) => headers.get(onTheWire(header)));
    if (missing === undefined) return;
    const text = `This protocol is restricted, expecting header '${onTheWire(missing)}'${gate.hint(protocol)}`;
    throw errorFor("ACCESS_RESTRICTED", text);
  };
}

/** Name of a header in metadata, which is in lower case. */
function onTheWire(header: string): string {
  return `${HEADER_PREFIX}${header.toLowerCase()}`;
}

function headersOf(sent: CallHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of sent.entries()) headers.append(name, value);
  return headers;
}

const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
const { SERVING, NOT_SERVING } = HealthCheckResponse.ServingStatus;

/** Readiness of the server and its models: `ServerLive`, `ServerReady`, `ModelReady`, health `Check`. */
function healthMethods(service: InferenceService): Method[] {
  return [
    rpc("ServerLive", "health", () => ({ live: service.isLive() })),
    rpc("ServerReady", "health", async () => ({ ready: await service.checkReady() })),
    rpc("ModelReady", "health", async ({ name, version }) => ({
      ready: await service.checkModelReady(name, version),
    })),
    unary(
      {
        path: "/grpc.health.v1.Health/Check",
        protocol: "health",
        request: HealthCheckRequest,
        response: HealthCheckResponse,
      },
      async () => ({
        status: (await service.checkReady()) ? SERVING : NOT_SERVING,
      }),
    ),
  ];
}

type Watcher = ResponseStream<grpc.health.v1.HealthCheckResponse.$Properties>;

/** Health `Watch`: sends the state of the server now, and at each change. */
function healthWatchMethods(service: InferenceService, shutdown: Shutdown): Method[] {
  const watch = new ReadinessWatch(service);
  return [
    serverStream(
      {
        path: "/grpc.health.v1.Health/Watch",
        protocol: "health",
        request: HealthCheckRequest,
        response: HealthCheckResponse,
      },
      (_, call) => {
        shutdown.refuseIfBegun();
        const forget = shutdown.onExpire((reason) => call.end(reason));
        call.onClose(() => {
          forget();
          watch.remove(call);
        });
        watch.add(call);
      },
    ),
  ];
}

/** Tells watchers the state of the service. It listens to the service while there are watchers. */
class ReadinessWatch {
  readonly #told = new Map<Watcher, number>();
  #stopListening: (() => void) | undefined;

  constructor(private readonly service: InferenceService) {}

  add(watcher: Watcher): void {
    this.#tell(watcher, this.#status());
    this.#stopListening ??= this.service.onChange(() => this.#look());
  }

  remove(watcher: Watcher): void {
    this.#told.delete(watcher);
    if (this.#told.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #look(): void {
    const status = this.#status();
    for (const [watcher, told] of [...this.#told]) if (told !== status) this.#tell(watcher, status);
  }

  #tell(watcher: Watcher, status: number): void {
    this.#told.set(watcher, status);
    watcher.write({ status });
  }

  #status(): number {
    return this.service.isReady() ? SERVING : NOT_SERVING;
  }
}

/** Metadata of the server and its models, and configurations: `ServerMetadata`, `ModelMetadata`, `ModelConfig`. */
function metadataMethods(service: InferenceService): Method[] {
  return [
    rpc("ServerMetadata", "metadata", () => {
      const { name, version, extensions } = service.serverMetadata();
      return { name, version, extensions: [...extensions] };
    }),
    rpc("ModelMetadata", "metadata", ({ name, version }) => service.modelMetadata(name, version)),
    rpc("ModelConfig", "model-config", ({ name, version }) => ({
      config: inference.ModelConfig.fromObject(service.modelConfig(name, version)),
    })),
  ];
}

/** `ModelStatistics`: of one model, or of all for an empty name. */
function statisticsMethods(service: InferenceService): Method[] {
  return [
    rpc("ModelStatistics", "statistics", ({ name, version }) => ({
      modelStats: service.statistics(name, version).map(({ batchStats, memoryUsage, ...report }) => ({
        ...report,
        batchStats: [...batchStats],
        memoryUsage: [...memoryUsage],
      })),
    })),
  ];
}

type Parameters = Readonly<Record<string, inference.ModelRepositoryParameter.$Properties>>;

const protocol = "model-repository";

/** The model repository: `RepositoryIndex`, `RepositoryModelLoad`, `RepositoryModelUnload`. */
function repositoryMethods(service: InferenceService): Method[] {
  return [
    rpc("RepositoryIndex", protocol, async ({ repositoryName, ready }) => {
      refuseRepositoryName(repositoryName);
      return { models: await service.repositoryIndex(ready) };
    }),
    rpc("RepositoryModelLoad", protocol, async ({ repositoryName, modelName, parameters }, call) => {
      refuseRepositoryName(repositoryName);
      const route = service.management?.find(
        ({ group, loadParameter }) => group === protocol && Object.hasOwn(parameters, loadParameter ?? ""),
      );
      if (route !== undefined) {
        call.addTrailer(`tritonjs-${route.loadParameter}-bin`, await manage(route, modelName, parameters));
        return {};
      }
      await service.loadModel(modelName, loadParameters(parameters));
      return {};
    }),
    rpc("RepositoryModelUnload", protocol, async ({ repositoryName, modelName, parameters }) => {
      refuseRepositoryName(repositoryName);
      await service.unloadModel(modelName, { unloadDependents: unloadsDependents(parameters) });
      return {};
    }),
  ];
}

/**
 * Calls a route of an extension, which has no method of its own in the protocol.
 *
 * @returns the answer, as JSON unless it is bytes
 */
async function manage(
  { get, post, loadParameter = "" }: ManagementRoute,
  modelName: string,
  { [loadParameter]: given, ...others }: Parameters,
): Promise<Uint8Array> {
  const [other] = Object.keys(others);
  if (other !== undefined) {
    throw invalidArgument(
      `load parameter '${loadParameter}' cannot be combined with '${other}'.`,
      "INVALID_LOAD_REQUEST",
    );
  }
  let body: unknown;
  try {
    body = JSON.parse(given?.stringParam ?? "");
  } catch {
    body = undefined;
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidArgument(
      `invalid value of load parameter '${loadParameter}', expected a string_param with a JSON object.`,
      "INVALID_LOAD_REQUEST",
    );
  }
  const operation = Object.keys(body).length === 0 ? get : post;
  if (operation === undefined) throw errorFor("FEATURE_DISABLED", `'${loadParameter}' cannot be read`);
  const answer = await operation.run({ names: { model: modelName }, body: body as Record<string, unknown> });
  return answer instanceof Uint8Array ? answer : Buffer.from(JSON.stringify(answer ?? null));
}

function refuseRepositoryName(repositoryName: string): void {
  if (repositoryName === "") return;
  throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
}

function loadParameters(parameters: Parameters): LoadParameters {
  const files = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [key, { parameterChoice, stringParam, bytesParam }] of Object.entries(parameters)) {
    const expected = key === "config" ? "stringParam" : key.startsWith("file:") ? "bytesParam" : undefined;
    if (expected === undefined)
      throw invalidArgument(`unrecognized load parameter '${key}'.`, "INVALID_LOAD_REQUEST");
    if (parameterChoice !== expected) {
      const kind = expected === "stringParam" ? "string_param" : "bytes_param";
      throw invalidArgument(
        `invalid value type for load parameter '${key}', expected ${kind}.`,
        "INVALID_LOAD_REQUEST",
      );
    }
    if (key === "config") config = stringParam ?? "";
    else files.set(key.slice("file:".length), bytesParam ?? new Uint8Array());
  }
  return { config, files };
}

function unloadsDependents({ unload_dependents: dependents }: Parameters): boolean {
  if (dependents === undefined) return false;
  if (dependents.parameterChoice === "boolParam") return dependents.boolParam ?? false;
  throw invalidArgument(
    "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    "INVALID_LOAD_REQUEST",
  );
}

const sharedMemoryProtocol = "shared-memory";

function sharedMemoryMethods({ sharedMemory }: InferenceService): Method[] {
  return [
    rpc("SystemSharedMemoryStatus", sharedMemoryProtocol, ({ name }) => ({
      regions: byName(sharedMemory.systemStatus(name)),
    })),
    rpc("SystemSharedMemoryRegister", sharedMemoryProtocol, async ({ name, key, offset, byteSize }) => {
      await sharedMemory.registerSystem(name, { key, offset, byteSize });
      return {};
    }),
    rpc("SystemSharedMemoryUnregister", sharedMemoryProtocol, ({ name }) => {
      sharedMemory.unregisterSystem(name);
      return {};
    }),
    rpc("CudaSharedMemoryStatus", sharedMemoryProtocol, ({ name }) => ({
      regions: byName(sharedMemory.cudaStatus(name)),
    })),
    rpc("CudaSharedMemoryRegister", sharedMemoryProtocol, ({ name, rawHandle, deviceId, byteSize }) => {
      sharedMemory.registerCuda(name, { rawHandle, deviceId, byteSize });
      return {};
    }),
    rpc("CudaSharedMemoryUnregister", sharedMemoryProtocol, ({ name }) => {
      sharedMemory.unregisterCuda(name);
      return {};
    }),
  ];
}

function byName<R extends { readonly name: string }>(regions: readonly R[]): Record<string, R> {
  return Object.fromEntries(regions.map((region) => [region.name, region]));
}

type Settings = Readonly<Record<string, inference.TraceSettingRequest.SettingValue.$Properties>>;

/** `TraceSetting`: changes the trace settings in the request, then returns all of them. */
function traceMethods(service: InferenceService): Method[] {
  return [
    rpc("TraceSetting", "trace", async ({ settings, modelName }) => {
      const { tracing } = service;
      if (tracing === undefined) throw errorFor("FEATURE_DISABLED", "the server does not support trace");
      if (modelName !== "" && !(await service.checkModelReady(modelName, ""))) {
        throw errorFor("MODEL_NOT_AVAILABLE", `Request for unknown model : ${modelName}`);
      }
      const given = settings ?? {};
      if (Object.keys(given).length > 0) tracing.update(modelName, readChanges(given));
      const texts = Object.entries(traceSettingTexts(tracing.settings(modelName)));
      return {
        settings: Object.fromEntries(
          texts.map(([name, value]) => [name, { value: typeof value === "string" ? [value] : [...value] }]),
        ),
      };
    }),
  ];
}

/** Reads the requested changes. A setting without a value undoes an earlier change. */
function readChanges(settings: Settings): TraceChanges {
  const given = new Map(Object.entries(settings));
  if (given.has("trace_file")) {
    throw errorFor("SETTING_READ_ONLY", "trace file location can not be updated through network protocol");
  }
  const changes: TraceChanges = {};
  if (given.has("trace_level")) {
    const names = given.get("trace_level")?.value ?? [];
    const levels = names.length === 0 ? null : readTraceLevels(names);
    if (levels !== undefined) changes.levels = levels;
  }
  const one = <T>(name: string, read: (text: string) => T): T | null | undefined => {
    if (!given.has(name)) return undefined;
    const [text, ...more] = given.get(name)?.value ?? [];
    if (more.length > 0) throw errorFor("INVALID_SETTING", `expect only 1 value for '${name}'`);
    return text === undefined ? null : read(text);
  };
  const rate = one("trace_rate", (text) => readTraceNumber("trace_rate", text));
  if (rate !== undefined) changes.rate = rate;
  const count = one("trace_count", (text) => readTraceCount(text));
  if (count !== undefined) changes.count = count;
  const frequency = one("log_frequency", (text) => readTraceNumber("log_frequency", text));
  if (frequency !== undefined) changes.logFrequency = frequency;
  return changes;
}

type Setting = inference.LogSettingsRequest.SettingValue.$Properties;

/** `LogSettings`: changes the log settings in the request, then returns all of them. */
function logMethods({ log }: InferenceService): Method[] {
  return [
    rpc("LogSettings", "logging", ({ settings }) => {
      change(log, settings ?? {});
      return { settings: describe(log) };
    }),
  ];
}

/** Changes the settings that the request names. As in Triton, settings before a bad one change all the same. */
function change(log: Log, settings: Readonly<Record<string, Setting>>): void {
  const given = new Map(Object.entries(settings));
  if (given.has("log_file")) {
    throw errorFor("SETTING_READ_ONLY", "log file location can not be updated through network protocol");
  }
  const flags = { log_info: "info", log_warning: "warning", log_error: "error" } as const;
  for (const [name, key] of Object.entries(flags)) {
    const value = given.get(name);
    if (value !== undefined) log.update({ [key]: value.boolParam ?? expect("boolean", name) });
  }
  const level = given.get("log_verbose_level");
  if (level !== undefined) {
    log.update({ verboseLevel: level.uint32Param ?? expect("int32", "log_verbose_level") });
  }
  const format = given.get("log_format");
  if (format === undefined) return;
  const text = format.stringParam ?? expect("string", "log_format");
  const known = LOG_FORMATS.find((one) => one === text);
  if (known === undefined) {
    throw errorFor("INVALID_SETTING", `invalid argument for log_format, got: ${text}`);
  }
  log.update({ format: known });
}

function expect(type: string, name: string): never {
  throw errorFor("INVALID_SETTING", `expect ${type} for '${name}'`);
}

function describe({ settings }: Log): Record<string, inference.LogSettingsResponse.SettingValue.$Properties> {
  return {
    log_file: { stringParam: settings.file },
    log_info: { boolParam: settings.info },
    log_warning: { boolParam: settings.warning },
    log_error: { boolParam: settings.error },
    log_verbose_level: { uint32Param: settings.verboseLevel },
    log_format: { stringParam: settings.format },
  };
}

const { ServerReflectionRequest, ServerReflectionResponse } = grpc.reflection.v1;

type Request = grpc.reflection.v1.ServerReflectionRequest & grpc.reflection.v1.ServerReflectionRequest.$Shape;
type Response = grpc.reflection.v1.ServerReflectionResponse.$Properties;
type Answer = Omit<Response, "validHost" | "originalRequest">;

/** Both services use the same messages. */
const SERVICES = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/** Server reflection: lists the services and describes their messages. */
function reflectionMethods(shutdown: Shutdown): Method[] {
  return SERVICES.map((service) =>
    duplex(
      {
        path: `/${service}/ServerReflectionInfo`,
        protocol: "metadata",
        request: ServerReflectionRequest,
        response: ServerReflectionResponse,
      },
      (stream: DuplexStream<Request, Response>) => {
        shutdown.refuseIfBegun();
        const forget = shutdown.onExpire((reason) => stream.end(reason));
        stream.onClose(forget);
        stream.onDrain(() => stream.resume());
        stream.onHalfClose(() => stream.end());
        stream.onMessage((request, share) => {
          share.release();
          const response = { validHost: request.host, originalRequest: request, ...answer(request) };
          if (!stream.write(response)) stream.pause();
        });
      },
    ),
  );
}

function answer(request: Request): Answer {
  const { fileByFilename, fileContainingSymbol, allExtensionNumbersOfType } = request;
  switch (request.messageRequest) {
    case "listServices":
      return { listServicesResponse: { service: serviceNames.map((name) => ({ name })) } };
    case "fileByFilename":
      return file(
        descriptors.find(({ name }) => name === fileByFilename),
        `file ${fileByFilename}`,
      );
    case "fileContainingSymbol":
      return file(fileBySymbol.get(fileContainingSymbol!), `symbol ${fileContainingSymbol}`);
    case "allExtensionNumbersOfType":
      return fileBySymbol.has(allExtensionNumbersOfType!)
        ? { allExtensionNumbersResponse: { baseTypeName: allExtensionNumbersOfType } }
        : notFound(`type ${allExtensionNumbersOfType}`);
    case "fileContainingExtension":
      return notFound("extension");
    default:
      return failed(STATUS.INVALID_ARGUMENT, "the request asks for nothing");
  }
}

const serviceNames = descriptors.flatMap(({ services }) => services);

const fileBySymbol: ReadonlyMap<string, (typeof descriptors)[number]> = new Map(
  descriptors.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)),
);

/** No file imports another, so the answer is one file. */
function file(descriptor: (typeof descriptors)[number] | undefined, what: string): Answer {
  if (descriptor === undefined) return notFound(what);
  return { fileDescriptorResponse: { fileDescriptorProto: [Buffer.from(descriptor.bytes, "base64")] } };
}

function notFound(what: string): Answer {
  return failed(STATUS.NOT_FOUND, `${what} not found`);
}

function failed(errorCode: number, errorMessage: string): Answer {
  return { errorResponse: { errorCode, errorMessage } };
}
