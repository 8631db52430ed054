/** How busy an engine is, as it reports to the main thread. */
export interface EngineLoad {
  /** Requests that the engine has taken since it was loaded. */
  readonly taken: number;
  /** Texts that are being generated. */
  readonly running: number;
  /** Texts in the engine that wait for space for keys and values. */
  readonly waiting: number;
  /** Length that one more text may have now; 0 if there is no room for it. */
  readonly room: number;
  /** Tokens of keys and values that are in use, and that fit. */
  readonly usedTokens: number;
  readonly totalTokens: number;
  /** Longest text, prompt included. */
  readonly contextLength: number;
}
