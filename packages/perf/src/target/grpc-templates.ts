import type { Compression } from "@tritonjs/client/internal";
import { encodeMessage, encodeParameter, inference } from "@tritonjs/protocol/grpc";
import type { TensorDataSet, TensorPayload, TestedModel } from "../data/data-set.js";
import type { GrpcTargetOptions } from "./target-options.js";
import {
  compressBytes,
  REQUEST_ID_DIGITS,
  type RegionPart,
  type SharedPayload,
  type StampFormat,
  type StampPositions,
  sequencePlaces,
  shareRequests,
  type WireTemplates,
} from "./wire-template.js";

type Parameters = Record<string, inference.InferParameter.$Properties>;

/** Bytes in front of a gRPC message: whether it is compressed, and its length. */
export const MESSAGE_HEAD_BYTES = 5;

/** A number whose varint has 9 bytes; every id fits into them, as varints may have needless bytes. */
const PLACE_OF_ID = 2n ** 62n;
const ID_BYTES = 9;
const PLACE_OF_REQUEST_ID = "0".repeat(REQUEST_ID_DIGITS);

export const PROTOBUF_STAMPS: StampFormat = {
  idBytes: ID_BYTES,
  flagBytes: 1,
  writeSequenceId(into, at, id) {
    let left = id;
    for (let i = 0; i < ID_BYTES - 1; i++) {
      into[at + i] = (left % 128) | 0x80;
      left = Math.floor(left / 128);
    }
    into[at + ID_BYTES - 1] = left;
  },
  writeFlag(into, at, value) {
    into[at] = value ? 1 : 0;
  },
};

/**
 * Prepares the messages of a data set, with gRPC's framing. Messages that differ from request to request, on streams
 * and of sequences, are compressed when they are sent.
 *
 * @param shared ranges of shared memory in place of tensors, by payload
 */
export function grpcInferTemplates(
  data: TensorDataSet,
  model: TestedModel,
  target: GrpcTargetOptions,
  shared?: readonly SharedPayload[],
): WireTemplates {
  const compression = isStamped(target, model) ? undefined : target.compression;
  const prepared = data.payloads.map((payload, i) => {
    const message = encode(payload, model, target, shared?.[i]);
    if (compression !== undefined)
      return { parts: framed(compressBytes(message, compression), true), positions: {} };
    return {
      parts: framed(message, false),
      positions: positionsOf(payload, message, model, target, shared?.[i]),
    };
  });
  return shareRequests(prepared, PROTOBUF_STAMPS);
}

function framed(message: Buffer, isCompressed: boolean): Buffer[] {
  const head = Buffer.alloc(MESSAGE_HEAD_BYTES);
  head[0] = isCompressed ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return [head, message];
}

/** Compresses a message with its head, and gives it another head. */
export const compressedMessage =
  (compression: Compression) =>
  (prefix: Buffer, rest: Buffer): Buffer => {
    const message = Buffer.concat([prefix, rest]).subarray(MESSAGE_HEAD_BYTES);
    return Buffer.concat(framed(compressBytes(message, compression), true));
  };

/** Requests on a stream have ids, and ask for a final response; those of sequences differ in their flags. */
export const isStamped = ({ streaming = false }: GrpcTargetOptions, model: TestedModel): boolean =>
  streaming || model.isSequenceModel;

function encode(
  { inputs }: TensorPayload,
  model: TestedModel,
  { parameters: given = {}, streaming = false }: GrpcTargetOptions,
  shared: SharedPayload | undefined,
): Buffer {
  const parameters: Parameters = {};
  // The ones with positions come first, so that requests copy little.
  if (model.isSequenceModel) {
    parameters.sequence_id = { int64Param: PLACE_OF_ID };
    parameters.sequence_start = { boolParam: true };
    parameters.sequence_end = { boolParam: true };
  }
  if (streaming) parameters.triton_enable_empty_final_response = { boolParam: true };
  for (const [name, value] of Object.entries(given)) parameters[name] = encodeParameter(value);
  const partOf = (part: RegionPart | undefined): Parameters =>
    part === undefined
      ? {}
      : {
          shared_memory_region: { stringParam: part.region },
          shared_memory_byte_size: { int64Param: part.byteSize },
          shared_memory_offset: { int64Param: part.offset },
        };
  return encodeMessage(inference.ModelInferRequest, {
    modelName: model.name,
    modelVersion: model.version,
    id: streaming ? PLACE_OF_REQUEST_ID : "",
    parameters,
    inputs: inputs.map(({ name, datatype, shape }) => ({
      name,
      datatype,
      shape: [...shape],
      parameters: partOf(shared?.inputs.get(name)),
    })),
    outputs: [...(shared?.outputs ?? [])].map(([name, part]) => ({ name, parameters: partOf(part) })),
    rawInputContents: shared === undefined ? inputs.map(({ bytes }) => bytes) : [],
  });
}

function positionsOf(
  { inputs }: TensorPayload,
  message: Buffer,
  model: TestedModel,
  { streaming }: GrpcTargetOptions,
  shared: SharedPayload | undefined,
): StampPositions {
  const start = MESSAGE_HEAD_BYTES;
  // An entry is the key with its length, then the tag and length of the value, then the tag of its member.
  const afterKey = (key: string) => {
    const entry = Buffer.concat([Buffer.of(0x0a, key.length), Buffer.from(key), Buffer.of(0x12)]);
    return start + message.indexOf(entry) + entry.length + 2;
  };
  const id = Buffer.concat([Buffer.of(0x1a, REQUEST_ID_DIGITS), Buffer.from(PLACE_OF_REQUEST_ID)]);
  const positions = {
    ...sequencePlaces(model, afterKey),
    requestId: streaming ? start + message.indexOf(id) + 2 : undefined,
  };
  const firstFresh = inputs.findIndex(({ fresh }) => fresh !== undefined);
  if (shared !== undefined || firstFresh < 0) return positions;
  // Contents are the last fields of the message, in the order of the inputs.
  let at = start + message.length;
  for (let i = inputs.length - 1; i >= firstFresh; i--) {
    const { length } = inputs[i]!.bytes;
    at -= length;
    if (i > firstFresh) at -= 1 + varintBytes(length);
  }
  const { datatype, fresh } = inputs[firstFresh]!;
  return { ...positions, fresh: { at: at + fresh!.offset, byteSize: fresh!.byteSize, datatype } };
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let left = value; left >= 128; left = Math.floor(left / 128)) bytes++;
  return bytes;
}
