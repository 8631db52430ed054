import { type ModelConfig, type Shape, sameShape, type Tensor } from "@tritonjs/protocol";

import type { Tensors } from "./merge-inputs.js";

/**
 * Determines the inputs of a model that must agree between the requests of one batch. Validation already ensures that
 * fixed dimensions agree. Compared are inputs with a variable dimension (unless ragged batching is allowed), the
 * content of shape tensors, and, with optional inputs, the set of inputs.
 */
export class EqualInputsRule {
  readonly #shapes = new Set<string>();
  readonly #contents = new Set<string>();
  readonly #comparesNames: boolean;

  /**
   * @param padded inputs that are padded to one shape when the batch is made
   * @param mixed true if requests with different optional inputs may share a batch
   */
  constructor(config: ModelConfig, padded?: ReadonlySet<string>, mixed = false) {
    for (const input of config.input) {
      if (input.isShapeTensor) this.#contents.add(input.name);
      else if (!input.allowRaggedBatch && input.dims.includes(-1) && !padded?.has(input.name)) {
        this.#shapes.add(input.name);
      }
    }
    for (const { inputName, dims } of config.sequenceBatching?.state ?? []) {
      if (dims.includes(-1)) this.#shapes.add(inputName);
    }
    this.#comparesNames = !mixed && config.input.some((input) => input.optional);
  }

  /** False when any two requests may share a batch. */
  get compares(): boolean {
    return this.comparesShapes || this.#comparesNames;
  }

  /** True if shapes are compared: then any new request may end a batch. */
  get comparesShapes(): boolean {
    return this.#shapes.size > 0 || this.#contents.size > 0;
  }

  /** Requirements for a batch whose first request has these inputs. */
  startWith(first: Tensors): RequiredEqualInputs | undefined {
    return this.compares
      ? new RequiredEqualInputs(first, this.#shapes, this.#contents, this.#comparesNames)
      : undefined;
  }
}

/** Requirements of the first request of a batch for the others. Holds shapes, not the tensors. */
export class RequiredEqualInputs {
  readonly #names: ReadonlySet<string> | undefined;
  readonly #rowShapes = new Map<string, Shape>();
  readonly #contents = new Map<string, Tensor>();

  constructor(
    first: Tensors,
    shapes: ReadonlySet<string>,
    contents: ReadonlySet<string>,
    comparesNames: boolean,
  ) {
    this.#names = comparesNames ? new Set(first.keys()) : undefined;
    for (const [name, tensor] of first) {
      if (shapes.has(name)) this.#rowShapes.set(name, rowShape(tensor));
      if (contents.has(name)) this.#contents.set(name, tensor);
    }
  }

  /** True when a request with these inputs may join the batch. */
  holdsFor(inputs: Tensors): boolean {
    if (this.#names !== undefined) {
      if (inputs.size !== this.#names.size) return false;
      for (const name of inputs.keys()) if (!this.#names.has(name)) return false;
    }
    for (const [name, shape] of this.#rowShapes) {
      if (!sameShape(shape, rowShape(inputs.get(name)!))) return false;
    }
    for (const [name, content] of this.#contents) {
      if (!sameContent(content, inputs.get(name)!)) return false;
    }
    return true;
  }
}

function rowShape(tensor: Tensor): Shape {
  return tensor.shape.slice(1);
}

function sameContent(a: Tensor, b: Tensor): boolean {
  return sameShape(a.shape, b.shape) && Buffer.compare(a.bytes, b.bytes) === 0;
}
