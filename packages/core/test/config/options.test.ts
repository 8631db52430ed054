import {
  DATA_TYPES,
  encodeBytes,
  type ModelSequenceBatching,
  type SequenceStateTensor,
  TritonError,
} from "@tritonjs/protocol";
import { toConfigJson } from "@tritonjs/protocol/config";
import { repository } from "@tritonjs/repository";
import { Registry } from "prom-client";
import { afterAll, describe, expect, it } from "vitest";
import { modelMetadata } from "../../src/config/model-metadata.js";
import { validateConfig, validateOptions } from "../../src/config/resolve-config.js";
import { initialStates } from "../../src/config/sequence-batching.js";
import {
  type SequenceOptions,
  type SequenceStateOption,
  stateFilesOf,
} from "../../src/config/sequence-options.js";
import { batch, type ModelOptions, Triton, type TritonOptions } from "../../src/index.js";
import { modelConfig } from "../support/model-config.js";

type Initial = SequenceStateTensor["initialState"][number];

const state = (given: Partial<SequenceStateTensor> = {}): SequenceStateTensor => ({
  inputName: "S",
  outputName: "S_NEW",
  dataType: "TYPE_INT32",
  dims: [1],
  initialState: [],
  useSameBufferForInputOutput: false,
  useGrowableMemory: false,
  ...given,
});

const initial = (given: Partial<Initial> = {}): Initial => ({
  dataType: "TYPE_INT32",
  dims: [1],
  zeroData: true,
  name: "zero",
  ...given,
});

const configWith = (...states: SequenceStateTensor[]) => {
  const sequenceBatching: ModelSequenceBatching = {
    direct: { maxQueueDelayMicroseconds: 0, minimumSlotUtilization: 0 },
    maxSequenceIdleMicroseconds: 0,
    controlInput: [],
    state: states,
    iterativeSequence: false,
  };
  return modelConfig({ overrides: { sequenceBatching } });
};

const problems = (...states: SequenceStateTensor[]) => validateConfig(configWith(...states));

const noFile = () => {
  throw new TritonError("INTERNAL", "no such file");
};

describe("the initial states of sequences", () => {
  it("are zeros or empty strings, with length 1 in variable dimensions", () => {
    const text = state({ inputName: "T", outputName: "T_NEW", dataType: "TYPE_STRING", dims: [2] });
    const config = configWith(state({ dims: [-1, 3] }), text);
    const { states, problems: wrong } = initialStates(config, noFile);
    expect(wrong).toEqual([]);
    expect([states.get("S")!.shape, [...states.get("S")!.elements]]).toEqual([
      [1, 1, 3],
      [0, 0, 0],
    ]);
    expect([states.get("T")!.shape, [...states.get("T")!.elements]]).toEqual([
      [1, 2],
      [new Uint8Array(), new Uint8Array()],
    ]);
  });

  it("have the dimensions of the initial state, without a batch axis for models that do not batch", () => {
    const config = {
      ...configWith(state({ dims: [-1], initialState: [initial({ dims: [3] })] })),
      maxBatchSize: 0,
    };
    expect(initialStates(config, noFile).states.get("S")!.shape).toEqual([3]);
  });

  it("come from files: numbers use the first bytes, texts use the whole file", () => {
    const file = { zeroData: undefined, dataFile: "start" };
    const text = { dataType: "TYPE_STRING", dims: [2] };
    const config = configWith(
      state({ initialState: [initial(file)] }),
      state({ inputName: "T", outputName: "T_NEW", ...text, initialState: [initial({ ...text, ...file })] }),
    );
    const encoder = new TextEncoder();
    const bytes = encodeBytes([encoder.encode("d"), encoder.encode("é")]);
    const { states } = initialStates(config, () => bytes);
    expect([...states.get("S")!.elements]).toEqual([1]);
    expect([...states.get("T")!.elements]).toEqual([encoder.encode("d"), encoder.encode("é")]);
  });

  it("report all files that are too short, have too few texts, or are missing", () => {
    const file = { zeroData: undefined, dataFile: "start" };
    const text = { dataType: "TYPE_STRING", dims: [2] };
    const config = configWith(
      state({ initialState: [initial(file)] }),
      state({ inputName: "T", outputName: "T_NEW", ...text, initialState: [initial({ ...text, ...file })] }),
      state({ inputName: "U", outputName: "U_NEW", initialState: [initial({ ...file, dataFile: "none" })] }),
    );
    const read = (name: string) => (name === "none" ? noFile() : new Uint8Array(0));
    expect(initialStates(config, read).problems.map(({ message }) => message)).toEqual([
      "initial_state setting expects 4 bytes, but the data provided from startonly has 0 bytes.",
      "initial_state for state input 'T': expected 2 elements, got 0 from start",
      "no such file",
    ]);
  });
});

