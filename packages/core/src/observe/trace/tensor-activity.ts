import { fromBfloat16, fromFloat16, Tensor } from "@tritonjs/protocol";

/** Stage of a request at which its tensors are recorded. */
export type TensorStage = "TENSOR_QUEUE_INPUT" | "TENSOR_BACKEND_OUTPUT";

/** Number of elements that are converted to text at a time. */
const SLICE = 4096;

/** A tensor of a trace: a copy, which is converted to text when it is written. */
export class TensorActivity {
  readonly #tensor: Tensor;
  readonly #opening: string;

  constructor(id: number, stage: TensorStage, name: string, tensor: Tensor) {
    this.#tensor = Tensor.fromBytes(tensor.datatype, tensor.shape, new Uint8Array(tensor.bytes));
    this.#opening = `{"id":${id},"activity":"${stage}","tensor":{"name":${JSON.stringify(name)},"data":"`;
  }

  get byteSize(): number {
    return this.#tensor.byteLength;
  }

  /** The JSON, piece by piece, so that a large tensor does not block the event loop. */
  *pieces(): Generator<string> {
    const { datatype, shape } = this.#tensor;
    const elements = elementsOf(this.#tensor);
    yield this.#opening;
    const text = textOf(datatype);
    for (let from = 0; from < elements.length; from += SLICE) {
      const to = Math.min(from + SLICE, elements.length);
      let piece = from === 0 ? "" : ",";
      for (let i = from; i < to; i++) piece += `${i === from ? "" : ","}${text(elements[i]!)}`;
      yield datatype === "BYTES" ? inString(piece) : piece;
    }
    yield `","shape":"${shape.join(",")}","dtype":"${datatype}"}}`;
  }
}

/**
 * Returns no elements if the bytes are not a valid tensor, so that the trace of a faulty model can still be written.
 */
function elementsOf(tensor: Tensor): Tensor["elements"] {
  try {
    return tensor.elements;
  } catch {
    return [];
  }
}

type Element = Tensor["elements"][number];

/**
 * Makes the text of an element of a data type. Strings are quoted as in CSV, because Triton's tools read them that way.
 */
function textOf(datatype: Tensor["datatype"]): (element: Element) => string {
  switch (datatype) {
    case "BYTES":
      return (element) =>
        `"${Buffer.from(element as Uint8Array)
          .toString()
          .replaceAll('"', '""')}"`;
    case "FP16":
      return (element) => short(fromFloat16(element as number));
    case "BF16":
      return (element) => short(fromBfloat16(element as number));
    case "FP32":
      return (element) => short(element as number);
    default:
      return (element) => String(element);
  }
}

/** Formats a 32-bit float with as few digits as identify it. */
function short(value: number): string {
  for (const digits of [7, 8]) {
    const rounded = Number(value.toPrecision(digits));
    if (Object.is(Math.fround(rounded), value)) return String(rounded);
  }
  return String(Number(value.toPrecision(9)));
}

/** Escapes a text for use within a JSON string. */
function inString(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
