import { type DataType, type ModelConfig, Tensor, type TensorSpec, wireShape } from "@tritonjs/protocol";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { OutputChecker } from "../../src/request/inference-response.js";
import { RequestValidator } from "../../src/request/request-validator.js";
import { modelConfig } from "../support/model-config.js";
import { type RequestFields, requestWith, thrownText } from "../support/requests.js";
import { fp32, ones } from "../support/tensors.js";

const NO_ID = "[request id: <id_unknown>] ";

const NOTE =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to " +
  "each input shape. If you want to specify the full shape including the batch dim in your input dims config, " +
  "try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

const spec = (name: string, shape: number[], dtype: DataType = "FP32", optional = false): TensorSpec => ({
  name,
  dtype,
  shape,
  optional,
});

const batched = modelConfig({ inputs: [spec("x", [2])], options: { maxBatchSize: 8 } });

const whole = modelConfig({ inputs: [spec("x", [-1, 16])], options: { batching: false } });

const pair = modelConfig({ inputs: [spec("a", [2]), spec("b", [2])], options: { maxBatchSize: 8 } });

function fault(
  config: ModelConfig,
  inputs: Readonly<Record<string, Tensor>>,
  init: RequestFields = {},
): string {
  const thrown = thrownText(() => new RequestValidator(config).validate(requestWith(inputs, init)));
  return thrown.replace(/^INVALID_ARG /, "");
}

describe("a valid request", () => {
  it("passes, and its batch size is known", () => {
    const request = requestWith({ x: ones(3, 2) });
    new RequestValidator(batched).validate(request);
    expect([request.batchSize, request.rows]).toEqual([3, 3]);
  });

  it("has no batch size when the model has no batch axis", () => {
    const request = requestWith({ x: ones(3, 16) });
    new RequestValidator(whole).validate(request);
    expect([request.batchSize, request.rows]).toEqual([0, 1]);
  });

  it("may omit optional inputs", () => {
    const config = modelConfig({ inputs: [spec("a", [2]), spec("b", [2], "FP32", true)] });
    expect(fault(config, { a: ones(1, 2) })).toBe("nothing was thrown");
  });
});

describe("a dimension beyond 2^53", () => {
  const huge = 2n ** 63n - 1n;
  const tensor = (dims: (number | bigint)[], bytes = 0) =>
    Tensor.fromBytes("FP32", wireShape(dims), new Uint8Array(bytes));

  it("is printed with all its digits when the shape does not match", () => {
    expect(fault(whole, { x: tensor([0, huge]) })).toBe(
      `${NO_ID}unexpected shape for input 'x' for model 'm'. Expected [-1,16], got [0,9223372036854775807]. `,
    );
  });

  it("wraps around at 64 bits like Triton when the shape matches", () => {
    expect(fault(whole, { x: tensor([huge, 16]) })).toBe(
      `${NO_ID}input byte size mismatch for input 'x' for model 'm'. Expected -64, got 0`,
    );
  });

  it("is rejected even when its byte size overflows to the size that was sent", () => {
    expect(fault(whole, { x: tensor([2n ** 62n, 16]) })).toBe(
      "[request id: <id_unknown>] input 'x' of model 'm': invalid dimension 4611686018427387904 in shape " +
        "[4611686018427387904,16]",
    );
  });

  it("is rejected as too large a batch", () => {
    expect(fault(batched, { x: tensor([huge, 2]) })).toContain("must be <= 8");
  });
});

describe("requested outputs", () => {
  it("are rejected when the model does not have them", () => {
    expect(fault(batched, { x: ones(1, 2) }, { requestedOutputs: ["y", "q"] })).toBe(
      "unexpected inference output 'q' for model 'm'",
    );
  });

  it("are checked before the inputs", () => {
    expect(fault(batched, {}, { requestedOutputs: ["q"] })).toContain("unexpected inference output 'q'");
  });
});

describe("a wrong number of inputs", () => {
  it("is reported with the given and the missing names when it is too small", () => {
    expect(fault(pair, { a: ones(1, 2) })).toBe(
      `${NO_ID}expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['a'], but missing required input(s) ` +
        "['b']. Please provide all required input(s).",
    );
  });

  it("is reported as a range when some inputs are optional", () => {
    const config = modelConfig({ inputs: [spec("a", [2]), spec("b", [2], "FP32", true)] });
    expect(fault(config, {})).toBe(
      `${NO_ID}expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got input(s) [], ` +
        "but missing required input(s) ['a']. Please provide all required input(s).",
    );
  });

  it("is reported when it is too large", () => {
    expect(fault(batched, { x: ones(1, 2), q: ones(1, 2) })).toContain("expected 1 inputs but got 2 inputs");
  });

  it("is reported with the id of the request", () => {
    expect(fault(pair, {}, { id: "a7" })).toMatch(/^\[request id: a7\] expected 2 inputs but got 0 inputs/);
  });
});

