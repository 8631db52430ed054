import { readFileSync } from "node:fs";
import { TritonError } from "@tritonjs/core";

/** A class, or a question about one feature with what follows from either answer. */
type Tree =
  | number
  | { readonly feature: number; readonly below: number; readonly yes: Tree; readonly no: Tree };

/** Trees that vote for classes. */
export interface Forest {
  readonly features: number;
  readonly classes: number;
  readonly trees: readonly Tree[];
}

/** @throws TritonError that becomes the reason why the model is not loaded */
export function readForest(path: string): Forest {
  let forest: Forest;
  try {
    forest = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `the forest '${path}' cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
  if (!forest.trees?.length || !forest.trees.every((tree) => isSound(tree, forest))) {
    throw new TritonError(
      "INVALID_ARG",
      `the forest '${path}' has trees that ask or answer what there is not`,
    );
  }
  return forest;
}

function isSound(tree: Tree, forest: Forest): boolean {
  if (typeof tree === "number") return tree >= 0 && tree < forest.classes;
  const { feature, yes, no } = tree;
  return feature >= 0 && feature < forest.features && isSound(yes, forest) && isSound(no, forest);
}

/** Shares of the votes for each class, row by row. */
export function vote(
  { features, classes, trees }: Forest,
  rows: number,
  data: ArrayLike<number>,
): Float32Array {
  const shares = new Float32Array(rows * classes);
  for (let row = 0; row < rows; row++) {
    for (const tree of trees) {
      let at = tree;
      while (typeof at !== "number") at = data[row * features + at.feature]! < at.below ? at.yes : at.no;
      shares[row * classes + at]! += 1 / trees.length;
    }
  }
  return shares;
}
