/**
 * Fits the universal scalability law to throughputs: X(n) = n·X(1) / (1 + contention·(n - 1) + coherence·n·(n - 1)). By
 * least squares over its linear form; without a coherence term this is Amdahl's law.
 *
 * @param rates throughput by number of replicas, with one for 1
 */
export function fitUsl(rates) {
  const points = [...rates]
    .filter(([n]) => n > 1)
    .map(([n, rate]) => {
      const share = rate / rates.get(1);
      return { a: n - 1, b: n * (n - 1), y: n / share - 1 };
    });
  const sum = (of) => points.reduce((all, point) => all + of(point), 0);
  const [aa, ab, bb] = [sum(({ a }) => a * a), sum(({ a, b }) => a * b), sum(({ b }) => b * b)];
  const [ay, by] = [sum(({ a, y }) => a * y), sum(({ b, y }) => b * y)];
  const determinant = aa * bb - ab * ab;
  const both = {
    contention: (ay * bb - by * ab) / determinant,
    coherence: (by * aa - ay * ab) / determinant,
  };
  // A negative term would promise more than linear growth, which only noise makes.
  if (both.coherence < 0) return { contention: Math.max(0, ay / aa), coherence: 0 };
  if (both.contention < 0) return { contention: 0, coherence: Math.max(0, by / bb) };
  return both;
}

/** Throughput of `n` replicas by the law, relative to one. */
export function scaleUp(n, { contention, coherence }) {
  return n / (1 + contention * (n - 1) + coherence * n * (n - 1));
}