describe("an input is rejected", () => {
  it("when the model does not have it", () => {
    expect(fault(batched, { q: ones(1, 2) })).toBe("unexpected inference input 'q' for model 'm'");
  });

  it("when it has no batch axis", () => {
    expect(fault(batched, { x: Tensor.fromElements("FP32", [], new Float32Array(1)) })).toBe(
      `${NO_ID}input 'x' has no shape but model requires batch dimension for 'm'`,
    );
  });

  it("when its row count differs from that of the first input", () => {
    expect(fault(pair, { a: ones(1, 2), b: ones(2, 2) })).toBe(
      `${NO_ID}input 'b' batch size does not match other inputs for 'm'`,
    );
  });

  it("when it has more rows than the largest batch", () => {
    expect(fault(batched, { x: ones(9, 2) })).toBe(
      `${NO_ID}inference request batch-size must be <= 8 for 'm'`,
    );
  });

  it("when its data type differs from the model's", () => {
    expect(fault(batched, { x: Tensor.fromElements("INT32", [1, 2], new Int32Array(2)) })).toBe(
      `${NO_ID}inference input 'x' data-type is 'INT32', but model 'm' expects 'FP32'`,
    );
  });

  it("when its shape differs from the model's, with a note about the batch axis if there is one", () => {
    expect(fault(batched, { x: ones(1, 3) })).toBe(
      `${NO_ID}unexpected shape for input 'x' for model 'm'. Expected [-1,2], got [1,3]. ${NOTE}`,
    );
    expect(fault(whole, { x: ones(1, 8) })).toBe(
      `${NO_ID}unexpected shape for input 'x' for model 'm'. Expected [-1,16], got [1,8]. `,
    );
    expect(fault(batched, { x: ones(1, 2, 1) })).toContain("Expected [-1,2], got [1,2,1]");
  });

  it("when one of its dimensions is -1", () => {
    expect(fault(whole, { x: Tensor.fromElements("FP32", [-1, 16], new Float32Array(16)) })).toBe(
      `${NO_ID}All input dimensions should be specified for input 'x' for model 'm', got [-1,16]`,
    );
  });

  it("when its byte size does not match its shape", () => {
    expect(fault(batched, { x: Tensor.fromBytes("FP32", [8, 2], new Uint8Array(60)) })).toBe(
      `${NO_ID}input byte size mismatch for input 'x' for model 'm'. Expected 64, got 60`,
    );
  });

  it("for its data type first, then its shape, then its size", () => {
    expect(fault(batched, { x: Tensor.fromBytes("INT32", [1, 9], new Uint8Array(1)) })).toContain(
      "data-type",
    );
    expect(fault(batched, { x: Tensor.fromBytes("FP32", [1, 9], new Uint8Array(1)) })).toContain("shape");
  });
});

describe("a BYTES input", () => {
  const text = modelConfig({ inputs: [spec("x", [2], "BYTES")] });
  const raw = (hex: string) => ({ x: Tensor.fromBytes("BYTES", [1, 2], Buffer.from(hex, "hex")) });

  it("is accepted when it has as many whole elements as the shape says", () => {
    expect(fault(text, raw("010000006100000000"))).toBe("nothing was thrown");
    const elements = [new Uint8Array(1), new Uint8Array(2)];
    expect(fault(text, { x: Tensor.fromElements("BYTES", [1, 2], elements) })).toBe("nothing was thrown");
  });

  it("is rejected when fewer than four bytes are left for a length", () => {
    expect(fault(text, raw("0100000061" + "0000"))).toBe(
      `${NO_ID}incomplete string length indicator for inference input 'x' for model 'm', expecting 4 bytes but only ` +
        "2 bytes available. Please make sure the string length indicator is in one buffer.",
    );
  });

  it("is rejected with too many elements", () => {
    expect(fault(text, raw("000000000000000000000000"))).toBe(
      `${NO_ID}unexpected number of string elements 3 for inference input 'x' for model 'm', expecting 2`,
    );
  });

  it("is rejected with too few elements", () => {
    expect(fault(text, raw("00000000"))).toBe(
      `${NO_ID}expected 2 string elements for inference input 'x' for model 'm', got 1`,
    );
    expect(fault(text, { x: Tensor.fromElements("BYTES", [1, 2], [new Uint8Array(1)]) })).toContain("got 1");
  });

  it("is rejected when an element is cut short", () => {
    expect(fault(text, raw("00000000" + "0500000061"))).toBe(
      "incomplete string data for inference input 'x', expecting string of length 5 but only 1 bytes available",
    );
  });
});

