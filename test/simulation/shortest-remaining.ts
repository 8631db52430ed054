import { PREFILL_TOKENS, type RecordedText, type SimulatedDecoder, TOKENS_EACH } from "./text-run.js";

interface Job {
  readonly text: RecordedText;
  promptLeft: number;
  left: number;
}

/**
 * Mean milliseconds to the last token if the texts with the least work left run, and all others are interrupted for them
 * at no cost. The lengths are known, and a wait is not bounded. No order of the same steps is known to be better, so it is
 * what the library's order is compared with.
 */
export function meanWithShortestRemaining(decoder: SimulatedDecoder, texts: readonly RecordedText[]): number {
  const { maxRunning, stepMs, textMs, promptTokenMs } = decoder;
  const promptMs = stepMs / PREFILL_TOKENS + promptTokenMs;
  const tokenMs = (stepMs + textMs * maxRunning) / maxRunning;
  const workOf = ({ promptLeft, left }: Job): number => promptLeft * promptMs + left * tokenMs;
  let jobs: Job[] = [];
  let [now, next, sum] = [0, 0, 0];
  while (next < texts.length || jobs.length > 0) {
    if (jobs.length === 0) now = Math.max(now, texts[next]!.atMs);
    for (; next < texts.length && texts[next]!.atMs <= now; next++) {
      const text = texts[next]!;
      jobs.push({ text, promptLeft: text.prompt, left: text.length });
    }
    jobs.sort((a, b) => workOf(a) - workOf(b));
    const running = jobs.slice(0, maxRunning);
    const prompt = running.find(({ promptLeft }) => promptLeft > 0);
    if (prompt !== undefined) {
      const tokens = Math.min(PREFILL_TOKENS, prompt.promptLeft);
      prompt.promptLeft -= tokens;
      if (prompt.promptLeft === 0) prompt.left--;
      now += TOKENS_EACH * (stepMs + tokens * promptTokenMs);
    }
    const decoding = running.filter(({ promptLeft, left }) => promptLeft === 0 && left > 0);
    for (const job of decoding) job.left--;
    if (decoding.length > 0) now += TOKENS_EACH * (stepMs + decoding.length * textMs);
    const ended = running.filter(({ promptLeft, left }) => promptLeft === 0 && left === 0);
    for (const { text } of ended) sum += now - text.atMs;
    if (ended.length > 0) jobs = jobs.filter((job) => !ended.includes(job));
  }
  return sum / texts.length;
}
