import type { ReadyModel } from "@tritonjs/core/frontend";
import { type DataType, NO_PARAMETERS } from "@tritonjs/protocol";
import { latin1Text } from "../exchange/latin1-text.js";
import type { DecodedRequest } from "./decoded-request.js";

/** An input whose bytes follow the JSON. */
export interface BinaryInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly byteSize: number;
}

/** The content of a JSON header whose tensors all follow it: everything but their bytes. */
export interface BinaryHeader {
  /** The request without its tensors. */
  readonly request: DecodedRequest;
  readonly inputs: readonly BinaryInput[];
}

const MAX_HEADER_BYTES = 1024;
const MAX_HEADERS = 64;

const headersOf = new WeakMap<ReadyModel["config"], Map<string, BinaryHeader>>();

/**
 * Key of a header: the first bytes of a body. Clients that send tensors in binary write the same JSON for every request
 * of one shape. Undefined for JSON that is too long for such a header.
 */
export function headerKey(body: Uint8Array, headerLength: number): string | undefined {
  return headerLength > MAX_HEADER_BYTES ? undefined : latin1Text(body, headerLength);
}

/** The content of an equal header that was valid for this model before; undefined for a new one. */
export function knownHeader({ config }: ReadyModel, key: string): BinaryHeader | undefined {
  return headersOf.get(config)?.get(key);
}

/**
 * Keeps the content of a header, unless it holds for one request alone. When too many headers are kept, all earlier
 * ones are dropped.
 *
 * @param inputs the inputs of the request, if all of them follow the JSON
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
