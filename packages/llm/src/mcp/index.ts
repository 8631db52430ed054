import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import {
  assertOptions,
  type DataType,
  elementByteSize,
  errorFor,
  floatReader,
  fromConfigDataType,
  isDecoupled,
  type ModelConfig,
  optionTypes,
  TritonError,
} from "@tritonjs/protocol";

/** A model that can be a tool: the handle that `bind` returns, of any tensors. */
export interface ToolModel {
  readonly name: string;
  config(): ModelConfig;
  infer(...given: never[]): Promise<object>;
  inferSample(...given: never[]): Promise<object>;
  stream(...given: never[]): AsyncIterable<object>;
}

/** The same, for values that are checked when the model runs. */
interface CallableModel extends ToolModel {
  infer(inputs: object, options: object): Promise<object>;
  inferSample(inputs: object, options: object): Promise<object>;
  stream(inputs: object, options: object): AsyncIterable<object>;
}

/** A model as a tool. */
export interface McpTool {
  readonly model: ToolModel;
  /** Name of the tool: letters, digits, `_` and `-`. @default the name of the model */
  readonly name?: string;
  /** Description of the tool, which a language model reads to choose it. @default the name of the model */
  readonly description?: string;
}

/** Options of {@link mcpServer}. */
export interface McpServerOptions {
  /** Name of the server. @default "tritonjs" */
  readonly name?: string;
  /** Version of the server. @default "1.0.0" */
  readonly version?: string;
}

const OPTION_TYPES = optionTypes<McpServerOptions>({ name: "string", version: "string" });
const TOOL_TYPES = optionTypes<McpTool>({ model: "object", name: "string", description: "string" });

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * A server of the Model Context Protocol whose tools are models. The schema of a tool comes from the tensors of its
 * model: a call has the values of one sample. The responses of a decoupled model are a list. Connect it to any transport
 * of the protocol's own package.
 *
 * @param tools handles of models, or handles with names and descriptions
 * @throws TritonError INVALID_ARG for an unknown option, a name that the protocol does not allow, and two tools of one
 * name.
 * @example
 * ```ts
 * const server = mcpServer([{ model: weather, description: "Predicts the weather of tomorrow." }]);
 * await server.connect(new StdioServerTransport());
 * ```
 */
export function mcpServer(tools: readonly (ToolModel | McpTool)[], options: McpServerOptions = {}): Server {
  assertOptions("mcpServer()", options, OPTION_TYPES);
  const { name = "tritonjs", version = "1.0.0" } = options;
  const served = new Map<string, ServedTool>();
  for (const given of tools) {
    const tool = "model" in given ? given : { model: given };
    assertOptions("a tool of mcpServer()", tool, TOOL_TYPES, {}, ["model"]);
    const made = new ServedTool(tool);
    if (served.has(made.name))
      throw errorFor("INVALID_OPTION", `mcpServer(): expected one tool '${made.name}', got two`);
    served.set(made.name, made);
  }
  const server = new Server({ name, version }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...served.values()].map((tool) => tool.description),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const tool = served.get(params.name);
    if (tool !== undefined) return tool.call(params.arguments ?? {}, signal);
    const names = [...served.keys()].map((one) => `'${one}'`).join(", ");
    throw new McpError(ErrorCode.InvalidParams, `unknown tool '${params.name}': expected one of ${names}`);
  });
  return server;
}

class ServedTool {
  readonly name: string;
  readonly description: Tool;
  readonly #model: CallableModel;

  constructor({ model, name = model.name, description = `Runs the model '${model.name}'.` }: McpTool) {
    if (!TOOL_NAME.test(name)) {
      const expected = "expected 1 to 64 letters, digits, '_' and '-'";
      throw errorFor("INVALID_OPTION", `name of a tool of mcpServer(): ${expected}, got '${name}'`);
    }
    this.name = name;
    this.#model = model as CallableModel;
    const config = model.config();
    const output = objectSchema(config.output);
    this.description = {
      name,
      description,
      inputSchema: objectSchema(config.input),
      outputSchema: isDecoupled(config)
        ? {
            type: "object",
            properties: { responses: { type: "array", items: output } },
            required: ["responses"],
          }
        : output,
    };
  }

  /** Runs the model. Its error is the answer, which a language model can read. */
  async call(values: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallToolResult> {
    try {
      const content = await this.#run(values, signal);
      return { content: [{ type: "text", text: JSON.stringify(content) }], structuredContent: content };
    } catch (error) {
      return { content: [{ type: "text", text: TritonError.from(error).message }], isError: true };
    }
  }

  async #run(
    values: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const model = this.#model;
    const config = model.config();
    const batched = config.maxBatchSize > 0;
    if (!isDecoupled(config)) {
      const answer = await (batched
        ? model.inferSample(values, { signal })
        : model.infer(values, { signal }));
      return plainOutputs(config, answer, false);
    }
    const inputs = Object.entries(values).map(([name, value]) => [name, batched ? [value] : value]);
    const responses: Record<string, unknown>[] = [];
    for await (const answer of model.stream(Object.fromEntries(inputs), { signal })) {
      responses.push(plainOutputs(config, answer, batched));
    }
    return { responses };
  }
}

interface TensorDeclaration {
  readonly name: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly optional?: boolean;
}

type Schema = Readonly<Record<string, unknown>>;

/** The tensors of one sample as members of an object. */
function objectSchema(tensors: readonly TensorDeclaration[]): Tool["inputSchema"] {
  return {
    type: "object",
    properties: Object.fromEntries(tensors.map((tensor) => [tensor.name, tensorSchema(tensor)])),
    required: tensors.filter(({ optional = false }) => !optional).map(({ name }) => name),
    additionalProperties: false,
  };
}

/** Nested lists of a tensor's elements. A tensor of one element is the element itself. */
function tensorSchema({ dataType, dims }: TensorDeclaration): Schema {
  const element = elementSchema(fromConfigDataType(dataType) ?? "FP32");
  if (isScalar(dims)) return element;
  return dims.reduceRight<Schema>(
    (items, size) => ({ type: "array", items, ...(size >= 0 && { minItems: size, maxItems: size }) }),
    element,
  );
}

const isScalar = (dims: readonly number[]): boolean => dims.every((dim) => dim === 1);

function elementSchema(datatype: DataType): Schema {
  if (datatype === "BYTES") return { type: "string" };
  if (datatype === "BOOL") return { type: "boolean" };
  if (floatReader(datatype) !== undefined) return { type: "number" };
  const bits = 8 * elementByteSize(datatype);
  // Numbers of JSON are exact only within 53 bits, so those of 64 bits have no limits here.
  if (bits > 32) return { type: "integer" };
  return datatype.startsWith("U")
    ? { type: "integer", minimum: 0, maximum: 2 ** bits - 1 }
    : { type: "integer", minimum: -(2 ** (bits - 1)), maximum: 2 ** (bits - 1) - 1 };
}

interface JsonArray {
  toJSON(): unknown;
}

/** @param hasRows whether the outputs have a batch axis, of one row */
function plainOutputs({ output }: ModelConfig, answer: object, hasRows: boolean): Record<string, unknown> {
  const members = output.flatMap(({ name, dims }) => {
    const array = (answer as Readonly<Record<string, JsonArray | undefined>>)[name];
    if (array === undefined) return [];
    let value = array.toJSON();
    for (let depth = isScalar(dims) ? dims.length : 0, i = hasRows ? -1 : 0; i < depth; i++) {
      value = (value as readonly unknown[])[0];
    }
    return [[name, value] as const];
  });
  return Object.fromEntries(members);
}
