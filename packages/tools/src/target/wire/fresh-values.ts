import type { DataType } from "@tritonjs/protocol";
import { Random } from "../../data/random.js";
import { randomElements, unitByteSize } from "../../data/random-elements.js";

const TABLE_BYTES = 64 * 1024;

/**
 * Fills places with random values. Values are copied from a table of random elements: one half of the place from one
 * position of the table, the other half from another. Each request uses another pair of positions, so a thread repeats
 * no values before billions of requests.
 */
export class FreshValues {
  readonly #tables = new Map<DataType, Buffer>();
  readonly #random: Random;

  constructor(seed: number) {
    // The rows of the data set come from the seed itself.
    this.#random = new Random(seed ^ 0x5bd1_e995);
  }

  /** @param number counts requests: equal numbers give equal values */
  fill(into: Uint8Array, at: number, byteSize: number, datatype: DataType, number: number): void {
    const table = this.#tables.get(datatype) ?? this.#tableOf(datatype);
    const unit = unitByteSize(datatype);
    const units = byteSize / unit;
    const firstUnits = (units + 1) >>> 1;
    const positions = TABLE_BYTES / unit - firstUnits;
    const first = (number % positions) * unit;
    const second = (Math.floor(number / positions) % positions) * unit;
    table.copy(into, at, first, first + firstUnits * unit);
    table.copy(into, at + firstUnits * unit, second, second + (units - firstUnits) * unit);
  }

  #tableOf(datatype: DataType): Buffer {
    const bytes = randomElements(datatype, TABLE_BYTES / unitByteSize(datatype), this.#random);
    const table = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tables.set(datatype, table);
    return table;
  }
}
