import { doubleText, fromBfloat16, fromFloat16, type Tensor } from "@tritonjs/protocol";

/**
 * Outputs as JSON text for the profile export: a member for each output, an array of its elements, or the element
 * itself if it is the only one.
 */
export function outputsJson(tensors: ReadonlyMap<string, Tensor>): string {
  const members = [...tensors].map(([name, tensor]) => `${JSON.stringify(name)}:${elementsJson(tensor)}`);
  return `{${members.join(",")}}`;
}

/** Elements of a tensor as JSON text. */
export function elementsJson({ datatype, elements }: Pick<Tensor, "datatype" | "elements">): string {
  const texts = Array.isArray(elements)
    ? elements.map((bytes) => JSON.stringify(new TextDecoder().decode(bytes)))
    : Array.from(elements as ArrayLike<number | bigint>, (element) => {
        if (datatype === "BOOL") return element ? "true" : "false";
        if (typeof element === "bigint") return String(element);
        if (datatype !== "FP16" && datatype !== "BF16" && datatype !== "FP32" && datatype !== "FP64")
          return String(element);
        if (datatype === "FP16") return doubleText(fromFloat16(element));
        if (datatype === "BF16") return doubleText(fromBfloat16(element));
        return doubleText(element);
      });
  return texts.length === 1 ? texts[0]! : `[${texts.join(",")}]`;
}
