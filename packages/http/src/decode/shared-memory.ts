import type { RequestedRange } from "@tritonjs/core/frontend";
import { asText, asUnsigned, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";

/** Reads the range of shared memory from the parameters of an input or output; undefined when they name none. */
export function readRange(parameters: JsonValue | undefined): RequestedRange | undefined {
  const region = find(parameters, "shared_memory_region");
  if (region === undefined) return undefined;
  return {
    region: asText(region, "Unable to parse 'shared_memory_region'"),
    offset: readSize(parameters, "shared_memory_offset"),
    byteSize: readSize(parameters, "shared_memory_byte_size"),
  };
}

function readSize(parameters: JsonValue | undefined, name: string): number | bigint {
  const size = find(parameters, name);
  return size === undefined ? 0 : asUnsigned(size, `Unable to parse '${name}'`);
}
