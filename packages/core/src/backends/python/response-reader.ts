import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { ExecutorContext } from "../../instance/backend.js";
import { OutputsWithParameters } from "../../response/response-parameters.js";

import { readTensors } from "./frames.js";
import { readParameters, type WireResponse } from "./messages.js";

/**
 * Reads responses of a model. As with Triton, a Python model's outputs pass unchanged, even where they differ from its
 * configuration, and may be missing. The log has one warning for each such output.
 */
export class ResponseReader {
  readonly #told = new Set<string>();

  constructor(private readonly context: Pick<ExecutorContext, "checker" | "log">) {}

  /** @param rows expected rows of the outputs; undefined for any number */
  read(
    { outputs = [], parameters = [] }: WireResponse,
    body: Uint8Array,
    rows: number | undefined,
  ): Map<string, Tensor> | TritonError {
    try {
      const tensors = readTensors(outputs, body);
      for (const [name, tensor] of tensors) if (!this.#told.has(name)) this.#look(name, tensor, rows);
      if (parameters.length === 0) return tensors;
      return new OutputsWithParameters(tensors, readParameters(parameters));
    } catch (error) {
      return TritonError.from(error);
    }
  }

  #look(name: string, tensor: Tensor, rows: number | undefined): void {
    try {
      this.context.checker.check(new Map([[name, tensor]]), rows, [name]);
    } catch (error) {
      this.#told.add(name);
      this.context.log.warning(
        `${TritonError.from(error).message.trim()}; clients get the response unchecked`,
      );
    }
  }
}
