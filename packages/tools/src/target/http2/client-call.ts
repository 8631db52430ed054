/** A call on a session. */
export interface ClientCall {
  /** The connection has accepted all that was sent so far. */
  onSent(): void;
  onHeaders(headers: ReadonlyMap<string, string>): void;
  /** Bytes that are valid only during the call. */
  onData(bytes: Buffer): void;
  /** The server has ended the call. */
  onEnd(): void;
  /** The call cannot go on. */
  onFault(text: string, isConnectionLost: boolean): void;
}
