import { dirname, isAbsolute, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { assertInside, isInside } from "../../files/path-containment.js";
import { type ByteSource, fileSource } from "./byte-source.js";
import { walkMessage } from "./protobuf-walk.js";

/** Field numbers of onnx.proto on the path to tensors, and inside tensors. */
const MODEL = { graph: 7, functions: 25 };
const GRAPH = { node: 1, initializer: 5, sparseInitializer: 15 };
const FUNCTION = { node: 7 };
const NODE = { attribute: 5 };
const ATTRIBUTE = { tensor: 5, graph: 6, tensors: 10, graphs: 11, sparseTensor: 22, sparseTensors: 23 };
const SPARSE = { values: 1, indices: 2 };
const TENSOR = { externalData: 13 };
const ENTRY = { key: 1, value: 2 };

/** Largest depth of nested graphs. */
const MAX_DEPTH = 64;

/**
 * Rejects an ONNX model that reads its weights from outside the model's directory. A model file may come from an
 * untrusted source, and may name any file of this machine.
 *
 * @param path the `.onnx` file
 * @throws TritonError INVALID_ARG that names the file.
 */
export async function checkExternalData(directory: string, path: string): Promise<void> {
  for (const location of externalLocations(path)) {
    const file = join(dirname(path), location);
    if (isAbsolute(location) || !isInside(directory, file)) {
      throw new TritonError(
        "INVALID_ARG",
        `external data of the ONNX model '${path}': expected a path inside the model's directory, got '${location}'`,
        { reason: "PATH_NOT_ALLOWED" },
      );
    }
    await assertInside(directory, file);
  }
}

/** Files that the tensors of a model name. */
export function externalLocations(path: string): ReadonlySet<string> {
  const source = fileSource(path);
  try {
    const walk = new TensorWalk(source);
    walk.model();
    return walk.locations;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new TritonError("INVALID_ARG", `cannot read the ONNX model '${path}': ${error.message}`, {
      reason: "INVALID_MODEL",
      cause: error,
    });
  } finally {
    source.close();
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

class TensorWalk {
  readonly locations = new Set<string>();

  constructor(private readonly source: ByteSource) {}

  model(): void {
    this.#each(
      { start: 0, end: this.source.length },
      {
        [MODEL.graph]: (graph) => this.#graph(graph, 0),
        [MODEL.functions]: (fn) => this.#each(fn, { [FUNCTION.node]: (node) => this.#node(node, 0) }),
      },
    );
  }

  #graph(graph: Span, depth: number): void {
    if (depth > MAX_DEPTH) throw new RangeError(`expected graphs nested at most ${MAX_DEPTH} deep, got more`);
    this.#each(graph, {
      [GRAPH.node]: (node) => this.#node(node, depth),
      [GRAPH.initializer]: (tensor) => this.#tensor(tensor),
      [GRAPH.sparseInitializer]: (sparse) => this.#sparse(sparse),
    });
  }

  #node(node: Span, depth: number): void {
    this.#each(node, { [NODE.attribute]: (attribute) => this.#attribute(attribute, depth) });
  }

  #attribute(attribute: Span, depth: number): void {
    this.#each(attribute, {
      [ATTRIBUTE.tensor]: (tensor) => this.#tensor(tensor),
      [ATTRIBUTE.tensors]: (tensor) => this.#tensor(tensor),
      [ATTRIBUTE.graph]: (graph) => this.#graph(graph, depth + 1),
      [ATTRIBUTE.graphs]: (graph) => this.#graph(graph, depth + 1),
      [ATTRIBUTE.sparseTensor]: (sparse) => this.#sparse(sparse),
      [ATTRIBUTE.sparseTensors]: (sparse) => this.#sparse(sparse),
    });
  }

  #sparse(sparse: Span): void {
    this.#each(sparse, {
      [SPARSE.values]: (tensor) => this.#tensor(tensor),
      [SPARSE.indices]: (tensor) => this.#tensor(tensor),
    });
  }

  #tensor(tensor: Span): void {
    this.#each(tensor, { [TENSOR.externalData]: (entry) => this.#entry(entry) });
  }

  #entry(entry: Span): void {
    const text: Record<number, string> = {};
    const read = (field: number) => (span: Span) => {
      text[field] = new TextDecoder().decode(this.source.read(span.start, span.end - span.start));
    };
    this.#each(entry, { [ENTRY.key]: read(ENTRY.key), [ENTRY.value]: read(ENTRY.value) });
    if (text[ENTRY.key] === "location") this.locations.add(text[ENTRY.value] ?? "");
  }

  #each(message: Span, visit: Readonly<Record<number, (span: Span) => void>>): void {
    for (const field of walkMessage(this.source, message.start, message.end)) {
      if ("start" in field) visit[field.number]?.(field);
    }
  }
}
