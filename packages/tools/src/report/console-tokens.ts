import type { TokenFigures } from "../measure/tokens/token-figures.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS } from "../measure/tokens/token-metrics.js";

const round = (value: number) => Number(value.toFixed(2));

/** Lines about tokens. */
export function consoleTokens(tokens: TokenFigures): string[] {
  const lines: string[] = [];
  for (const name of TOKEN_METRIC_NAMES) {
    const distribution = tokens.distributions[name];
    if (distribution.count === 0) continue;
    const { title, unit } = TOKEN_METRICS[name];
    const [p50, p90, p99] = [50, 90, 99].map((percentile) => round(distribution.percentile(percentile)));
    lines.push(`${title} (${unit}): avg ${round(distribution.mean)}, p50 ${p50}, p90 ${p90}, p99 ${p99}`);
  }
  lines.push(`Output Token Throughput (tokens/sec): ${round(tokens.outputTokenThroughput)}`);
  if (tokens.options.goals.length > 0) {
    const share = tokens.requestCount === 0 ? 0 : (tokens.goodCount / tokens.requestCount) * 100;
    const goals = tokens.options.goals.map(({ metric, value }) => `${metric}:${value}`).join(" ");
    lines.push(
      `Goodput (requests/sec): ${round(tokens.goodput)}; ${round(share)}% of the requests met ${goals}`,
    );
  }
  return lines;
}
