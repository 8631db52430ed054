import type { ModelConfig } from "./model-config.js";

/*
 * The JSON form of a configuration, as Triton prints it: snake_case names in the order of the message's
 * definition, scalars, lists and maps always, sub-messages and oneof members only when set, 64-bit integers as
 * plain numbers.
 */

/** A field of a message: `one` is a sub-message, `many` a list of them, `map` string keys to messages. */
type Field = readonly [name: string, kind: "plain" | "one" | "many" | "map", fields?: readonly Field[]];

const plain = (...names: string[]): Field[] => names.map((name) => [name, "plain"] as const);

const queuePolicy: Field[] = plain(
  "timeoutAction",
  "defaultTimeoutMicroseconds",
  "allowTimeoutOverride",
  "maxQueueSize",
);

const reshape: Field = ["reshape", "one", plain("shape")];

const accelerator: Field[] = [...plain("name"), ["parameters", "plain"]];

const modelConfig: Field[] = [
  ...plain("name", "platform", "backend", "runtime"),
  [
    "versionPolicy",
    "one",
    [
      ["latest", "one", plain("numVersions")],
      ["all", "one", []],
      ["specific", "one", plain("versions")],
    ],
  ],
  ...plain("maxBatchSize"),
  [
    "input",
    "many",
    [
      ...plain("name", "dataType", "format", "dims"),
      reshape,
      ...plain("isShapeTensor", "allowRaggedBatch", "optional", "isNonLinearFormatIo"),
    ],
  ],
  [
    "output",
    "many",
    [
      ...plain("name", "dataType", "dims"),
      reshape,
      ...plain("labelFilename", "isShapeTensor", "isNonLinearFormatIo"),
    ],
  ],
  ["batchInput", "many", plain("kind", "targetName", "dataType", "sourceInput")],
  ["batchOutput", "many", plain("targetName", "kind", "sourceInput")],
  [
    "optimization",
    "one",
    [
      ["graph", "one", plain("level")],
      ...plain("priority"),
      [
        "executionAccelerators",
        "one",
        [
          ["gpuExecutionAccelerator", "many", accelerator],
          ["cpuExecutionAccelerator", "many", accelerator],
        ],
      ],
      ["inputPinnedMemory", "one", plain("enable")],
      ["outputPinnedMemory", "one", plain("enable")],
      ...plain("gatherKernelBufferThreshold", "eagerBatching"),
    ],
  ],
  [
    "dynamicBatching",
    "one",
    [
      ...plain(
        "preferredBatchSize",
        "maxQueueDelayMicroseconds",
        "preserveOrdering",
        "priorityLevels",
        "defaultPriorityLevel",
      ),
      ["defaultQueuePolicy", "one", queuePolicy],
      ["priorityQueuePolicy", "map", queuePolicy],
    ],
  ],
  [
    "ensembleScheduling",
    "one",
    [
      ["step", "many", plain("modelName", "modelVersion", "inputMap", "outputMap", "modelNamespace")],
      ...plain("maxInflightRequests"),
    ],
  ],
  [
    "sequenceBatching",
    "one",
    [
      ["direct", "one", plain("maxQueueDelayMicroseconds", "minimumSlotUtilization")],
      [
        "oldest",
        "one",
        plain("maxCandidateSequences", "preferredBatchSize", "maxQueueDelayMicroseconds", "preserveOrdering"),
      ],
      ...plain("maxSequenceIdleMicroseconds"),
      [
        "controlInput",
        "many",
        [
          ...plain("name"),
          ["control", "many", plain("kind", "int32FalseTrue", "fp32FalseTrue", "boolFalseTrue", "dataType")],
        ],
      ],
      [
        "state",
        "many",
        [
          ...plain("inputName", "outputName", "dataType", "dims"),
          ["initialState", "many", plain("dataType", "dims", "zeroData", "dataFile", "name")],
          ...plain("useSameBufferForInputOutput", "useGrowableMemory"),
        ],
      ],
      ...plain("iterativeSequence"),
    ],
  ],
  [
    "instanceGroup",
    "many",
    [
      ...plain("name", "kind", "count"),
      ["rateLimiter", "one", [["resources", "many", plain("name", "global", "count")], ...plain("priority")]],
      ...plain("gpus"),
      ["secondaryDevices", "many", plain("kind", "deviceId")],
      ...plain("profile", "passive", "hostPolicy"),
    ],
  ],
  ...plain("defaultModelFilename", "ccModelFilenames", "metricTags"),
  ["parameters", "map", plain("stringValue")],
  [
    "modelWarmup",
    "many",
    [
      ...plain("name", "batchSize"),
      ["inputs", "map", plain("dataType", "dims", "zeroData", "randomData", "inputDataFile")],
      ...plain("count"),
    ],
  ],
  ["modelTransactionPolicy", "one", plain("decoupled")],
  ["responseCache", "one", plain("enable")],
];

type Json = Record<string, unknown>;

/** The configuration as the object that `GET v2/models/M/config` prints. */
export function toConfigJson(config: ModelConfig): Record<string, unknown> {
  return toJson(config as unknown as Json, modelConfig);
}

function toJson(message: Json, fields: readonly Field[]): Json {
  const json: Json = {};
  for (const [name, kind, nested = []] of fields) {
    const value = message[name];
    if (value === undefined) continue;
    json[snakeCase(name)] =
      kind === "plain"
        ? value
        : kind === "one"
          ? toJson(value as Json, nested)
          : kind === "many"
            ? (value as Json[]).map((entry) => toJson(entry, nested))
            : Object.fromEntries(
                Object.entries(value as Json).map(([key, v]) => [key, toJson(v as Json, nested)]),
              );
  }
  return json;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
