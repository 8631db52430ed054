import type { ReadyModel } from "@tritonjs/core/frontend";
import { type DataType, NO_PARAMETERS } from "@tritonjs/protocol";
import type { DecodedRequest } from "./decoded-request.js";

/** An input whose bytes follow the JSON. */
export interface BinaryInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly byteSize: number;
}

/** What JSON says that has all tensors behind it: everything but their bytes. */
export interface BinaryHeader {
  /** The request without its tensors. */
  readonly request: DecodedRequest;
  readonly inputs: readonly BinaryInput[];
}

const MAX_HEADER_BYTES = 1024;
const MAX_HEADERS = 64;

const headersOf = new WeakMap<ReadyModel["config"], Map<string, BinaryHeader>>();

/**
 * What a header is known by: clients that send tensors in binary write the same JSON for every request of one shape.
 * Undefined for JSON that is too long to be one of those.
 */
export function headerKey(json: Uint8Array): string | undefined {
  if (json.length > MAX_HEADER_BYTES) return undefined;
  return Buffer.from(json.buffer, json.byteOffset, json.length).toString("latin1");
}

/** What a header has said before that was without fault for this model. */
export function knownHeader({ config }: ReadyModel, key: string): BinaryHeader | undefined {
  return headersOf.get(config)?.get(key);
}

/**
 * Keeps what a header says, unless it says it to one request alone. With ever new ones, those before are dropped.
 *
 * @param inputs those of the request, if all of them follow the JSON
 */
export function keepHeader(
  { config }: ReadyModel,
  key: string,
  request: DecodedRequest,
  inputs: readonly BinaryInput[] | undefined,
): void {
  if (request.id !== "" || inputs === undefined || request.parameters !== NO_PARAMETERS) return;
  for (const { range } of request.outputs.named.values()) if (range !== undefined) return;
  const known = headersOf.get(config) ?? new Map<string, BinaryHeader>();
  headersOf.set(config, known);
  if (known.size >= MAX_HEADERS) known.clear();
  known.set(key, { request: request.withoutInputs(), inputs });
}
