import type { Answer, InferCall, NamedTensor, Way } from "./clients/client.js";
import { toldText } from "./models.js";

/** A request and its outputs; they are the same for every client unless `except` names it. */
export interface AnswerCase {
  readonly title: string;
  readonly call: InferCall;
  readonly outputs: readonly NamedTensor[];
  /** The other fields of a transport's answer; an in-process call does not have them. */
  readonly answer?: Omit<Answer, "outputs">;
  /** Clients that cannot send this request. */
  readonly except?: readonly Way[];
}

const x = { name: "x", datatype: "INT32", shape: [1], elements: [7] } as const;

const float = (name: string, ...elements: number[]): NamedTensor => ({
  name,
  datatype: "FP32",
  shape: [elements.length, 1],
  elements,
});

const told = (text: string): NamedTensor => ({
  name: "told",
  datatype: "BYTES",
  shape: [1],
  elements: [Uint8Array.from(Buffer.from(text))],
});

const version = (number: number): NamedTensor => ({
  name: "version",
  datatype: "INT32",
  shape: [1],
  elements: [number],
});

const pair = [float("a", 1, 2, 3), float("b", 10, 20, 30)];
const sum = float("sum", 11, 22, 33);
const difference = float("difference", -9, -18, -27);

const parameters = {
  text: "grün",
  empty: "",
  whole: -3,
  wide: 9_007_199_254_740_993n,
  fraction: 0.25,
  yes: true,
  no: false,
};

export const answerCases: readonly AnswerCase[] = [
  {
    title: "several inputs and outputs of several rows",
    call: { model: "pair", inputs: pair },
    outputs: [sum, difference],
    answer: { model: "pair", version: "1", id: undefined },
  },
  {
    title: "inputs in another order than the model's",
    call: { model: "pair", inputs: [...pair].reverse() },
    outputs: [sum, difference],
  },
  {
    title: "one of two outputs",
    call: { model: "pair", inputs: pair, outputs: ["difference"] },
    outputs: [difference],
    except: ["in process"],
  },
  {
    title: "both outputs by name",
    call: { model: "pair", inputs: pair, outputs: ["sum", "difference"] },
    outputs: [sum, difference],
    except: ["in process"],
  },
  {
    title: "a request id",
    call: { model: "told", id: "request-1/ä", inputs: [x] },
    outputs: [told(toldText("request-1/ä", {}))],
    answer: { model: "told", version: "1", id: "request-1/ä" },
  },
  {
    title: "no request id and no parameters",
    call: { model: "told", inputs: [x] },
    outputs: [told("id=")],
  },
  {
    title: "parameters of every type",
    call: { model: "told", inputs: [x], parameters },
    outputs: [told(toldText("", parameters))],
  },
  {
    title: "the highest version when none is named",
    call: { model: "versions", inputs: [x] },
    outputs: [version(2)],
    answer: { model: "versions", version: "2", id: undefined },
  },
  {
    title: "the version that is named",
    call: { model: "versions", version: 1, inputs: [x] },
    outputs: [version(1)],
    answer: { model: "versions", version: "1", id: undefined },
  },
];