describe("validation of implicit state", () => {
  it("reports all problems at once", () => {
    expect(
      problems(
        state({ initialState: [initial(), initial()] }),
        state({ inputName: "T", outputName: "T_NEW", initialState: [initial({ dataType: "TYPE_INT64" })] }),
        state({ inputName: "U", outputName: "U_NEW", initialState: [initial({ name: "", dims: [1, 1] })] }),
        state({ inputName: "V", outputName: "V_NEW", initialState: [initial({ dims: [-1] })] }),
        state({
          inputName: "W",
          outputName: "W_NEW",
          initialState: [initial({ dims: [2], zeroData: undefined })],
        }),
        state({ inputName: "W", outputName: "W_NEW" }),
        state({ inputName: "x", outputName: "y" }),
        state({ inputName: "Z", outputName: "Z_NEW", dataType: "TYPE_NONE", dims: [0] }),
        state({ inputName: "", outputName: "" }),
      ),
    ).toEqual([
      "initial_state field for state input 'S' must contain exactly one or zero element. Found '2' elements.",
      "The data type used for 'initial_state' field of state 'T' does not match the state data type.",
      "Field 'name' must be set when using initial_state for state input 'U'.",
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'U'. 2 != 1",
      "'initial_state' field for state input name 'V' contains variable dimensions.",
      "'initial_state' dim for input name 'W' doesn't match 'state' dim description. 2 != 1",
      "initial_state setting expects state'W' to have state_data set",
      "state 'Z' of model 'm': expected a known data type, got 'TYPE_NONE'",
      "state 'Z' of model 'm' dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got 0",
      "state '' of model 'm' must have an input name and an output name",
      "State input name 'W' specified more than once.",
      "State output name 'W_NEW' specified more than once.",
      "state input 'x' has the name of another input of model 'm': rename one of them",
      "state output 'y' is TYPE_INT32, but output 'y' of model 'm' is TYPE_FP32",
    ]);
  });

  it("accepts memory hints, which have no effect", () => {
    expect(problems(state({ useSameBufferForInputOutput: true, useGrowableMemory: true }))).toEqual([]);
  });
});

describe("state options", () => {
  const sequence = (...states: SequenceStateOption[]): SequenceOptions => ({ states });
  const one: SequenceStateOption = { input: "S", output: "S_NEW", dtype: "INT32", shape: [-1] };

  it("produce Triton's message, with a value as a file named by the input", () => {
    const options = sequence({ ...one, initial: [1, 2] });
    const config = modelConfig({ options: { sequence: options } });
    expect(config.sequenceBatching!.state).toEqual([
      {
        ...state({ dims: [-1] }),
        initialState: [{ dataType: "TYPE_INT32", dims: [2], dataFile: "S", name: "initial S" }],
      },
    ]);
    const { states, problems: wrong } = initialStates(config, stateFilesOf(options.states!));
    expect([wrong, ...states.get("S")!.elements]).toEqual([[], 1, 2]);
  });

  it("report misspelt options and impossible values", () => {
    const misspelt = { ...one, intial: [1] };
    const both = { ...one, initial: [1], initialFile: { path: "start", shape: [1] } };
    expect(validateOptions({ sequence: sequence(misspelt, both, { ...one, initial: ["a"] }) })).toEqual([
      "config.sequence.states has an unknown option 'intial': did you mean 'initial'?",
      "config.sequence.states: state 'S' has initial and initialFile: leave one of them out",
      expect.stringContaining("initial state 'S'"),
    ]);
  });
});

