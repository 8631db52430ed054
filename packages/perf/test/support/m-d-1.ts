/**
 * Latency that `percentile` percent of the requests to an M/D/1 queue do not exceed, in service times. By Erlang's
 * distribution of the waiting times.
 *
 * @param load share of the time in which the server is busy
 */
export function latencyOfMD1(load: number, percentile: number): number {
  let low = 0;
  let high = 100;
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2;
    if (shareThatWaits(load, middle) < percentile / 100) low = middle;
    else high = middle;
  }
  return 1 + high;
}

/** Mean latency in service times, by Pollaczek and Khinchine. */
export const meanOfMD1 = (load: number): number => 1 + load / (2 * (1 - load));

/** Share of requests that wait for at most `wait` service times. */
function shareThatWaits(load: number, wait: number): number {
  let sum = 0;
  for (let k = 0; k <= Math.floor(wait); k++) {
    const exponent = load * (wait - k);
    let power = Math.exp(exponent);
    for (let i = 1; i <= k; i++) power *= -exponent / i;
    sum += power;
  }
  return (1 - load) * sum;
}
