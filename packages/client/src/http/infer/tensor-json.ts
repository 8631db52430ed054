import { doubleText, type Tensor, TritonError } from "@tritonjs/protocol";

/**
 * Makes a flat JSON array of the elements of a tensor.
 *
 * @throws TritonError INVALID_ARG for elements without a JSON form: FP16, BF16, and bytes that are not UTF-8.
 */
export function tensorJson(name: string, { datatype, elements }: Tensor): string {
  if (datatype === "FP16" || datatype === "BF16") {
    throw new TritonError(
      "INVALID_ARG",
      `input '${name}': cannot send ${datatype} as JSON; send it as binary`,
      {
        reason: "INVALID_INPUT",
      },
    );
  }
  if (Array.isArray(elements)) return `[${elements.map((bytes) => stringJson(name, bytes)).join(",")}]`;
  const toText =
    datatype === "FP32" || datatype === "FP64"
      ? (doubleText as (value: number | bigint) => string)
      : datatype === "BOOL"
        ? (value: number | bigint) => (value ? "true" : "false")
        : String;
  return `[${Array.from(elements as ArrayLike<number | bigint>, toText).join(",")}]`;
}

function stringJson(name: string, bytes: Uint8Array): string {
  try {
    return JSON.stringify(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    const message = `input '${name}': cannot send an element as JSON, because it is not UTF-8; send it as binary`;
    throw new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
  }
}
