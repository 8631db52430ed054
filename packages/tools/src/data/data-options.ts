/** Where the data of requests comes from. */
export interface DataOptions {
  /**
   * `"random"`, `"zero"`, or paths: one directory with a file for each input, or JSON files. @default "random"
   */
  readonly inputData?: "random" | "zero" | readonly string[];
  /** Shapes, without the batch axis, of inputs with variable dimensions. */
  readonly shapes?: Readonly<Record<string, readonly number[]>>;
  /** Rows of each request. @default 1 */
  readonly batchSize?: number;
  /** Characters of random strings. @default 128 */
  readonly stringLength?: number;
  /** Text of all string elements, instead of random text. */
  readonly stringData?: string;
  /** Seed of the random data. @default 0 */
  readonly seed?: number;
  /** Replaces some values before each request, so that no two requests carry equal random data. @default true */
  readonly freshData?: boolean;
  /** Reads `timestamp` of each entry of JSON files, which then is required. @default false */
  readonly fixedSchedule?: boolean;
  /** Reads `session_id` and `delay` of each entry with OpenAI requests. @default false */
  readonly sessions?: boolean;
}

/** Defaults of {@link DataOptions}. */
export const DATA_DEFAULTS = {
  batchSize: 1,
  /** perf_analyzer's. */
  stringLength: 128,
  /** Runs of one command are comparable. */
  seed: 0,
  /** Equal data would measure caches: the response cache of the server, and those of its CPU. */
  freshData: true,
} as const;
