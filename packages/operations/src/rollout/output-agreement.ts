import { errorFor, floatReader, type Tensor } from "@tritonjs/protocol";

/** How the answers of two versions are compared. */
export type OutputComparison =
  /** All elements are the same. */
  | "equal"
  /** The largest element along the last axis is at the same place, in all rows. */
  | "class"
  /** Numbers differ by at most `absolute + relative * |old|`. Missing members are 0. */
  | { readonly absolute?: number; readonly relative?: number }
  /** Returns true for answers that agree. */
  | ((old: Tensor, fresh: Tensor, output: string) => boolean);

/** Differences of rounding, for floating-point outputs unless another comparison is given. */
const ROUNDING = { absolute: 1e-5, relative: 1e-3 };

/** True if two answers for one output agree. Different data types or shapes never do. */
export function agrees(old: Tensor, fresh: Tensor, output: string, by?: OutputComparison): boolean {
  if (typeof by === "function") return by(old, fresh, output);
  if (old.datatype !== fresh.datatype || !sameShape(old.shape, fresh.shape)) return false;
  const comparison = by ?? (isFloating(old) ? ROUNDING : "equal");
  if (old.datatype === "BYTES")
    return sameStrings(old.elements as Uint8Array[], fresh.elements as Uint8Array[]);
  const read = floatReader(old.datatype) ?? ((element: number) => element);
  const [a, b] = [old.elements as ArrayLike<number | bigint>, fresh.elements as ArrayLike<number | bigint>];
  if (comparison === "class") return sameClasses(a, b, Number(old.shape.at(-1) ?? 1), read);
  if (comparison === "equal") {
    for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i]) && a[i] !== b[i]) return false;
    return true;
  }
  const { absolute = 0, relative = 0 } = comparison;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    const [x, y] = [read(Number(a[i])), read(Number(b[i]))];
    if (Number.isNaN(x) && Number.isNaN(y)) continue;
    if (!(Math.abs(x - y) <= absolute + relative * Math.abs(x))) return false;
  }
  return true;
}

/** Largest distance of the elements of two tensors of one shape; undefined for strings and for other shapes. */
export function largestDifference(old: Tensor, fresh: Tensor): number | undefined {
  if (old.datatype === "BYTES" || old.datatype !== fresh.datatype || !sameShape(old.shape, fresh.shape)) {
    return undefined;
  }
  const read = floatReader(old.datatype) ?? ((element: number) => element);
  const [a, b] = [old.elements as ArrayLike<number | bigint>, fresh.elements as ArrayLike<number | bigint>];
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    const [x, y] = [read(Number(a[i])), read(Number(b[i]))];
    if (Number.isNaN(x) && Number.isNaN(y)) continue;
    const distance = Math.abs(x - y);
    largest = Number.isNaN(distance) ? Number.POSITIVE_INFINITY : Math.max(largest, distance);
  }
  return largest;
}

/** @throws TritonError INVALID_ARG for a value that is not a comparison */
export function assertComparison(where: string, by: unknown): void {
  if (by === "equal" || by === "class" || typeof by === "function") return;
  const isTolerance =
    typeof by === "object" &&
    by !== null &&
    Object.entries(by).every(
      ([key, value]) => (key === "absolute" || key === "relative") && typeof value === "number" && value >= 0,
    );
  if (isTolerance) return;
  throw errorFor(
    "INVALID_OPTION",
    `${where}: expected "equal", "class", a function, or numbers of at least 0 as 'absolute' and 'relative', got ` +
      `${JSON.stringify(by) ?? String(by)}`,
  );
}

function isFloating({ datatype }: Tensor): boolean {
  return floatReader(datatype) !== undefined;
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

function sameStrings(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((bytes, i) => Buffer.compare(bytes, b[i]!) === 0);
}

function sameClasses(
  a: ArrayLike<number | bigint>,
  b: ArrayLike<number | bigint>,
  width: number,
  read: (element: number) => number,
): boolean {
  if (width <= 1) {
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
    return true;
  }
  for (let row = 0; row < a.length; row += width) {
    if (largestAt(a, row, width, read) !== largestAt(b, row, width, read)) return false;
  }
  return true;
}

function largestAt(
  elements: ArrayLike<number | bigint>,
  start: number,
  width: number,
  read: (element: number) => number,
): number {
  let best = 0;
  let value = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < width; i++) {
    const one = read(Number(elements[start + i]));
    if (one > value) [best, value] = [i, one];
  }
  return best;
}
