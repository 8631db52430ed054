import { invalidModel } from "./invalid-model.js";

/** Classes without trees that a model may have. */
const MAX_EMPTY_GROUPS = 4096;

/**
 * Checks the number of classes that a file claims, before memory is made for them.
 *
 * @param trees number of trees of the file
 * @param leafWidth number of values of a leaf
 * @throws TritonError INVALID_ARG for more than the trees can have
 */
export function assertGroupCount(groups: number, trees: number, leafWidth: number): void {
  if (!Number.isInteger(groups) || groups < 1)
    throw invalidModel(`number of classes: expected at least 1, got ${groups}`);
  const most = Math.max(MAX_EMPTY_GROUPS, trees, leafWidth);
  if (groups > most)
    throw invalidModel(`number of classes: expected one for each tree at most, got ${groups}`);
}
