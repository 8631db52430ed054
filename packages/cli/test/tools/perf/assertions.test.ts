import { expect, it } from "vitest";
import { readAssertions } from "../../../src/perf/run-verdict.js";
import { concurrency, levelOf, requests, serverOf } from "../support/report-run.js";

const level = levelOf(
  concurrency(1),
  [
    ...requests(99),
    { sent: 0, times: [5, 10], tokens: [1, 1], end: 1000 },
    { sent: 0, end: 5, error: "gone" },
  ],
  { server: serverOf(100) },
  true,
);

const holds = (text: string) => readAssertions(text).map((one) => one.holds(one.valueIn(level)));

it.each([
  ["p50<=10.1ms, p50<9.9ms, p50 > 9900us", [true, false, true]],
  ["p99.9>0.9s,max>=1000,min<10001us,avg<20", [true, true, true, true]],
  ["throughput==100,request_throughput>=100", [true, true]],
  ["errors==1,error_rate<1%,error_rate<0.5%", [true, true, false]],
  ["queue<=1ms,queue<1ms", [true, false]],
  ["time_to_first_token.p50<10ms,output_sequence_length>1", [true, false]],
  ["goodput>0,output_token_throughput>1", [true, true]],
])("the conditions %s give %s", (text, expected) => {
  expect(holds(text)).toEqual(expected);
});

it("a figure that was not measured meets no condition", () => {
  const plain = levelOf(concurrency(1), requests(1));
  for (const text of ["queue<5", "queue>=0", "goodput>=0", "time_to_first_token<100"]) {
    const [one] = readAssertions(text);
    expect(one!.holds(one!.valueIn(plain))).toBe(false);
  }
});
