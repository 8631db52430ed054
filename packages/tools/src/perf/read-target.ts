import { invalidOption } from "../data/invalid-option.js";
import { readPem, type TlsSettings } from "../target/endpoint.js";
import type { InProcessSource } from "./open-triton.js";
import type { OptionReader } from "./option-reader.js";
import { readHeaders, readModelNames, readParameterOptions } from "./option-readers.js";
import type { TargetSettings } from "./perf-settings.js";

const COMPRESSIONS = ["none", "gzip", "deflate"] as const;

/** Reads the options of the target. */
export function readTarget(options: OptionReader): TargetSettings {
  const serviceKind = options.word("serviceKind", ["triton", "triton_c_api", "openai"]);
  const protocol = options.word("protocol", ["http", "grpc"], { anyCase: true });
  const headers = readHeaders(options.texts("header"));
  const parameters = readParameterOptions(options.texts("requestParameter"));
  const modelVersion = options.text("modelVersion");
  const streaming = options.has("streaming");
  const name = options.text("modelName");
  if (serviceKind === "openai") {
    const url = options.text("url") ?? "localhost:8000";
    const endpoint = options.text("endpoint");
    const tls = httpsTls(options);
    return { kind: "openai", url, endpoint, streaming, modelName: name, headers, tls };
  }
  if (name === undefined) throw invalidOption("-m: expected the name of a model");
  const model = { modelName: name, modelVersion, parameters };
  if (serviceKind === "triton_c_api") return { kind: "in-process", ...model, source: sourceOf(options) };
  const remote = {
    ...model,
    headers,
    sharedMemory: sharedMemoryOf(options),
    outputSharedMemorySize: options.whole("outputSharedMemorySize", 1),
  };
  if (protocol === "grpc") {
    const compression = compressionOf(options, "grpcCompressionAlgorithm");
    const url = options.text("url") ?? "localhost:8001";
    return { kind: "grpc", ...remote, url, streaming, compression, tls: grpcTls(options) };
  }
  if (streaming) throw invalidOption("--streaming: expected -i grpc, got http");
  return {
    kind: "http",
    ...remote,
    url: options.text("url") ?? "localhost:8000",
    inputTensorFormat: options.word("inputTensorFormat", ["binary", "json"]),
    outputTensorFormat: options.word("outputTensorFormat", ["binary", "json"]),
    requestCompression: compressionOf(options, "requestCompression"),
    responseCompression: compressionOf(options, "responseCompression"),
    tls: httpsTls(options),
  };
}

function sourceOf(options: OptionReader): InProcessSource {
  const repository = options.text("modelRepository");
  const module = options.text("module");
  options.onlyOne(["modelRepository", "module"]);
  if (repository !== undefined) {
    const called = readModelNames(options.text("blsComposingModels") ?? "").map(({ name }) => name);
    return { repository, ...(called.length > 0 && { calledModels: called }) };
  }
  if (module !== undefined) return { module };
  throw invalidOption("--service-kind triton_c_api needs --model-repository or --module");
}

function sharedMemoryOf(options: OptionReader): "none" | "system" {
  if (options.text("sharedMemory") === "cuda") {
    throw invalidOption("--shared-memory cuda is not supported: expected none or system");
  }
  return options.word("sharedMemory", ["none", "system"]);
}

function compressionOf(options: OptionReader, name: string): "gzip" | "deflate" | undefined {
  const algorithm = options.word(name, COMPRESSIONS);
  return algorithm === "none" ? undefined : algorithm;
}

function grpcTls(options: OptionReader): TlsSettings | undefined {
  const files = pemFiles(options, {
    ca: "sslGrpcRootCertificationsFile",
    cert: "sslGrpcCertificateChainFile",
    key: "sslGrpcPrivateKeyFile",
  });
  return options.has("sslGrpcUseSsl") || files !== undefined ? (files ?? {}) : undefined;
}

function httpsTls(options: OptionReader): TlsSettings | undefined {
  const files = pemFiles(options, {
    ca: "sslHttpsCaCertificatesFile",
    cert: "sslHttpsClientCertificateFile",
    key: "sslHttpsPrivateKeyFile",
  });
  const acceptAny = options.word("sslHttpsVerifyPeer", ["0", "1"]) === "0";
  const host = options.word("sslHttpsVerifyHost", ["0", "1", "2"]);
  if (host !== "2" && !acceptAny) {
    throw invalidOption(
      "--ssl-https-verify-host: expected 2, or --ssl-https-verify-peer 0, which checks nothing",
    );
  }
  return acceptAny ? { ...files, acceptAny } : files;
}

function pemFiles(
  options: OptionReader,
  names: Readonly<Record<"ca" | "cert" | "key", string>>,
): TlsSettings | undefined {
  const found = Object.entries(names).flatMap(([member, name]) => {
    const path = options.text(name);
    return path === undefined ? [] : [[member, readPem(name, path)] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
