import type { ToolCallPiece } from "./tool-call-piece.js";

/** Collects the texts and calls that readers find, in order. */
export class CallSink {
  #pieces: ToolCallPiece[] = [];
  #content = "";
  #arguments = "";
  #index = -1;

  constructor(readonly createId: () => string) {}

  /** True once a call has begun. */
  get hasCalls(): boolean {
    return this.#index >= 0;
  }

  content(text: string): void {
    if (text === "") return;
    this.#flushArguments();
    this.#content += text;
  }

  /** Begins a call. */
  call(name: string): void {
    this.#flushArguments();
    this.#flushContent();
    this.#index++;
    const id = this.createId();
    this.#pieces.push({ index: this.#index, id, type: "function", function: { name, arguments: "" } });
  }

  /** Adds to the arguments of the call that began last. */
  arguments(text: string): void {
    this.#flushContent();
    this.#arguments += text;
  }

  /** Takes the pieces collected since the last call, with neighbouring texts joined. */
  take(): ToolCallPiece[] {
    this.#flushContent();
    this.#flushArguments();
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #flushContent(): void {
    if (this.#content !== "") this.#pieces.push({ content: this.#content });
    this.#content = "";
  }

  #flushArguments(): void {
    if (this.#arguments !== "") {
      this.#pieces.push({ index: this.#index, function: { arguments: this.#arguments } });
    }
    this.#arguments = "";
  }
}
