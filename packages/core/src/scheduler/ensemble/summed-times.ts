import type { ComputeTimes } from "../../observe/duration.js";

/** Total compute times of all steps of a request. */
export class SummedTimes implements ComputeTimes {
  inputMs = 0;
  inferMs = 0;
  outputMs = 0;

  add(inputMs: number, inferMs: number, outputMs: number): void {
    this.inputMs += inputMs;
    this.inferMs += inferMs;
    this.outputMs += outputMs;
  }
}
