import { describe, expect, it } from "vitest";
import { thrownText } from "../../../core/test/support/requests.js";
import { elementCount, matchesShape, sameShape, shapeToString } from "../../src/tensor.js";

describe("elementCount", () => {
  it("is the product of the dimensions: 1 for a scalar, and 0 where a dimension is 0", () => {
    expect([elementCount([]), elementCount([3]), elementCount([2, 3, 4]), elementCount([5, 0])]).toEqual([
      1, 3, 24, 0,
    ]);
  });

  it("rejects a product that a number cannot hold exactly", () => {
    expect(elementCount([2 ** 26, 2 ** 26])).toBe(2 ** 52);
    expect(thrownText(() => elementCount([2 ** 27, 2 ** 27]))).toBe(
      "INVALID_ARG the number of elements of shape [134217728,134217728] is too large",
    );
  });

  it("rejects dimensions that are not non-negative integers", () => {
    for (const dim of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(thrownText(() => elementCount([2, dim]))).toBe(
        `INVALID_ARG invalid dimension ${dim} in shape [2,${dim}]`,
      );
    }
  });

  it("rejects an overflow even when a later dimension is 0", () => {
    expect(thrownText(() => elementCount([2 ** 600, 2, 0]))).toContain("invalid dimension");
  });
});

describe("shapes", () => {
  it("are printed without spaces", () => {
    expect(shapeToString([-1, 16])).toBe("[-1,16]");
    expect(shapeToString([])).toBe("[]");
  });

  it("are equal when all dimensions are", () => {
    expect(sameShape([2, 3], [2, 3])).toBe(true);
    expect(sameShape([2, 3], [2, 4])).toBe(false);
    expect(sameShape([2, 3], [2, 3, 1])).toBe(false);
  });

  it("match a specification in which -1 means any size", () => {
    expect(matchesShape([-1, 3], [7, 3])).toBe(true);
    expect(matchesShape([-1, 3], [7, 4])).toBe(false);
    expect(matchesShape([-1], [7, 3])).toBe(false);
    expect(matchesShape([], [])).toBe(true);
  });
});
