import type { Session, SessionTurn } from "./data-set.js";
import { invalidOption } from "./invalid-option.js";
import { textOf } from "./tensor-reader.js";

/** Collects the turns of sessions. */
export class SessionReader {
  readonly #turns = new Map<string, SessionTurn[]>();

  /** The sessions in the order of their first turns. */
  get sessions(): Session[] {
    return [...this.#turns].map(([id, turns]) => ({ id, turns }));
  }

  /**
   * Adds an entry of the data: `{"session_id": ["a"], "delay": [100], …}`.
   *
   * @param where the entry, for errors
   * @throws TritonError INVALID_ARG that names the entry
   */
  add(entry: Readonly<Record<string, unknown>>, payload: number, where: string): void {
    const id = only(entry.session_id);
    if (typeof id !== "string" || id === "")
      throw invalidOption(
        `${where}: "session_id": expected the name of a session in a list, got ${textOf(entry.session_id)}`,
      );
    const delayMs = only(entry.delay) ?? 0;
    if (typeof delayMs !== "number" || !Number.isFinite(delayMs) || delayMs < 0)
      throw invalidOption(`${where}: "delay": expected milliseconds in a list, got ${textOf(entry.delay)}`);
    const turns = this.#turns.get(id) ?? [];
    turns.push({ payload, delayMs });
    this.#turns.set(id, turns);
  }
}

/** The value of a list of one. */
const only = (value: unknown): unknown => (Array.isArray(value) && value.length === 1 ? value[0] : value);
