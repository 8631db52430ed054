import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { emptyConfig } from "../../../src/config/defaults.js";
import {
  FIELD_SUPPORT,
  fieldNotes,
  fieldPaths,
  fieldProblems,
  supportOf,
} from "../../../src/config/field-support.js";
import { readPrototxt } from "../../../src/config/prototxt.js";

const document = readFileSync(new URL("../../../../../docs/model-configuration.md", import.meta.url), "utf8");

describe("the table of supported fields", () => {
  it("lists every field of the message and no other", () => {
    const paths = fieldPaths();
    expect(paths.filter((path) => supportOf(path) === undefined)).toEqual([]);
    expect(Object.keys(FIELD_SUPPORT).filter((path) => !paths.includes(path))).toEqual([]);
  });

  it("marks each field as honoured, without effect, or refused with a remedy", () => {
    for (const [path, { honoured, noEffect, refused, refusedWhen }] of Object.entries(FIELD_SUPPORT)) {
      expect((honoured === undefined) !== (noEffect === undefined && refused === undefined), path).toBe(true);
      expect(refused === undefined, path).toBe(refusedWhen === undefined);
    }
  });

  it("equals the table in the documentation", () => {
    const rows = Object.entries(FIELD_SUPPORT).map(([path, support]) => {
      const refused = support.refusedWhen === undefined ? "" : `refused ${support.refusedWhen}`;
      const effect =
        support.honoured ?? (support.noEffect === undefined ? "" : `no effect: ${support.noEffect}`);
      return `| \`${path}\` | ${[effect, refused].filter((text) => text !== "").join("; ")} |`;
    });
    const documented = document.split("\n").filter((line) => /^\| `[a-z_.]+` \|/.test(line));
    expect(documented.filter((line) => rows.includes(line))).toEqual(rows);
  });
});

describe("support of a configuration field", () => {
  const problemsOf = (text: string) => fieldProblems(readPrototxt(`name: "m" ${text}`));
  const notesOf = (text: string) => fieldNotes(readPrototxt(`name: "m" ${text}`));

  it("says nothing about an unset field", () => {
    expect([...fieldProblems(emptyConfig()), ...fieldNotes(emptyConfig())]).toEqual([]);
  });

  it("refuses a field that cannot be honoured, with a remedy", () => {
    expect(problemsOf("output { is_non_linear_format_io: true }")).toEqual([
      "model 'm': 'output.is_non_linear_format_io' is a format of TensorRT: remove it, and give the model linear tensors",
    ]);
    expect(problemsOf("instance_group { profile: '0' }")[0]).toContain("'instance_group.profile'");
  });

  it("may refuse a field for one backend and ignore it for another", () => {
    const operations = "model_operations { op_library_filename: 'a.so' }";
    expect(problemsOf(`backend: 'onnxruntime' ${operations}`)[0]).toContain("onnxruntime-node cannot load");
    expect(notesOf(`backend: 'onnxruntime' ${operations}`)).toEqual([]);
    expect(problemsOf(`backend: 'identity' ${operations}`)).toEqual([]);
    expect(notesOf(`backend: 'identity' ${operations}`)[0]).toContain("'model_operations' has no effect: ");
  });

  it("warns of a field without effect, with the reason", () => {
    expect(notesOf("optimization { cuda { busy_wait_events: true } eager_batching: true }")).toEqual([
      expect.stringMatching(/^model 'm': 'optimization\.cuda\.busy_wait_events' has no effect: /),
      expect.stringMatching(/^model 'm': 'optimization\.eager_batching' has no effect: /),
    ]);
  });
});
