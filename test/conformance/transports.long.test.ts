import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testAnswers } from "./answer-tests.js";
import { testErrors } from "./error-tests.js";
import { openConformance } from "./open-conformance.js";

describe("with frontend threads", () => {
  const clientOf = openConformance(2);
  testAnswers(clientOf);
  testErrors(clientOf);
});

/** How a case of `frame_cases.py` ended. */
interface CaseResult {
  readonly section: string;
  readonly name: string;
  readonly expected: readonly string[];
  readonly got: string;
}

/** A Python with `hpack`, which Debian has in the package python3-hpack. */
const python = [process.env.TRITONJS_PYTHON ?? "python3", "/usr/bin/python3"].find(
  (program) => spawnSync(program, ["-c", "import hpack"], { stdio: "ignore" }).status === 0,
);

/** Node answers connection errors that it reports to the program with this code instead of the RFC's. */
const NODE_CODE = "connection INTERNAL_ERROR";

const isNode20 = process.versions.node.startsWith("20.");

/**
 * What Node's HTTP/2 answers instead of what the RFC asks for. The connection or the stream ends in every case with
 * `NODE_CODE`; cases with `none` are frames that Node ignores.
 */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "3.4 closes a connection with another preface": NODE_CODE,
  // The RFC permits a server to ignore frames of streams that were closed a moment ago.
  "5.1 closed by RST_STREAM: refuses DATA": "none",
  "5.1 closed by RST_STREAM: refuses HEADERS": "none",
  "5.1 closed: refuses DATA": "none",
  "5.1 closed: refuses HEADERS": "none",
  "5.1.1 refuses a stream below the last one": "none",
  // Node closes the connection, which the RFC does not ask for.
  "6.7 does not answer an acknowledgement of PING": NODE_CODE,
  ...(isNode20
    ? {
        "6.9.1 refuses a window of a stream above 2^31-1": NODE_CODE,
        "6.9.2 refuses a setting that makes a window too large": NODE_CODE,
      }
    : {
        "6.3 refuses PRIORITY on stream 0": "none",
        "8.1.1 refuses a content-length that is not that of DATA": NODE_CODE,
        "8.1.1 refuses a content-length that is not the sum of DATA": NODE_CODE,
      }),
  // The header is left out, and the call goes on.
  "8.2.1 refuses a header value with a line break": "none",
};

describe(`HTTP/2 of the gRPC port${python === undefined ? " (skipped: there is no Python with hpack)" : ""}`, () => {
  const triton = new Triton();
  let results: readonly CaseResult[] = [];

  beforeAll(async () => {
    if (python === undefined) return;
    const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
    const script = fileURLToPath(new URL("./http2/frame_cases.py", import.meta.url));
    const cases = spawn(python, [script, String(addresses.grpc!.port)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [output, [code]] = await Promise.all([text(cases.stdout), once(cases, "exit")]);
    expect(code).toBe(0);
    results = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as CaseResult);
  });
  afterAll(() => triton.close());

  test.skipIf(python === undefined)(
    "answers each case as the RFC asks for, but for the listed differences",
    () => {
      const titleOf = ({ section, name }: CaseResult) => `${section} ${name}`;
      const others = results
        .filter(({ expected, got }) => !expected.includes(got))
        .map((result) => [titleOf(result), result.got]);
      expect(results.length).toBeGreaterThan(95);
      expect(Object.fromEntries(others)).toEqual(DIFFERENCES);
    },
  );

  test.skipIf(python === undefined)("is still ready after all cases", () => {
    expect(results.at(-1)!.section).toBe("HPACK 6.3");
    expect(serviceOf(triton).isReady()).toBe(true);
  });
});
