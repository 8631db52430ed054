/** A binary heap ordered by `compare`. Adding and taking are O(log n). */
export class Heap<T> {
  readonly #items: T[] = [];

  /** @param compare negative if `a` is to be taken before `b` */
  constructor(private readonly compare: (a: T, b: T) => number) {}

  add(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.compare(items[parent]!, item) <= 0) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the first item; undefined if the heap is empty. */
  take(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && this.compare(items[child + 1]!, items[child]!) < 0) child++;
      if (this.compare(items[child]!, last) >= 0) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return first;
  }
}