describe("option types", () => {
  /* The compiler reports these mistakes. Callers without TypeScript get the texts. */

  describe("new Triton() names an option of the wrong type", () => {
    it.each([
      [{ metrics: false }, "new Triton(), option 'metrics': expected an object, got false"],
      [
        { metrics: new Registry() },
        "metrics of new Triton(): expected an object with registry, labels, got an object of class Registry",
      ],
      [
        { metrics: { label: {} } },
        "metrics of new Triton() has an unknown option 'label': did you mean 'labels'?",
      ],
      [{ allowHttp: "no" }, "new Triton(), option 'allowHttp': expected a boolean, got the string 'no'"],
      [
        { exitTimeoutSecs: "5" },
        "new Triton(), option 'exitTimeoutSecs': expected a number, got the string '5'",
      ],
      [{ exitTimeoutSecs: Number.NaN }, "new Triton(), option 'exitTimeoutSecs': expected a number, got NaN"],
      [{ httpPort: "8080" }, "new Triton(), option 'httpPort': expected a number, got the string '8080'"],
      [{ logger: "console" }, "new Triton(), option 'logger': expected an object, got the string 'console'"],
    ])("%o", (options, message) => {
      expect(() => new Triton(options as TritonOptions)).toThrow(
        expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message }),
      );
    });
  });

  it("repository() names an option of the wrong type", () => {
    const message = "repository(), option 'modelRepository': expected an array or a string, got 5";
    expect(() => repository({ modelRepository: 5 } as object)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message }),
    );
  });

  const triton = new Triton();
  afterAll(() => triton.close());

  const bind = (modelName: string, config: unknown) =>
    triton.bind({
      modelName,
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x })),
      config: config as ModelOptions,
    });

  describe("bind names an option of the wrong type", () => {
    it.each([
      [
        { batcher: { preferredBatchSize: 8 } },
        "config.batcher, option 'preferredBatchSize': expected an array, got 8",
      ],
      [
        { batching: { maxQueueDelayMicroseconds: 5 } },
        "config.batching: expected a boolean, got object: the options of the batcher are config.batcher",
      ],
      [{ maxBatchSize: "4" }, "config, option 'maxBatchSize': expected a number, got the string '4'"],
      [
        { batcher: { defaultQueuePolicy: { maxQueueSize: "4" } } },
        "a queue policy of config.batcher, option 'maxQueueSize': expected a number, got the string '4'",
      ],
      [
        { batcher: true },
        "config.batcher: expected an object of options such as { maxQueueDelayMicroseconds: ... }, got true",
      ],
      [
        { batcher: 5 },
        "config.batcher: expected an object of options such as { maxQueueDelayMicroseconds: ... }, got 5",
      ],
      [
        { instanceGroup: { count: "2" } },
        "config.instanceGroup, option 'count': expected a number, got the string '2'",
      ],
      [
        { instanceGroup: [null] },
        "config.instanceGroup: expected an object of options such as { name: ... }, got null",
      ],
      [
        { sequence: true },
        "config.sequence: expected an object of options such as { strategy: ... }, got true",
      ],
      [null, "bind, option 'config': expected an object, got null"],
    ])("%o", (config, problem) => {
      expect(() => bind("wrong", config)).toThrow(
        expect.objectContaining({
          code: "INVALID_ARG",
          reason: "INVALID_CONFIG",
          message: `cannot bind model 'wrong':\n- ${problem}`,
        }),
      );
    });
  });

  describe("a call names an option of the wrong type", () => {
    const model = bind("copy", {});

    it.each([
      [{ timeout: 100 }, "a call of model 'copy' has an unknown option 'timeout': did you mean 'timeoutMs'?"],
      [
        { timeOutMs: 5 },
        "a call of model 'copy' has an unknown option 'timeOutMs': did you mean 'timeoutMs'?",
      ],
      [
        { priority: "high" },
        "a call of model 'copy', option 'priority': expected a number, got the string 'high'",
      ],
      [{ id: 5 }, "a call of model 'copy', option 'id': expected a string, got 5"],
      [{ signal: null }, "a call of model 'copy', option 'signal': expected an object, got null"],
      [{ timeoutMs: "5" }, "timeoutMs: expected a number of milliseconds, got string"],
    ])("%o", async (options, message) => {
      const expected = expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message });
      await expect(model.infer({ x: [[1]] }, options as object)).rejects.toThrow(expected);
      await expect(model.inferSample({ x: [1] }, options as object)).rejects.toThrow(expected);
      await expect(triton.infer("copy", { x: [[1]] }, options as object)).rejects.toThrow(expected);
      await expect(model.stream({ x: [[1]] }, options as object).next()).rejects.toThrow(expected);
    });

    it("and takes options that are undefined", async () => {
      const { y } = await model.infer({ x: [[1]] }, { signal: undefined, id: undefined } as object);
      expect(y.toArray()).toEqual([[1]]);
    });
  });
});

