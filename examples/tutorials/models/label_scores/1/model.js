/** Column of the logits that says that a statement follows from the text. */
const ENTAILMENT = 2;

/** Shares of the labels, which add up to 1. */
export default function labelScores(requests) {
  return requests.map(({ inputs: { logits } }) => {
    const values = Array.from({ length: logits.shape[0] }, (_, label) => logits.get(label, ENTAILMENT));
    const most = Math.max(...values);
    const weights = values.map((value) => Math.exp(value - most));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { scores: weights.map((weight) => weight / sum) };
  });
}
