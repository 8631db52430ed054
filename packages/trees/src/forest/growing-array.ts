/** A list of integers in a typed array that doubles when it is full. */
export class GrowingIntegers {
  #items = new Int32Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#items.length) {
      const larger = new Int32Array(2 * this.#length);
      larger.set(this.#items);
      this.#items = larger;
    }
    this.#items[this.#length++] = value;
  }

  set(index: number, value: number): void {
    this.#items[index] = value;
  }

  get(index: number): number {
    return this.#items[index]!;
  }

  toArray(): Int32Array {
    return this.#items.slice(0, this.#length);
  }
}

/** A list of numbers in a typed array that doubles when it is full. */
export class GrowingNumbers {
  #items = new Float64Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#items.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#items);
      this.#items = larger;
    }
    this.#items[this.#length++] = value;
  }

  toArray(): Float64Array {
    return this.#items.slice(0, this.#length);
  }
}
