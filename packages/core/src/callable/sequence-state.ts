import type { SequenceInfo } from "../request/sequence-info.js";

/**
 * Keeps state for each sequence of a callback, from its START to its END. The state is made at the first access, and
 * dropped with the sequence. It works in a worker too, where each instance keeps the states of its own sequences.
 *
 * @param create makes the state of a new sequence
 * @returns the state of a sequence; a fresh one for a null request, which has no sequence
 *
 * @example
 * ```ts
 * const totals = sequenceState(() => ({ sum: 0 }));
 * triton.bind({
 *   modelName: "accumulate",
 *   inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
 *   outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
 *   inferFunc: (requests) =>
 *     requests.map(({ inputs, sequence }) => {
 *       const total = totals(sequence);
 *       total.sum += inputs.x.data[0];
 *       return { y: [[total.sum]] };
 *     }),
 *   config: { sequence: {} },
 * });
 * ```
 */
export function sequenceState<T>(
  create: (sequence: SequenceInfo | undefined) => T,
): (sequence: SequenceInfo | undefined) => T {
  const states = new WeakMap<SequenceInfo, { readonly state: T }>();
  return (sequence) => {
    if (sequence === undefined) return create(undefined);
    let entry = states.get(sequence);
    if (entry === undefined) {
      entry = { state: create(sequence) };
      states.set(sequence, entry);
    }
    return entry.state;
  };
}
