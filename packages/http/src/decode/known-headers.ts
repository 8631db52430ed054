import { type DataType, NO_PARAMETERS, type ReadyModel } from "@tritonjs/core";
import type { RequestParameters } from "./request-parameters.js";
import type { OutputForm } from "./requested-outputs.js";

/** What the JSON of a request says besides its inputs. */
export interface RequestHeader {
  readonly id: string;
  readonly parameters: RequestParameters;
  readonly requestedOutputs: readonly string[];
  readonly named: ReadonlyMap<string, OutputForm>;
}

/** An input whose bytes follow the JSON. */
export interface BinaryInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly byteSize: number;
}

/** What JSON says that has all tensors behind it: everything but their bytes. */
export interface BinaryHeader extends RequestHeader {
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

/** Keeps what a header says, unless it says it to one request alone. With ever new ones, those before are dropped. */
export function keepHeader(
  { config }: ReadyModel,
  key: string,
  header: RequestHeader & { readonly inputs: readonly BinaryInput[] | undefined },
): void {
  const { id, inputs, parameters, named } = header;
  if (id !== "" || inputs === undefined || Object.keys(parameters.custom).length > 0) return;
  for (const { range } of named.values()) if (range !== undefined) return;
  const known = headersOf.get(config) ?? new Map<string, BinaryHeader>();
  headersOf.set(config, known);
  if (known.size >= MAX_HEADERS) known.clear();
  known.set(key, { ...header, inputs, parameters: { ...parameters, custom: NO_PARAMETERS } });
}
