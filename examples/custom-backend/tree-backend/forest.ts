import { readFileSync } from "node:fs";
import { TritonError } from "@tritonjs/core";

/** A leaf with a class, or a test of one feature with a branch for each result. */
type Tree =
  | number
  | { readonly feature: number; readonly below: number; readonly yes: Tree; readonly no: Tree };

/** Decision trees that vote for classes. */
export interface Forest {
  readonly features: number;
  readonly classes: number;
  readonly trees: readonly Tree[];
}

/** @throws TritonError, which becomes the reason why the model does not load */
export function readForest(path: string): Forest {
  let forest: Forest;
  try {
    forest = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `cannot read forest '${path}': ${(cause as Error).message}`, {
      cause,
    });
  }
  if (!forest.trees?.length || !forest.trees.every((tree) => isSound(tree, forest))) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot use forest '${path}': a tree names a feature or a class that does not exist`,
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
