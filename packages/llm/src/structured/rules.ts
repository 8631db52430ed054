import { type Regex, type Regexes, UNBOUNDED } from "./byte-regex.js";
import { type Part, UnheldGrammar } from "./grammar.js";

/** The right side of a rule. */
export type Expression =
  | { readonly kind: "regex"; readonly regex: Regex }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence" | "choice"; readonly members: readonly Expression[] }
  | { readonly kind: "repeat"; readonly of: Expression; readonly min: number; readonly max: number };

/** @throws UnheldGrammar if the smallest number is above the largest one */
export function repetition(of: Expression, min: number, max: number): Expression {
  if (min <= max) return { kind: "repeat", of, min, max };
  throw new UnheldGrammar(`expected at most ${max} as the smallest number of repetitions, got ${min}`);
}

/**
 * Makes the part of a grammar that a rule of several stands for. Rules that do not refer to themselves become
 * expressions. A rule that begins with itself becomes a repetition, so `a: a "x" | "y"` is `a: "y" "x"*`.
 *
 * @throws UnheldGrammar for a rule that is not there, or that begins with itself by way of another rule
 */
export function partOfRules(rules: ReadonlyMap<string, Expression>, start: string, regexes: Regexes): Part {
  return new RuleWriter(rules, regexes).start(start);
}

class RuleWriter {
  readonly #rules: ReadonlyMap<string, Expression>;
  readonly #parts = new Map<string, Part>();
  readonly #nullable = new Set<string>();
  /** Rules that refer to themselves, or need one that does. */
  #recursive: ReadonlySet<string> = new Set();

  constructor(
    rules: ReadonlyMap<string, Expression>,
    private readonly regexes: Regexes,
  ) {
    this.#rules = new Map([...rules].map(([name, of]) => [name, withoutLeftRecursion(name, of)]));
  }

