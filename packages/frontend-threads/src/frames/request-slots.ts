/** Bits of a number that name a slot. The bits above them tell the uses of a slot apart. */
const SLOT_BITS = 20;
const SLOT_MASK = (1 << SLOT_BITS) - 1;

/**
 * Requests in flight by number. The slots are used again. A `Map` would keep answered requests alive: each table that
 * V8 outgrows holds its entries and the next table, and an old table is seldom collected.
 */
export class RequestSlots<R> {
  readonly #requests: (R | undefined)[] = [];
  readonly #numbers: number[] = [];
  /** Free slots, at the end that gives out the numbers. */
  readonly #free: number[] = [];
  #givesNumbers = false;

  /** Adds a request, and returns its number. */
  add(request: R): number {
    this.#givesNumbers = true;
    const slot = this.#free.pop() ?? this.#requests.length;
    const number = ((this.#numbers[slot] ?? slot) + (1 << SLOT_BITS)) | 0;
    this.set(number, request);
    return number;
  }

  /** Adds a request under the number that the other end has given it. */
  set(number: number, request: R): void {
    const slot = number & SLOT_MASK;
    while (this.#requests.length <= slot) {
      this.#requests.push(undefined);
      this.#numbers.push(this.#numbers.length);
    }
    this.#requests[slot] = request;
    this.#numbers[slot] = number;
  }

  get(number: number): R | undefined {
    const slot = number & SLOT_MASK;
    return this.#numbers[slot] === number ? this.#requests[slot] : undefined;
  }

  /** Removes a request. Without effect if another one has its slot. */
  delete(number: number): void {
    const slot = number & SLOT_MASK;
    if (this.#numbers[slot] !== number || this.#requests[slot] === undefined) return;
    this.#requests[slot] = undefined;
    if (this.#givesNumbers) this.#free.push(slot);
  }

  /** The requests in flight. */
  values(): R[] {
    return this.#requests.filter((request) => request !== undefined);
  }
}
