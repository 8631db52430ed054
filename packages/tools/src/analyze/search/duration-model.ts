/** What changes the duration of a batch besides its rows. */
export interface MachineSetting {
  readonly instances: number;
  readonly isolation: string;
  readonly threads: number;
}

interface Point {
  readonly rows: number;
  readonly ms: number;
}

/**
 * Durations of batches `t(rows)` for each setting of the machine, from a few measured points. Between sizes the
 * duration is linear. A setting with few points has the shape of the one with most. Between measured numbers of
 * instances the duration is linear too. An isolation that was measured with one setting only differs from the first
 * isolation by the same factor with all settings.
 */
export class DurationModel {
  readonly #points = new Map<string, { readonly setting: MachineSetting; readonly points: Point[] }>();

  add(setting: MachineSetting, rows: number, ms: number): void {
    const key = keyOf(setting);
    let entry = this.#points.get(key);
    if (entry === undefined) {
      entry = { setting, points: [] };
      this.#points.set(key, entry);
    }
    entry.points.push({ rows, ms });
    entry.points.sort((a, b) => a.rows - b.rows);
  }

  /** Milliseconds of a batch; NaN if neither these threads nor this isolation were measured. */
  duration(setting: MachineSetting, rows: number): number {
    const [first] = this.#points.values();
    const own = [...this.#points.values()].filter((one) => one.setting.isolation === setting.isolation);
    const isFirst = first?.setting.isolation === setting.isolation;
    if (own.length !== 1 || isFirst) return this.#between(setting, rows);
    const [known] = own;
    const usual = (other: MachineSetting) =>
      this.#between({ ...other, isolation: first!.setting.isolation }, rows);
    return (usual(setting) * this.#at(known!.points, rows)) / usual(known!.setting);
  }

  /** NaN if no setting with these threads and this isolation was measured. */
  #between(setting: MachineSetting, rows: number): number {
    const alike = [...this.#points.values()]
      .filter((one) => one.setting.isolation === setting.isolation && one.setting.threads === setting.threads)
      .toSorted((a, b) => a.setting.instances - b.setting.instances);
    if (alike.length === 0) return Number.NaN;
    const after = alike.findIndex((one) => one.setting.instances >= setting.instances);
    const high = alike[after === -1 ? alike.length - 1 : after]!;
    if (high.setting.instances === setting.instances || after <= 0) return this.#at(high.points, rows);
    const low = alike[after - 1]!;
    const share =
      (setting.instances - low.setting.instances) / (high.setting.instances - low.setting.instances);
    return (1 - share) * this.#at(low.points, rows) + share * this.#at(high.points, rows);
  }

  #at(points: readonly Point[], rows: number): number {
    const shape = this.#richest();
    if (shape === points || points.length >= shape.length) return linear(points, rows);
    // The ratio to the shape is linear in the rows.
    const ratios = points.map((point) => ({ rows: point.rows, ms: point.ms / linear(shape, point.rows) }));
    return linear(shape, rows) * flat(ratios, rows);
  }

  #richest(): readonly Point[] {
    let richest: readonly Point[] = [];
    for (const { points } of this.#points.values()) if (points.length > richest.length) richest = points;
    return richest;
  }
}

const keyOf = ({ instances, isolation, threads }: MachineSetting) => `${instances}/${isolation}/${threads}`;

/** Linear between the points, with the slope of the outer ones beyond them; never below half of the nearest point. */
function linear(points: readonly Point[], rows: number): number {
  const [first] = points;
  if (points.length === 1) return first!.ms;
  const after = points.findIndex((point) => point.rows >= rows);
  const high = Math.max(1, after === -1 ? points.length - 1 : after);
  const [a, b] = [points[high - 1]!, points[high]!];
  if (b.rows === a.rows) return (a.ms + b.ms) / 2;
  const value = a.ms + ((b.ms - a.ms) * (rows - a.rows)) / (b.rows - a.rows);
  return Math.max(value, Math.min(a.ms, b.ms) / 2);
}

/** Linear between the points, and constant beyond them. */
function flat(points: readonly Point[], rows: number): number {
  const [first, last] = [points[0]!, points.at(-1)!];
  if (rows <= first.rows) return first.ms;
  return rows >= last.rows ? last.ms : linear(points, rows);
}
