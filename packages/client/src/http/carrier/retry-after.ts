/** The header by which a server says when to come again. */
const RETRY_AFTER = "retry-after";

/**
 * Milliseconds after which an answer says that it is worth trying again; undefined when it does not. The header is a
 * number of seconds or a date.
 */
export function retryAfterOf(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get(RETRY_AFTER)?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // What has no weekday in front is no date of HTTP, though it may be one to `Date`.
  const date = /^[A-Za-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