describe("check outputs", () => {
  const outputs: readonly TensorSpec[] = [
    { name: "y", dtype: "FP32", shape: [3] },
    { name: "label", dtype: "BYTES", shape: [-1] },
  ];

  const checker = new OutputChecker(modelConfig({ outputs }));
  const single = new OutputChecker(modelConfig());
  const good = { y: [[1, 2, 3]], label: [["a"]] };

  const fault = (value: unknown, rows = 1, requested: readonly string[] = []) =>
    thrownText(() => checker.fromCallback(value, rows, requested)).replace("INTERNAL model 'm' ", "");

  const tensorFault = (tensors: Record<string, Tensor>, rows = 1) =>
    thrownText(() => single.check(new Map(Object.entries(tensors)), rows, [])).replace(
      "INTERNAL model 'm' ",
      "",
    );

  describe("the result of a callback", () => {
    it("becomes tensors in the model's order", () => {
      const made = checker.fromCallback({ label: good.label, y: good.y }, 1, []);
      expect([...made.keys()]).toEqual(["y", "label"]);
      expect(made.get("y")!.elements).toEqual(Float32Array.of(1, 2, 3));
    });

    it("may hold typed arrays, which get the declared shape with the rows of the batch", () => {
      expect(single.fromCallback({ y: new Float32Array(6) }, 2, []).get("y")!.shape).toEqual([2, 3]);
    });

    it("keeps its shape when the model has no batch axis", () => {
      const whole = new OutputChecker(modelConfig({ options: { batching: false } }));
      expect(whole.fromCallback({ y: [1, 2, 3] }, 1, []).get("y")!.shape).toEqual([3]);
    });

    it("may omit outputs that were not requested", () => {
      expect([...checker.fromCallback({ y: good.y }, 1, ["y"]).keys()]).toEqual(["y"]);
    });
  });

  describe("a wrong result is reported with the declared and the returned value", () => {
    it("when it is not an object", () => {
      const expected = "returned a wrong value: expected an object with its outputs by name, got";
      expect([undefined, null, 3, "y"].map((value) => fault(value))).toEqual([
        `${expected} undefined`,
        `${expected} null`,
        `${expected} number`,
        `${expected} string`,
      ]);
    });

    it("when it is a list of another length", () => {
      expect(fault([[1]])).toContain("expected 2 ('y', 'label'), got 1");
    });

    it("when an output has an unknown name", () => {
      expect(fault({ ...good, z: [[1]] })).toBe("returned an unknown output 'z': expected ['y', 'label']");
    });

    it("when an output is missing", () => {
      expect(fault({ y: good.y })).toBe("did not return output 'label': got ['y']");
      expect(fault({ y: good.y }, 1, ["label"])).toBe("did not return output 'label': got ['y']");
    });

    it("when elements have another type", () => {
      expect(fault({ ...good, y: new Float64Array(3) })).toBe(
        "returned a wrong output 'y' (FP32): expected Float32Array, got Float64Array",
      );
      expect(fault({ ...good, y: [["1", 2, 3]] })).toBe(
        "returned a wrong output 'y' (FP32): expected a number, got string",
      );
      expect(fault({ ...good, label: [[1]] })).toContain(
        "output 'label' (BYTES): expected a string, a Uint8Array or a plain object, got 1",
      );
    });

    it("when an array does not fill the shape", () => {
      expect(fault({ ...good, y: new Float32Array(5) }, 2)).toBe(
        "returned a wrong output 'y': expected elements for shape [2,3], got an array of 5",
      );
    });

    it("when the rank differs", () => {
      expect(fault({ ...good, y: [1, 2, 3] })).toBe(
        "returned a wrong output 'y': expected shape [-1,3], got [3]",
      );
    });

    it("when a fixed dimension differs", () => {
      expect(fault({ ...good, y: [[1, 2]] })).toBe(
        "returned a wrong output 'y': expected shape [-1,3], got [1,2]",
      );
    });

    it("when the row count differs from the batch", () => {
      expect(fault({ ...good, y: ndarray(new Float32Array(9), [3, 3]) }, 2)).toBe(
        "INTERNAL model 'm': Received output tensors with different batch sizes: y: (3, 3), label: (1, 1). Expected batch size: 2. ",
      );
    });

    it("as INTERNAL, with the cause kept", () => {
      expect(() => checker.fromCallback({ ...good, y: "no" }, 1, [])).toThrow(
        expect.objectContaining({
          code: "INTERNAL",
          cause: expect.objectContaining({ code: "INVALID_ARG" }),
        }),
      );
    });
  });

  describe("output tensors of a backend", () => {
    it("pass when they match the declaration", () => {
      expect(tensorFault({ y: ones(2, 3) }, 2)).toBe("nothing was thrown");
    });

    it("are checked by the same rules", () => {
      expect(tensorFault({ y: Tensor.fromBytes("FP64", [1, 3], new Uint8Array(24)) })).toBe(
        "returned a wrong output 'y': expected FP32, got FP64",
      );
      expect(tensorFault({ y: ones(1, 3), z: ones(1) })).toBe(
        "returned an unknown output 'z': expected ['y']",
      );
      expect(tensorFault({ y: fp32([1, 3], [1, 2]) })).toBe(
        "returned a wrong output 'y': expected 3 elements for shape [1,3], got 2",
      );
      expect(tensorFault({ y: ones(1, 3) }, 2)).toBe(
        "INTERNAL model 'm': Received output tensors with different batch sizes: y: (1, 3). Expected batch size: 2. ",
      );
      expect(tensorFault({})).toBe("did not return output 'y': got []");
    });
  });
});
