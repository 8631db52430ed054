/** Header with the time after which a server wants a retry. */
const RETRY_AFTER = "retry-after";

/**
 * Milliseconds after which the server wants a retry; undefined without a hint. The header is a number of seconds or a
 * date.
 */
export function retryAfterOf(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get(RETRY_AFTER)?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // An HTTP date begins with a weekday. `Date` accepts others too.
  const date = /^[A-Za-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
