import { describe, expect, it } from "vitest";
import { headerPattern } from "../../src/frontend/header-pattern.js";

describe("a header pattern", () => {
  it.each<[pattern: string, names: readonly string[], others: readonly string[]]>([
    ["my-.*|timeout", ["MY-b", "x-my-a", "Timeout"], ["my", "other"]],
    ["(?-i)my-.*", ["x-my-a"], ["MY-b", "My-b"]],
    ["(?i)my-.*", ["MY-b"], ["m-b"]],
    ["^(?-i:X)-a", ["X-A", "X-a"], ["x-a", "y-X-a"]],
    ["(?-i)a(?i)b|c", ["aB", "ab", "C"], ["AB"]],
    ["(?-i)(a(?i)b)c", ["aBc"], ["aBC"]],
    ["(?i-s)a", ["A"], ["b"]],
    ["(?ims-U)^a.$", ["ab"], ["abc"]],
    ["(?-i)[a-c]+", ["xax"], ["A"]],
    ["^[^a-c]$", ["d"], ["a", "B"]],
    ["(?-i)^[^a-c]$", ["A"], ["a"]],
    ["^[]-]$", ["-", "]"], ["a"]],
    ["^[a\\-\\]]$", ["-", "]"], ["\\"]],
    ["^[[:digit:][:^alnum:]]+$", ["1-"], ["a"]],
    ["^[\\d\\pP]+$", ["1-_"], ["a"]],
    ["^\\p{Lu}\\PL$", ["A-", "a-"], ["--"]],
    ["(?-i)^\\p{Latin}\\p{^L}$", ["A-"], ["-A"]],
    ["^x{2,3}$", ["xx", "xXx"], ["x", "xxxx"]],
    ["^x{,2}$", ["x{,2}"], ["x"]],
    ["^x{01}$", ["x{01}"], ["x"]],
    ["^a*?b+?c??$", ["aabb", "bc"], ["a"]],
    ["^*a", ["a", "ba"], ["b"]],
    ["\\Aa\\z", ["a"], ["ab"]],
    ["\\Qa.b\\E+", ["a.bb"], ["axb"]],
    ["^\\x61\\x{62}\\143\\056$", ["abc."], ["abcd"]],
    ["\\bid\\b", ["x-id-y"], ["xid"]],
    ["(?P<one>a)(?<two>b)", ["ab"], ["a"]],
    ["^(?:a|)b$", ["ab", "b"], ["a"]],
    ["é?x", ["x"], ["e"]],
  ])("%s", (pattern, names, others) => {
    const expression = headerPattern(pattern)!;
    expect(names.filter((name) => !expression.test(name))).toEqual([]);
    expect(others.filter((name) => expression.test(name))).toEqual([]);
  });

  it.each([
    ["[", "missing ]: ["],
    ["[a-", "missing ]: [a-"],
    ["(a", "missing ): (?i)(a"],
    ["a)", "unexpected ): (?i)a)"],
    ["*a", "no argument for repetition operator: *"],
    ["(?i)*", "no argument for repetition operator: *"],
    ["a**", "bad repetition operator: **"],
    ["a{2}{3}", "bad repetition operator: {2}{3}"],
    ["a{1001}", "invalid repetition size: {1001}"],
    ["a{3,2}", "invalid repetition size: {3,2}"],
    ["[c-a]", "invalid character class range: c-a"],
    ["[[:letter:]]", "invalid character class range: [:letter:]"],
    ["\\p{Nonsense}", "invalid character class range: \\p{Nonsense}"],
    ["(a)\\1", "invalid escape sequence: \\1"],
    ["\\Z", "invalid escape sequence: \\Z"],
    ["a\\", "trailing \\"],
    ["(?=a)", "invalid perl operator: (?="],
    ["(?<!a)b", "invalid perl operator: (?<"],
    ["(?i-)a", "invalid perl operator: (?i"],
    ["(?P<a-b>c)", "invalid named capture group: (?P<a-b>"],
  ])("rejects %s as RE2 does", (pattern, reason) => {
    expect(() => headerPattern(pattern)).toThrow(`Error parsing '(?i)${pattern}': ${reason}`);
  });

  it("accepts a JavaScript expression and ignores its state", () => {
    const expression = headerPattern(/(?<=x-)A/gy)!;
    expect([expression.test("x-a"), expression.test("x-a"), expression.test("a")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([undefined, ""])("forwards nothing for %j", (pattern) => {
    expect(headerPattern(pattern)).toBeUndefined();
  });
});
