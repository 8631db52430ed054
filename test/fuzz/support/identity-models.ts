import { batch, type DataType, type ModelHandle, sample, type TensorSpec, Triton } from "@tritonjs/core";

export const DATA_TYPES = [
  ...(["FP32", "FP64", "FP16", "BF16", "INT8", "INT16", "INT32", "INT64"] as const),
  ...(["UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "BYTES"] as const),
] satisfies readonly DataType[];

/** Drops all lines: faults are seen in the answers. */
const logger = { error() {}, warn() {}, info() {}, debug() {} };

/** A server, and its models by name. */
export interface IdentityModels {
  readonly triton: Triton;
  readonly handles: ReadonlyMap<string, ModelHandle<readonly TensorSpec[], readonly TensorSpec[]>>;
}

/**
 * A server with a model for each data type, which returns its input `IN` as `OUT`, and with models that have a batch,
 * sequences, several responses, and two inputs. No group of operations is restricted.
 */
export async function openIdentityModels(): Promise<IdentityModels> {
  const triton = new Triton({
    logger,
    security: { restrictedEndpoints: [] },
    allowClientSharedMemory: true,
    trace: {},
  });
  const handles: ModelHandle<readonly TensorSpec[], readonly TensorSpec[]>[] = DATA_TYPES.map((dtype) =>
    triton.bind({
      modelName: dtype.toLowerCase(),
      inputs: [{ name: "IN", dtype, shape: [-1] }],
      outputs: [{ name: "OUT", dtype, shape: [-1] }],
      config: { maxBatchSize: 0, batching: false },
      inferFunc: sample(({ IN }) => ({ OUT: IN })),
    }),
  );
  const one = [{ name: "IN", dtype: "FP32", shape: [-1] }] as const;
  const out = [{ name: "OUT", dtype: "FP32", shape: [-1] }] as const;
  handles.push(
    triton.bind({
      modelName: "batched",
      inputs: one,
      outputs: out,
      config: { maxBatchSize: 4, instanceGroup: [{ count: 2 }] },
      inferFunc: batch(({ IN }) => ({ OUT: IN })),
    }),
    triton.bind({
      modelName: "sequence",
      inputs: one,
      outputs: out,
      config: { maxBatchSize: 4, sequence: { maxSequenceIdleMicroseconds: 1_000_000 } },
      inferFunc: batch(({ IN }) => ({ OUT: IN })),
    }),
    triton.bind({
      modelName: "stream",
      inputs: one,
      outputs: out,
      config: { batching: false, decoupled: true, instanceGroup: [{ count: 4 }] },
      inferFunc: sample(async function* ({ IN }) {
        for (let i = 0; i < Math.min(3, IN.size); i++) yield { OUT: IN };
      }),
    }),
    triton.bind({
      modelName: "pair",
      inputs: [
        { name: "text", dtype: "BYTES", shape: [-1] },
        { name: "flag", dtype: "BOOL", shape: [1], optional: true },
      ],
      outputs: [{ name: "text", dtype: "BYTES", shape: [-1] }],
      config: { maxBatchSize: 0, batching: false },
      inferFunc: sample(({ text }) => ({ text })),
    }),
  );
  await Promise.all(handles.map((handle) => handle.ready()));
  return { triton, handles: new Map(handles.map((handle) => [handle.name, handle])) };
}

/** Words of the v2 protocol, and values that are odd in any protocol. */
export const V2_TOKENS: readonly (string | Uint8Array)[] = [
  ...[
    "inputs",
    "outputs",
    "parameters",
    "name",
    "datatype",
    "shape",
    "data",
    "id",
    "IN",
    "OUT",
    "text",
    "flag",
  ],
  ...["binary_data", "binary_data_size", "binary_data_output", "classification", "shared_memory_region"],
  ...["shared_memory_byte_size", "shared_memory_offset", "sequence_id", "sequence_start", "sequence_end"],
  ...["priority", "timeout", "triton_enable_empty_final_response", "headers", "__proto__", "constructor"],
  ...["toString", "hasOwnProperty", "null", "true", "false", "[]", "{}", '""', "NaN", "-Infinity", "1e999"],
  ...["batched", "sequence", "stream", "pair", "1", "-1", "0", "..", "%2e%2e", "%00", "\u0000", "\\u0000"],
  ...[
    "\\ud800",
    "\ud83d\ude00",
    "\ufeff",
    "\u2028",
    ...DATA_TYPES,
    ...DATA_TYPES.map((type) => type.toLowerCase()),
  ],
  Buffer.of(0xff, 0xff, 0xff, 0xff),
  Buffer.of(0xc3, 0x28),
  Buffer.of(0xed, 0xa0, 0x80),
];