  start(name: string): Part {
    const needed = new Map([...this.#rules].map(([rule, of]) => [rule, new Set(namesIn(of))]));
    for (const [rule, names] of needed) {
      for (const one of names) {
        if (this.#rules.has(one)) continue;
        throw new UnheldGrammar(`expected a rule named ${one}, which ${rule} refers to, got none`);
      }
    }
    if (!this.#rules.has(name)) throw new UnheldGrammar(`expected a rule named ${name}, got none`);
    this.#findNullable();
    const first = new Map([...this.#rules].map(([rule, of]) => [rule, this.#firstNames(of)]));
    const left = this.#endless(first);
    if (left.size > 0) {
      // From any of them, references lead to one that begins with itself.
      const way = new Set<string>();
      let [rule = ""] = left;
      for (; !way.has(rule); rule = [...first.get(rule)!].find((one) => left.has(one))!) way.add(rule);
      throw new UnheldGrammar(`the rule ${rule} begins with itself by way of another rule`);
    }
    this.#recursive = this.#endless(needed);
    return this.#rule(name);
  }

  #findNullable(): void {
    for (let size = -1; size !== this.#nullable.size; ) {
      size = this.#nullable.size;
      this.regexes.budget.spend(this.#rules.size);
      for (const [name, of] of this.#rules) if (this.#isNullable(of)) this.#nullable.add(name);
    }
  }

  #isNullable(of: Expression): boolean {
    switch (of.kind) {
      case "regex":
        return of.regex.nullable;
      case "rule":
        return this.#nullable.has(of.name);
      case "sequence":
        return of.members.every((one) => this.#isNullable(one));
      case "choice":
        return of.members.some((one) => this.#isNullable(one));
      case "repeat":
        return of.min === 0 || this.#isNullable(of.of);
    }
  }

  /** Rules that an expression may begin with. */
  #firstNames(of: Expression): Set<string> {
    switch (of.kind) {
      case "regex":
        return new Set();
      case "rule":
        return new Set([of.name]);
      case "repeat":
        return this.#firstNames(of.of);
      case "choice":
        return new Set(of.members.flatMap((one) => [...this.#firstNames(one)]));
      case "sequence": {
        const names = new Set<string>();
        for (const one of of.members) {
          for (const name of this.#firstNames(one)) names.add(name);
          if (!this.#isNullable(one)) break;
        }
        return names;
      }
    }
  }

  /** Rules from which references lead to a circle. */
  #endless(references: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
    this.regexes.budget.spend(4 * references.size);
    const left = new Map([...references].map(([name, { size }]) => [name, size]));
    const users = new Map<string, string[]>([...references.keys()].map((name) => [name, []]));
    for (const [name, names] of references) for (const one of names) users.get(one)!.push(name);
    const ended = [...left].filter(([, count]) => count === 0).map(([name]) => name);
    for (const name of ended) {
      this.regexes.budget.spend(1);
      left.delete(name);
      for (const user of users.get(name)!) {
        const count = left.get(user)! - 1;
        left.set(user, count);
        if (count === 0) ended.push(user);
      }
    }
    return new Set(left.keys());
  }

  #rule(name: string): Part {
    let part = this.#parts.get(name);
    if (part === undefined) {
      const of = this.#rules.get(name)!;
      const isRegular = !this.#recursive.has(name);
      part = isRegular ? { regex: this.#regex(of) } : { choices: () => this.#choices(of) };
      this.#parts.set(name, part);
    }
    return part;
  }

  #regex(of: Expression): Regex {
    switch (of.kind) {
      case "regex":
        return of.regex;
      case "rule":
        return this.#rule(of.name).regex!;
      case "sequence":
        return this.regexes.sequence(...of.members.map((one) => this.#regex(one)));
      case "choice":
        return this.regexes.any(...of.members.map((one) => this.#regex(one)));
      case "repeat":
        return this.regexes.repeat(this.#regex(of.of), of.min, of.max);
    }
  }

  #choices(of: Expression): readonly (readonly Part[])[] {
    return of.kind === "choice" ? of.members.map((one) => this.#sequence(one)) : [this.#sequence(of)];
  }

  #sequence(of: Expression): readonly Part[] {
    return of.kind === "sequence" ? of.members.map((one) => this.#part(one)) : [this.#part(of)];
  }

  #part(of: Expression): Part {
    if (of.kind === "rule") return this.#rule(of.name);
    const names = [...namesIn(of)];
    this.regexes.budget.spend(1 + names.length);
    if (names.every((name) => !this.#recursive.has(name))) return { regex: this.#regex(of) };
    if (of.kind !== "repeat") return { choices: () => this.#choices(of) };
    const { min, max } = of;
    const one = this.#part(of.of);
    const times: Part[] = [];
    const last = max === UNBOUNDED ? min : max;
    const after = (count: number): Part => {
      const at = Math.min(count, last);
      times[at] ??= {
        choices: () => [...(at >= min ? [[]] : []), ...(count < max ? [[one, after(at + 1)]] : [])],
      };
      return times[at];
    };
    return after(0);
  }
}

function* namesIn(of: Expression): Iterable<string> {
  if (of.kind === "rule") yield of.name;
  else if (of.kind === "repeat") yield* namesIn(of.of);
  else if (of.kind !== "regex") for (const one of of.members) yield* namesIn(one);
}

function withoutLeftRecursion(name: string, of: Expression): Expression {
  const choices = (of.kind === "choice" ? of.members : [of]).map((one) =>
    one.kind === "sequence" ? one.members : [one],
  );
  const begins = (members: readonly Expression[]) => members[0]?.kind === "rule" && members[0].name === name;
  const tails = choices.filter((one) => begins(one) && one.length > 1);
  if (!choices.some(begins)) return of;
  const sequence = (members: readonly Expression[]): Expression => ({ kind: "sequence", members });
  const heads = choices.filter((one) => !begins(one));
  if (heads.length === 0) throw new UnheldGrammar(`the rule ${name} never ends`);
  const head: Expression = { kind: "choice", members: heads.map(sequence) };
  const tail: Expression = { kind: "choice", members: tails.map((one) => sequence(one.slice(1))) };
  return sequence([head, { kind: "repeat", of: tail, min: 0, max: UNBOUNDED }]);
}
