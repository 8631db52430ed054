/**
 * Fits `t(n) = a + b * n` to times by batch size, with errors relative to the times: a batch of 1 counts as much as one of
 * 64.
 *
 * @param points pairs of n and t
 * @returns `a`, `b`, and the largest relative error of a point
 */
export function fitCurve(points) {
  let [w, wn, wnn, wt, wnt] = [0, 0, 0, 0, 0];
  for (const [n, t] of points) {
    const weight = 1 / (t * t);
    w += weight;
    wn += weight * n;
    wnn += weight * n * n;
    wt += weight * t;
    wnt += weight * n * t;
  }
  const b = points.length < 2 ? 0 : (w * wnt - wn * wt) / (w * wnn - wn * wn);
  const a = (wt - b * wn) / w;
  const off = Math.max(...points.map(([n, t]) => Math.abs(a + b * n - t) / t));
  return { a, b, off };
}
