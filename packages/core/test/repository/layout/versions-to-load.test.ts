import { describe, expect, it } from "vitest";
import { readVersionDirectories, versionsToLoad } from "../../../src/repository/model-directory.js";

describe("version directories of a model", () => {
  it("are those with integer names of at least 1", () => {
    expect(readVersionDirectories(["10", "2", "1", "warmup", "initial_state", "configs"])).toEqual({
      versions: [1, 2, 10],
      ignored: [],
    });
  });

  it("are ignored, with a reason, when they have any other name", () => {
    const names = ["0", "01", "-1", "abc", "2x", "+1", "99999999999999999999"];
    expect(readVersionDirectories(names)).toEqual({
      versions: [],
      ignored: [
        "ignore version directory '0' which is not a version: expected an integer of at least 1",
        "ignore version directory '01' which contains leading zeros in its directory name",
        "ignore version directory '-1' which is not a version: expected an integer of at least 1",
        "ignore version directory 'abc' which fails to convert to integral number",
        "ignore version directory '2x' which fails to convert to integral number",
        "ignore version directory '+1' which fails to convert to integral number",
        "ignore version directory '99999999999999999999' which is too large for a version",
      ],
    });
  });
});

describe("a version policy", () => {
  const existing = [1, 2, 3, 7];

  it("serves all versions when it is empty, as Triton does", () => {
    expect(versionsToLoad(existing, {})).toEqual({ versions: existing, missing: [] });
  });

  it("serves the latest versions up to its number", () => {
    expect(versionsToLoad(existing, { latest: { numVersions: 2 } }).versions).toEqual([3, 7]);
    expect(versionsToLoad(existing, { latest: { numVersions: 9 } }).versions).toEqual(existing);
    expect(versionsToLoad(existing, { latest: { numVersions: 0 } }).versions).toEqual([]);
  });

  it("serves all versions", () => {
    expect(versionsToLoad(existing, { all: {} }).versions).toEqual(existing);
  });

  it("serves specific versions and reports the missing ones", () => {
    expect(versionsToLoad(existing, { specific: { versions: [7, 1, 5] } })).toEqual({
      versions: [1, 7],
      missing: [5],
    });
  });
});
