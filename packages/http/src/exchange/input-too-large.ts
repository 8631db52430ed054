import { TritonError } from "@tritonjs/protocol";

/** Error of a request with a body or a tensor above the limit on inputs. */
export class InputTooLarge extends TritonError<"INVALID_ARG"> {
  readonly #fault: string;

  /** @param fault the text up to the advice how to raise the limit */
  constructor(fault: string, cause?: unknown) {
    super("INVALID_ARG", fault, { reason: "REQUEST_TOO_LARGE", cause });
    this.#fault = fault;
  }

  /** The error with Triton's advice, which names the option of the server for the limit. */
  advising(option: string): TritonError {
    const text = `${this.#fault}. Use ${option} to increase the limit.`;
    return new TritonError("INVALID_ARG", text, { reason: "REQUEST_TOO_LARGE", cause: this.cause });
  }
}
