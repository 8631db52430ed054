import type { LoadLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";

/** Counts requests of a periodic load that ended before they had the responses of their period. */
export class ShortPeriods {
  #count = 0;
  #period = 0;

  add(level: LoadLevel, { records }: LoadWindow): void {
    if (level.mode !== "periodic_concurrency") return;
    this.#period = level.responses;
    for (let i = 0; i < records.count; i++) if (records.responses[i]! < level.responses) this.#count++;
  }

  get warnings(): string[] {
    if (this.#count === 0) return [];
    return [
      `${this.#count} requests ended with fewer than ${this.#period} responses; their periods ended with them. ` +
        "A smaller --request-period fits the model",
    ];
  }
}
