import { elementCount, type Shape, Tensor, TritonError } from "@tritonjs/protocol";

/**
 * Makes a batch input: a tensor by which Triton tells a model where one request ends and the next begins.
 * `BatchInputSpec` lists the kinds.
 *
 * @param shapes shape of the source input in each request, with the batch axis, in batch order
 */
export function makeBatchInput(kind: string, datatype: "INT32" | "FP32", shapes: readonly Shape[]): Tensor {
  const tensor = (shape: Shape, values: readonly number[]) =>
    Tensor.fromElements(
      datatype,
      shape,
      datatype === "INT32" ? Int32Array.from(values) : Float32Array.from(values),
    );
  const counts = shapes.map((shape) => elementCount(shape));
  switch (kind) {
    case "BATCH_ELEMENT_COUNT":
      return tensor([counts.length], counts);
    case "BATCH_ACCUMULATED_ELEMENT_COUNT":
      return tensor([counts.length], sums(counts));
    case "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
      return tensor([counts.length + 1], [0, ...sums(counts)]);
    case "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": {
      const longest = Math.max(...counts);
      return tensor([longest], new Array<number>(longest).fill(0));
    }
    case "BATCH_ITEM_SHAPE": {
      const items = itemShapes(shapes);
      return tensor([items.length, shapes[0]!.length - 1], items.flat());
    }
    case "BATCH_ITEM_SHAPE_FLATTEN": {
      const flat = itemShapes(shapes).flat();
      return tensor([flat.length], flat);
    }
    default:
      throw new TritonError("INVALID_ARG", `unknown batch input kind '${kind}'`, {
        reason: "INVALID_CONFIG",
      });
  }
}

function sums(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => {
    sum += count;
    return sum;
  });
}

/** The shape of each row, without the batch axis. */
function itemShapes(shapes: readonly Shape[]): Shape[] {
  return shapes.flatMap(([rows = 1, ...item]) => new Array<Shape>(rows).fill(item));
}
