import type { Log } from "@tritonjs/core/frontend";

/** Largest number of remembered names, so that a client with ever new names fills neither memory nor log. */
const MOST_NAMES = 1000;
/** Longest name in the log. */
const LONGEST_NAME = 64;

/** Warns of fields without effect, once for each field. */
export class FieldWarnings {
  readonly #log: Pick<Log, "warning">;
  readonly #known = new Set<string>();

  constructor(log: Pick<Log, "warning">) {
    this.#log = log;
  }

  /** Warns of a field that this library does not know. */
  unknown(path: string, field: string): void {
    this.#once(`${path} ${field}`, () => `OpenAI: ${path} ignores the unknown field '${shortened(field)}'`);
  }

  /** Warns of a field that a model has no input for. */
  withoutEffect(model: string, field: string): void {
    this.#once(
      `${model} ${field}`,
      () => `OpenAI: '${field}' has no effect for model '${model}', which has no input for it`,
    );
  }

  #once(key: string, text: () => string): void {
    if (this.#known.has(key) || this.#known.size >= MOST_NAMES) return;
    this.#known.add(key);
    this.#log.warning(text());
  }
}

/** A name that a client has chosen, without characters that could forge lines of the log. */
function shortened(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  const plain = name.replace(/[\u0000-\u001f\u007f]/g, "?");
  return plain.length <= LONGEST_NAME ? plain : `${plain.slice(0, LONGEST_NAME)}...`;
}
