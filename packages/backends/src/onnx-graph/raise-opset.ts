import { attributeOf, GraphEditor, intAttribute, isStandard } from "./graph-editor.js";
import type { AttributeMessage, NodeMessage } from "./onnx-messages.js";
import { nodesOf, type OnnxModel } from "./onnx-model.js";

/** The operator set with scales by channel, to which older models are raised. */
const TARGET = 13;

/** The oldest that can be raised: until then, more operators changed than this knows. */
const OLDEST = 11;

/**
 * Operators of 11 and 12 whose form changed until 13. Attributes that became inputs are moved. All other operators of
 * these versions mean the same in 13.
 */
const MOVED: Readonly<Record<string, readonly [attribute: string, input: number]>> = {
  Squeeze: ["axes", 1],
  Unsqueeze: ["axes", 1],
  ReduceSum: ["axes", 1],
  Split: ["split", 1],
};

/** Operators whose default axis, and whose meaning for other axes than the last, changed with 13. */
const FLATTENING: ReadonlySet<string> = new Set(["Softmax", "LogSoftmax", "Hardmax"]);

/**
 * Raises a model of the operator sets 11 and 12 to 13, where quantised weights can have a scale for each channel. A model
 * that cannot be raised safely stays as it is.
 *
 * @returns whether the model has at least the operator set 13 now
 */
export function raiseOpset(model: OnnxModel): boolean {
  const version = model.opset();
  if (version >= TARGET) return true;
  if (version < OLDEST || model.message.functions.length > 0) return false;
  // An axis of -1 is the last in both meanings.
  const changes = (node: NodeMessage) => FLATTENING.has(node.opType) && intAttribute(node, "axis", 1) !== -1;
  for (const node of nodesOf(model.message.graph)) if (isStandard(node) && changes(node)) return false;
  GraphEditor.edit(model, (editor) => {
    for (const node of editor.graph.node) {
      const place = isStandard(node) && Object.hasOwn(MOVED, node.opType) ? MOVED[node.opType] : undefined;
      if (place !== undefined) moveToInput(node, place, editor);
    }
  });
  for (const set of model.message.opsetImport) {
    if ((set.domain ?? "") === "" || set.domain === "ai.onnx") set.version = TARGET;
  }
  if (Number(model.message.irVersion) < 7) model.message.irVersion = 7;
  return true;
}

function moveToInput(node: NodeMessage, [name, input]: readonly [string, number], editor: GraphEditor): void {
  const attribute: AttributeMessage | undefined = attributeOf(node, name);
  if (attribute === undefined) return;
  const values = BigInt64Array.from(attribute.ints, BigInt);
  node.attribute = node.attribute.filter((one) => one !== attribute);
  node.input = [...node.input];
  node.input[input] = editor.add(name, [values.length], values);
}
