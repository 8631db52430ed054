import type { RequestedRange } from "@tritonjs/core/frontend";
import type { inference } from "@tritonjs/grpc-messages";
import type { TritonError } from "@tritonjs/protocol";
import { invalidArgument } from "./invalid-argument.js";

/** The part that inputs and requested outputs have in common. */
interface Parameterized {
  readonly name?: string | null;
  readonly parameters?: Record<string, inference.InferParameter.$Properties> | null;
}

const REGION = "shared_memory_region";
const OFFSET = "shared_memory_offset";
const BYTE_SIZE = "shared_memory_byte_size";

/**
 * Reads the shared-memory parameters of a tensor; undefined when it names no region.
 *
 * @throws TritonError INVALID_ARG for values of a wrong type, and for a range without a region or a size.
 */
export function decodeSharedMemoryRange({ name, parameters }: Parameterized): RequestedRange | undefined {
  const region = parameters?.[REGION];
  if (region !== undefined && region.parameterChoice !== "stringParam")
    throw wrongKind(REGION, name, "string_param");
  const offset = integer(OFFSET, name, parameters, region !== undefined);
  const byteSize = integer(BYTE_SIZE, name, parameters, region !== undefined);
  if (region === undefined) return undefined;
  if (byteSize === undefined) {
    throw invalidArgument(
      `'${BYTE_SIZE}' must be specified along with '${REGION}' parameter for tensor '${name}'`,
      "INVALID_REGION",
    );
  }
  return { region: region.stringParam ?? "", offset: offset ?? 0, byteSize };
}

function integer(
  key: string,
  name: string | null | undefined,
  parameters: Parameterized["parameters"],
  hasRegion: boolean,
): number | bigint | undefined {
  const parameter = parameters?.[key];
  if (parameter === undefined) return undefined;
  if (!hasRegion) {
    throw invalidArgument(
      `'${key}' can not be specified without '${REGION}' parameter for tensor '${name}'`,
      "INVALID_REGION",
    );
  }
  if (parameter.parameterChoice !== "int64Param") throw wrongKind(key, name, "int64_param");
  return parameter.int64Param ?? 0;
}

function wrongKind(key: string, name: string | null | undefined, expected: string): TritonError {
  return invalidArgument(
    `invalid value type for '${key}' parameter for tensor '${name}', expected ${expected}.`,
    "INVALID_REGION",
  );
}
