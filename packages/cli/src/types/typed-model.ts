import { type DataType, fromConfigDataType, isDataType, type ModelConfig } from "@tritonjs/protocol";

/** One tensor, as the written types have it. */
export interface TypedTensor {
  readonly name: string;
  /** Undefined for a data type that this version does not know. */
  readonly dtype: DataType | undefined;
  /** Dimensions without the batch axis, if the model is known to have one; -1 for any size. */
  readonly dims: readonly number[];
  readonly optional: boolean;
  /** Names of the classes that an output scores. */
  readonly labels?: readonly string[] | undefined;
  /** Parts that the types leave open, with reasons. */
  readonly note?: string;
}

/** One model, as the written types have it. */
export interface TypedModel {
  readonly name: string;
  /** Undefined for a model of which nothing is known. */
  readonly inputs?: readonly TypedTensor[];
  readonly outputs?: readonly TypedTensor[];
  /** Undefined if the server does not tell. */
  readonly decoupled?: boolean | undefined;
  readonly sequence?: boolean | undefined;
  /** Notes on the model for readers. */
  readonly notes: readonly string[];
}

/** Models that the types are written for. */
export interface TypedModels {
  /** Their names differ. */
  readonly models: readonly TypedModel[];
  /** Sources that did not list their models, each with the reason. Any name may be that of a model then. */
  readonly unread: readonly string[];
}

export function modelWithoutTypes(name: string, reason: string): TypedModel {
  return { name, notes: [`nothing is known of this model: ${reason}`] };
}

/** A configuration, or the parts of one that another server sends: Triton's names, or the same in camelCase. */
type AnyConfig = Readonly<Record<string, unknown>>;

/** Reads a field by Triton's name or the same in camelCase. */
function field(config: AnyConfig, name: string): unknown {
  return config[name] ?? config[name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
}

const listOf = (value: unknown): AnyConfig[] => (Array.isArray(value) ? value : []);

/**
 * Reads a configuration, whether of this library or as a server sends it.
 *
 * @param labels names of classes by output, as far as their files are at hand
 */
export function modelOfConfig(
  name: string,
  given: ModelConfig | object,
  labels?: ReadonlyMap<string, readonly string[]>,
): TypedModel {
  const config = given as AnyConfig;
  const computed = new Set(
    listOf(field(config, "batch_input")).flatMap((one) => (field(one, "target_name") as string[]) ?? []),
  );
  const tensorOf = (tensor: AnyConfig): TypedTensor => {
    const tensorName = String(tensor.name);
    const dataType = String(field(tensor, "data_type"));
    const dtype = fromConfigDataType(dataType);
    const own = labels?.get(tensorName);
    const file = field(tensor, "label_filename");
    const notes = [
      ...(dtype === undefined ? [`its data type '${dataType}' is not known`] : []),
      ...(own === undefined && typeof file === "string" && file !== ""
        ? [`its labels are in the server's file '${file}', which cannot be read from here`]
        : []),
    ];
    return {
      name: tensorName,
      dtype,
      dims: listOf(tensor.dims).map(Number),
      optional: tensor.optional === true,
      labels: own,
      ...(notes.length > 0 && { note: notes.join("; ") }),
    };
  };
  const policy = field(config, "model_transaction_policy") as AnyConfig | undefined;
  const sequence = field(config, "sequence_batching") as AnyConfig | undefined;
  const ensemble = field(config, "ensemble_scheduling") as AnyConfig | undefined;
  const steps = listOf(ensemble?.step).map((step) => String(field(step, "model_name")));
  return {
    name,
    inputs: listOf(config.input)
      .map(tensorOf)
      .filter((input) => !computed.has(input.name)),
    outputs: listOf(config.output).map(tensorOf),
    decoupled: policy?.decoupled === true,
    sequence: sequence != null && field(sequence, "iterative_sequence") !== true,
    notes: steps.length === 0 ? [] : [`an ensemble of ${[...new Set(steps)].join(", ")}`],
  };
}

/** The part of a model's metadata that types need. */
interface Metadata {
  readonly inputs: readonly MetadataTensor[];
  readonly outputs: readonly MetadataTensor[];
}

interface MetadataTensor {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly (number | string)[];
}

/** Reads the metadata of a server that has no configurations. */
export function modelOfMetadata(name: string, { inputs, outputs }: Metadata, reason: string): TypedModel {
  const tensorOf = ({ name: tensorName, datatype, shape }: MetadataTensor): TypedTensor => {
    const dtype = isDataType(datatype) ? datatype : undefined;
    return {
      name: String(tensorName),
      dtype,
      dims: listOf(shape).map(Number),
      optional: false,
      ...(dtype === undefined && { note: `its data type '${String(datatype)}' is not known` }),
    };
  };
  const unknown =
    "from its metadata alone, so shapes may include a batch axis, and nothing is known of optional inputs, responses " +
    "in a stream and sequences";
  return {
    name,
    inputs: listOf(inputs).map((tensor) => tensorOf(tensor as unknown as MetadataTensor)),
    outputs: listOf(outputs).map((tensor) => tensorOf(tensor as unknown as MetadataTensor)),
    decoupled: undefined,
    sequence: undefined,
    notes: [`${unknown}: ${reason}`],
  };
}
