import { describe, expect, it } from "vitest";
import { Dependencies, type DependencyNode, keyOf } from "../../src/repository/dependencies.js";
import { ensembleConfig } from "../support/repository-models.js";

const key = (name: string) => keyOf({ namespace: "", name });

/** Models by name with the names of their members; a star marks models that were loaded by name. */
function dependencies(models: Readonly<Record<string, readonly string[]>>, bound: readonly string[] = []) {
  const nodes = Object.entries(models).map(([marked, members]): [string, DependencyNode] => {
    const name = marked.replace("*", "");
    const config = ensembleConfig(name, members);
    return [key(name), { id: { namespace: "", name }, config, explicit: marked.endsWith("*") }];
  });
  return new Dependencies(new Map(nodes), (name) => bound.includes(name));
}

const names = (keys: Iterable<string>) => [...keys].map((one) => one.slice(1)).sort();

describe("dependencies between models", () => {
  it("reach from a model to all ensembles above it", () => {
    const graph = dependencies({ a: [], b: [], inner: ["a"], outer: ["inner", "b"] });
    expect(names(graph.withDependents([key("a")]))).toEqual(["a", "inner", "outer"]);
    expect(names(graph.withDependents([key("outer")]))).toEqual(["outer"]);
  });

  it("name the missing members of an ensemble, except models that the program binds", () => {
    const graph = dependencies({ ens: ["z", "a", "bound"] }, ["bound"]);
    expect(graph.problemOf(key("ens"))).toBe(
      "ensemble ens contains models that are not available or ambiguous: a, z",
    );
  });

  it("may not form a circle", () => {
    const graph = dependencies({ x: ["y"], y: ["x"], self: ["self"] });
    expect(graph.problemOf(key("x"))).toBe("circular dependency between ensembles: x -> ... -> y -> x");
    expect(graph.problemOf(key("self"))).toBe(
      "circular dependency between ensembles: self -> ... -> self -> self",
    );
  });

  it("include members that no other ensemble needs and that were not loaded by name", () => {
    const graph = dependencies({ "a*": [], b: [], c: [], one: ["a", "b", "c"], two: ["c"] });
    expect(names(graph.withOrphans([key("one")]))).toEqual(["b", "one"]);
    expect(names(graph.withOrphans([key("one"), key("two")]))).toEqual(["b", "c", "one", "two"]);
  });
});
