/** A document that was found, with the cosine of the angle between it and the query. */
export interface Found<T> {
  readonly item: T;
  readonly score: number;
}

/** A search by embeddings in memory. It compares a query with all vectors, which suits some 100,000 of them. */
export class VectorIndex<T> {
  readonly #items: T[] = [];
  readonly #vectors: Float32Array[] = [];

  /** @param vector an embedding of length 1 */
  add(item: T, vector: Float32Array): void {
    this.#items.push(item);
    this.#vectors.push(vector);
  }

  /** The items nearest to a vector of length 1, nearest first. */
  search(query: Float32Array, count: number): readonly Found<T>[] {
    return this.#vectors
      .map((vector, i) => ({ item: this.#items[i]!, score: product(vector, query) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, count);
  }
}

function product(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