describe("a resolved configuration", () => {
  it("batches by default: up to 4 rows, no delay, preferring the largest size", () => {
    const config = modelConfig();
    expect(config.maxBatchSize).toBe(4);
    expect(config.dynamicBatching).toEqual({
      preferredBatchSize: [4],
      maxQueueDelayMicroseconds: 0,
      preserveOrdering: false,
      priorityLevels: 0,
      defaultPriorityLevel: 0,
      priorityQueuePolicy: {},
    });
  });

  it("has no batch axis and no batcher when batching is off", () => {
    const config = modelConfig({ options: { batching: false } });
    expect([config.maxBatchSize, config.dynamicBatching]).toEqual([0, undefined]);
  });

  it("has a batch axis and no batcher when only the batcher is off", () => {
    const config = modelConfig({ options: { maxBatchSize: 16, batcher: false } });
    expect([config.maxBatchSize, config.dynamicBatching]).toEqual([16, undefined]);
  });

  it("takes over the batcher options", () => {
    const batcher = { maxQueueDelayMicroseconds: 500, preferredBatchSize: [4, 8], preserveOrdering: true };
    expect(modelConfig({ options: { maxBatchSize: 8, batcher } }).dynamicBatching).toMatchObject(batcher);
  });

  it("has a queue with priorities when a decoupled model without a batch axis is given batcher options", () => {
    const batcher = { priorityLevels: 2, defaultPriorityLevel: 1 };
    const { maxBatchSize, dynamicBatching } = modelConfig({
      batching: false,
      options: { batcher, decoupled: true },
    });
    expect(maxBatchSize).toBe(0);
    expect(dynamicBatching).toMatchObject({ ...batcher, preferredBatchSize: [] });
  });

  it("has tensors of every data type under Triton's names", () => {
    const inputs = DATA_TYPES.map((dtype) => ({ name: dtype, dtype, shape: [-1, 2] }));
    expect(modelConfig({ inputs }).input.map(({ dataType, dims }) => [dataType, dims])).toEqual(
      DATA_TYPES.map((dtype) => [dtype === "BYTES" ? "TYPE_STRING" : `TYPE_${dtype}`, [-1, 2]]),
    );
  });

  it("lets fields of Triton's own message override options", () => {
    const config = modelConfig({ overrides: { maxBatchSize: 32, metricTags: { team: "a" } } });
    expect([config.maxBatchSize, config.metricTags]).toEqual([32, { team: "a" }]);
  });

  it("shares no arrays with the options it was made from", () => {
    const shape = [2];
    const preferredBatchSize = [2];
    const config = modelConfig({
      inputs: [{ name: "x", dtype: "FP32", shape }],
      options: { batcher: { preferredBatchSize } },
    });
    shape[0] = 9;
    preferredBatchSize[0] = 9;
    expect([config.input[0]!.dims, config.dynamicBatching!.preferredBatchSize]).toEqual([[2], [2]]);
  });

  it("converts parameters to Triton's form", () => {
    expect(modelConfig({ options: { parameters: { a: "b" } } }).parameters).toEqual({
      a: { stringValue: "b" },
    });
  });
});

describe("the configuration as JSON", () => {
  it("has Triton's snake_case names and leaves out unset sub-messages", () => {
    const json = toConfigJson(modelConfig({ options: { maxBatchSize: 8 } }));
    expect(json).toMatchObject({
      name: "m",
      max_batch_size: 8,
      input: [
        { name: "x", data_type: "TYPE_FP32", format: "FORMAT_NONE", dims: [2], is_shape_tensor: false },
      ],
      dynamic_batching: { preferred_batch_size: [8], max_queue_delay_microseconds: 0 },
      version_policy: { latest: { num_versions: 1 } },
    });
    expect(json).not.toHaveProperty("model_transaction_policy");
  });

  it("keeps map keys unchanged", () => {
    const json = toConfigJson(modelConfig({ options: { parameters: { camelCase: "v" } } }));
    expect(json.parameters).toEqual({ camelCase: { string_value: "v" } });
  });
});

describe("the model metadata", () => {
  it("shows the batch axis as a leading -1 when the model batches", () => {
    expect(modelMetadata(modelConfig(), [1, 3])).toMatchObject({
      name: "m",
      versions: ["1", "3"],
      platform: "javascript",
      inputs: [{ name: "x", datatype: "FP32", shape: [-1, 2] }],
      outputs: [{ name: "y", datatype: "FP32", shape: [-1, 3] }],
    });
    expect(modelMetadata(modelConfig({ options: { batching: false } }), [1]).inputs[0]!.shape).toEqual([2]);
  });
});
