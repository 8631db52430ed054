import { OpenModels } from "./open-models.js";
import { readPicture } from "./pictures.js";

/** Program 13: a Python model that finds faces, and calls a second network for each of them. */
export async function faces(): Promise<void> {
  await using models = await OpenModels.serve(["faces", "face_finder", "facenet"], "python-models");
  const { client } = models;
  const { height, width, values } = await readPicture("faces");
  const answer = await client.infer("faces", {
    inputs: { image: { datatype: "UINT8", shape: [height, width, 3], data: values } },
  });
  const boxes = answer.array("boxes", "FP32");
  const embeddings = answer.array("embeddings", "FP32");
  const count = boxes.shape[0]!;
  console.log(
    `${count} faces, around ${Array.from({ length: count }, (_, i) => middleOf(boxes.data, i)).join(", ")}`,
  );
  const likeness = (a: number, b: number) => {
    const size = embeddings.shape[1]!;
    return Array.from({ length: size }, (_, i) => embeddings.get(a, i) * embeddings.get(b, i)).reduce(
      (x, y) => x + y,
    );
  };
  // Vectors of length 1: the product is 1 for equal ones.
  console.log(`the first and the third are one person: ${likeness(0, 2) > 0.8}`);
  console.log(`the first and the second are one person: ${likeness(0, 1) > 0.8}`);
  const { model_stats } = await client.getInferenceStatistics("facenet");
  console.log(`calls of facenet: ${model_stats[0]!.inference_count}`);
}

function middleOf(boxes: Float32Array, face: number): string {
  const [left, top, right, bottom] = boxes.subarray(4 * face, 4 * face + 4);
  const rounded = (value: number) => 10 * Math.round(value / 10);
  return `(${rounded((left! + right!) / 2)}, ${rounded((top! + bottom!) / 2)})`;
}
