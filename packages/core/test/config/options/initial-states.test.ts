import {
  encodeBytes,
  type ModelSequenceBatching,
  type SequenceStateTensor,
  TritonError,
} from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { validateConfig, validateOptions } from "../../../src/config/resolve-config.js";
import { initialStates } from "../../../src/config/sequence-batching.js";
import type { SequenceOptions } from "../../../src/config/sequence-options.js";
import { type SequenceStateOption, stateFilesOf } from "../../../src/config/sequence-options.js";
import { modelConfig } from "../../support/model-config.js";

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
