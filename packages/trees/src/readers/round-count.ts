import { TritonError } from "@tritonjs/protocol";

/**
 * Number of trees of the rounds that are used.
 *
 * @param perRound number of trees of a round
 * @param best number of rounds up to the best one, if the file has it
 * @throws TritonError INVALID_ARG for rounds that the model does not have
 */
export function roundCount(
  trees: number,
  perRound: number,
  rounds: number | "best" | undefined,
  best: () => number | undefined,
): number {
  if (rounds === undefined) return trees;
  const all = Math.ceil(trees / perRound);
  const count = rounds === "best" ? (best() ?? all) : rounds;
  if (Number.isInteger(count) && count >= 1 && count <= all) return Math.min(trees, count * perRound);
  throw new TritonError("INVALID_ARG", `rounds: expected an integer from 1 to ${all}, got ${count}`, {
    reason: "INVALID_OPTION",
  });
}
