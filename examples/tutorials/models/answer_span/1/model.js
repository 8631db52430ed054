const LONGEST_ANSWER = 8;

/** For each row, the tokens from the best start to the best end. Shorter answers end with zeros: the padding token. */
export default function answerSpan(requests) {
  return requests.map(({ inputs: { input_ids, start_logits, end_logits }, batchSize }) => {
    const spans = Array.from({ length: batchSize }, (_, row) => bestSpan(row, start_logits, end_logits));
    const longest = Math.max(...spans.map(([start, end]) => end - start + 1));
    return {
      answer_ids: spans.map(([start, end], row) =>
        Array.from({ length: longest }, (_, i) => (start + i <= end ? input_ids.get(row, start + i) : 0n)),
      ),
    };
  });
}

function bestSpan(row, starts, ends) {
  let best = [0, 0];
  let most = Number.NEGATIVE_INFINITY;
  const tokens = starts.shape[1];
  for (let start = 0; start < tokens; start++) {
    for (let end = start; end < Math.min(tokens, start + LONGEST_ANSWER); end++) {
      const score = starts.get(row, start) + ends.get(row, end);
      if (score > most) [best, most] = [[start, end], score];
    }
  }
  return best;
}
