import { fromConfigDataType } from "@tritonjs/protocol";
import type { Models } from "../support/served-models.js";

interface Output {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly (number | string)[];
}

/**
 * The library's error for outputs that do not match the model's declaration, given its answer; `undefined` for
 * matching outputs. Errors about an ensemble member have the ensemble's name.
 */
export function outputFault(
  models: Models,
  name: string,
  outputs: readonly Output[],
): ((got: string) => string) | undefined {
  const model = models.get(name);
  if (model === undefined) return undefined;
  const declared = model.config.output ?? [];
  if (model.features.has("ensemble")) return outputs.length > 0 ? undefined : faultOfMember(models, name);
  for (const { name: output, datatype, shape } of outputs) {
    const spec = declared.find((one) => one.name === output);
    const expected = spec && fromConfigDataType(spec.dataType);
    if (spec === undefined || expected === undefined) continue;
    if (expected !== datatype) return () => wrongType(name, output, expected, datatype);
    const sizes = shape.map(Number).slice((model.config.maxBatchSize ?? 0) > 0 ? 1 : 0);
    const fits =
      sizes.length === spec.dims.length && spec.dims.every((dim, i) => dim < 0 || dim === sizes[i]);
    if (!fits && spec.reshape === undefined) {
      return () =>
        `model '${name}' returned a wrong output '${output}': expected shape [${spec.dims.join(",")}], got [${shape.join(",")}]`;
    }
  }
  if (outputs.length > 0 || declared.length === 0) return undefined;
  return (got) =>
    missing(
      name,
      declared.map((output) => output.name),
      got,
    );
}

function faultOfMember(models: Models, name: string): ((got: string) => string) | undefined {
  const [step] = models.get(name)?.config.ensembleScheduling?.step ?? [];
  const member = step === undefined ? undefined : outputFault(models, step.modelName, []);
  return member && ((got) => `in ensemble '${name}', ${member(got.replace(`in ensemble '${name}', `, ""))}`);
}

const arrays: Readonly<Record<string, string>> = {
  INT32: "Int32Array",
  INT64: "BigInt64Array",
  FP32: "Float32Array",
  FP64: "Float64Array",
  UINT8: "Uint8Array",
};

function wrongType(model: string, output: string, expected: string, got: string): string {
  return `model '${model}' returned a wrong output '${output}' (${expected}): expected an array of strings or byte arrays, got ${arrays[got]}`;
}

/** The model returned no output, or one of another name, which the recording does not show. */
function missing(model: string, declared: readonly string[], got: string): string {
  const list = declared.map((output) => `'${output}'`).join(", ");
  const other = /^model '\w+' returned an unknown output '(\w+)'/.exec(got)?.[1];
  return other === undefined || declared.includes(other)
    ? `model '${model}' did not return output '${declared[0]}': got []`
    : `model '${model}' returned an unknown output '${other}': expected [${list}]`;
}
