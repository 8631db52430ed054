import { InferenceServerClient } from "@tritonjs/client/http";
import { type DataType, fromConfigDataType, isDataType } from "@tritonjs/protocol";
import { invalidOption } from "../data/invalid-option.js";
import type { TestedInput, TestedModel } from "../data/tested-model.js";
import type { HttpTargetOptions } from "./target-options.js";

export async function readModel(target: HttpTargetOptions): Promise<TestedModel> {
  const client = new InferenceServerClient(target.url, { headers: target.headers });
  const options = target.modelVersion ? { modelVersion: target.modelVersion } : {};
  const config = await client.getModelConfig(target.modelName, options);
  const datatypeOf = (name: string, type: string): DataType => {
    const datatype = fromConfigDataType(type) ?? type;
    if (isDataType(datatype)) return datatype;
    throw invalidOption(`tensor '${name}': unknown data type '${type}'`);
  };
  return {
    name: target.modelName,
    version: target.modelVersion ?? "",
    maxBatchSize: config.max_batch_size,
    decoupled: config.model_transaction_policy?.decoupled ?? false,
    isSequenceModel: config.sequence_batching !== undefined,
    inputs: config.input.map(
      (input): TestedInput => ({
        name: input.name,
        datatype: datatypeOf(input.name, input.data_type),
        dims: input.dims.map(Number),
        optional: input.optional ?? false,
        isShapeTensor: input.is_shape_tensor === true,
      }),
    ),
    outputs: config.output.map((output) => ({
      name: output.name,
      datatype: datatypeOf(output.name, output.data_type),
    })),
    composingModels: [],
  };
}
