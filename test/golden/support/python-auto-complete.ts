import { AutoCompleteConfig, type ModelConfig } from "@tritonjs/core";

/** A call of the recorded model files: `c.add_input({"name": "A", ...})`. */
const CALL = /^\s*c\.(\w+)\((.*)\)$/;

/** Does to a configuration what `auto_complete_config` of a recorded Python model does. */
export function completeLikePython(prepared: ModelConfig, source: string): AutoCompleteConfig {
  const config = new AutoCompleteConfig(prepared);
  for (const line of source.split("def auto_complete_config")[1]?.split("\n") ?? []) {
    const [, call, given = ""] = CALL.exec(line) ?? [];
    const json = given
      .replace(/dict\((\w+)=(\w+)\)/, '{"$1": $2}')
      .replaceAll("True", "true")
      .replaceAll("False", "false");
    if (call === "add_input") config.addInput(tensorOf(json));
    else if (call === "add_output") config.addOutput(tensorOf(json));
    else if (call === "set_max_batch_size") config.setMaxBatchSize(Number(json));
    else if (call === "set_dynamic_batching") config.setDynamicBatching();
    else if (call === "set_model_transaction_policy") config.setModelTransactionPolicy(JSON.parse(json));
  }
  return config;
}

function tensorOf(json: string) {
  const { data_type: dataType, ...tensor } = JSON.parse(json);
  return { ...tensor, ...(dataType === undefined ? {} : { dataType }) };
}
