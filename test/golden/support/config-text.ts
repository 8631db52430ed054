import { fileURLToPath } from "node:url";
import type { ModelConfig } from "@tritonjs/core";
import protobuf from "protobufjs";
import { fromText } from "protobufjs/ext/textformat.js";

const proto = fileURLToPath(new URL("../../../packages/protocol/proto/model_config.proto", import.meta.url));
let messageType: protobuf.Type | undefined;

/** A configuration with only the fields of its text and the defaults of its messages. */
export type ParsedConfig = Partial<ModelConfig> & Record<string, unknown>;

/**
 * Reads a `config.pbtxt` as Triton does when it polls a repository: omitted fields have their defaults, instance
 * groups have names and kinds, the default file name is that of the backend.
 * @param name name of the model, for texts without a name
 */
export function parseConfigText(text: string, name: string): ParsedConfig {
  messageType ??= protobuf.loadSync(proto).lookupType("inference.ModelConfig");
  const message = fromText(messageType, text);
  const plain = messageType.toObject(message, {
    defaults: true,
    enums: String,
    longs: Number,
  });
  return normalise(withoutAbsent(plain) as ParsedConfig, name);
}

/** Drops unset fields: protobufjs says `null` for absent messages. */
function withoutAbsent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAbsent);
  if (typeof value !== "object" || value === null) return value;
  const present = Object.entries(value).filter(([, entry]) => entry !== null && entry !== undefined);
  return Object.fromEntries(present.map(([key, entry]) => [key, withoutAbsent(entry)]));
}

function normalise(config: ParsedConfig, modelName: string): ParsedConfig {
  const name = config.name || modelName;
  const isEnsemble = config.ensembleScheduling !== undefined;
  const { instanceGroup = [], ...rest } = config;
  const normal: ParsedConfig = {
    ...rest,
    name,
    // Without batching in its text, the model has none, whatever `bind` would choose.
    dynamicBatching: config.dynamicBatching,
    versionPolicy: config.versionPolicy ?? { latest: { numVersions: 1 } },
    defaultModelFilename: config.defaultModelFilename || (config.backend === "python" ? "model.py" : ""),
  };
  if (isEnsemble) return normal;
  const pinned = { enable: true };
  normal.optimization = {
    ...{ priority: "PRIORITY_DEFAULT", gatherKernelBufferThreshold: 0, eagerBatching: false },
    ...config.optimization,
    inputPinnedMemory: config.optimization?.inputPinnedMemory ?? pinned,
    outputPinnedMemory: config.optimization?.outputPinnedMemory ?? pinned,
  };
  if (instanceGroup.length > 0) {
    normal.instanceGroup = instanceGroup.map((group, i) => ({
      ...group,
      name: group.name || `${name}_${i}`,
      kind: group.kind === "KIND_AUTO" ? "KIND_CPU" : group.kind,
      count: group.count || 1,
    }));
  }
  return normal;
}
