import type { inference } from "@tritonjs/grpc-messages";

/** About how much memory the tensors of a message take, in bytes. */
export function contentBytes({ rawInputContents, inputs }: inference.ModelInferRequest): number {
  let bytes = 0;
  for (const { length } of rawInputContents) bytes += length;
  for (const { contents } of inputs) {
    if (contents == null) continue;
    const { boolContents, intContents, int64Contents, uintContents, uint64Contents } = contents;
    for (const list of [boolContents, intContents, int64Contents, uintContents, uint64Contents]) {
      bytes += 8 * (list?.length ?? 0);
    }
    bytes += 8 * ((contents.fp32Contents?.length ?? 0) + (contents.fp64Contents?.length ?? 0));
    for (const { length } of contents.bytesContents ?? []) bytes += 8 + length;
  }
  return bytes;
}
