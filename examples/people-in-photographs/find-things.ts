/** A thing that the network found. */
export interface Thing {
  readonly kind: string;
  /** How certain the network is, 0 to 1. */
  readonly score: number;
}

/** Kinds of COCO that the example names, by their numbers. */
const KINDS: Readonly<Record<number, string>> = { 0: "person", 39: "bottle", 40: "wine glass", 41: "cup" };

const LEAST_SCORE = 0.25;

/** Boxes that overlap more than this show the same thing. */
const MOST_OVERLAP = 0.5;

type Box = readonly [left: number, top: number, right: number, bottom: number];

/**
 * Chooses among the detections of the network: boxes with a score and a kind, the most certain first.
 *
 * @param values for each detection left, top, right, bottom, score and number of the kind
 */
export function findThings(values: Float32Array): Thing[] {
  const found: (Thing & { readonly box: Box })[] = [];
  for (let at = 0; at < values.length; at += 6) {
    const [left, top, right, bottom, score, number] = values.subarray(at, at + 6) as unknown as number[];
    const kind = KINDS[number!];
    const box: Box = [left!, top!, right!, bottom!];
    if (kind === undefined || score! < LEAST_SCORE) continue;
    if (found.some((one) => one.kind === kind && overlap(one.box, box) > MOST_OVERLAP)) continue;
    found.push({ kind, score: score!, box });
  }
  return found;
}

/** Area that two boxes share, as a share of the area that they cover. */
function overlap(a: Box, b: Box): number {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  if (width <= 0 || height <= 0) return 0;
  const shared = width * height;
  return shared / (area(a) + area(b) - shared);
}

function area([left, top, right, bottom]: Box): number {
  return (right - left) * (bottom - top);
}
