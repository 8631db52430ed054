import type { Regex } from "./byte-regex.js";
import type { JsonText } from "./json-text.js";
import type { ObjectForm, Values } from "./shape.js";

/** Number of patterns of a rule for which all combinations of matching ones are told apart. */
const MAX_PATTERNS = 4;

/** Properties without a name of their own: an expression of the key with its quotation marks, and their values. */
export interface OtherProperties {
  readonly key: Regex;
  readonly values: Values;
}

/** Names of properties that a form mentions, in the order of the schema. */
export function namesIn(form: ObjectForm): ReadonlySet<string> {
  return new Set([...form.rules.flatMap(({ named }) => [...named.keys()]), ...form.required]);
}

/** Finds which properties an object may have beside those that its schema names. */
export class ObjectKeys {
  readonly #known = new Map<ObjectForm, readonly OtherProperties[]>();

  /** @param isStrict true if objects that name properties have no others, unless the schema says so */
  constructor(
    private readonly schemas: { readonly anything: Values; allOf(several: readonly Values[]): Values },
    private readonly text: JsonText,
    private readonly isStrict: boolean,
  ) {}

  /** Each way in which a key may match the patterns of the rules. There may be no value for some of them. */
  othersOf(form: ObjectForm): readonly OtherProperties[] {
    let found = this.#known.get(form);
    if (found === undefined) {
      found = this.#find(form);
      this.#known.set(form, found);
    }
    return found;
  }

  #find(form: ObjectForm): OtherProperties[] {
    const { text, schemas } = this;
    const { regexes } = text;
    const isMentioned = form.rules.some(({ named, patterns }) => named.size > 0 || patterns.length > 0);
    const isClosed = this.isStrict && isMentioned && form.rules.every(({ others }) => others === undefined);
    const free = regexes.any(...[...namesIn(form)].map((name) => text.literal(name)));
    const keys = regexes.both(text.quoted(text.canonicalText), regexes.not(free), ...form.keys);
    let found: OtherProperties[] = [{ key: keys, values: schemas.anything }];
    for (const { patterns, others } of form.rules) {
      const none = regexes.not(regexes.any(...patterns.map(({ key }) => key)));
      const combinations = subsets(patterns, patterns.length <= MAX_PATTERNS ? patterns.length : 1);
      found = found.flatMap(({ key, values }) =>
        combinations.flatMap((matched) => {
          regexes.budget.spend(patterns.length);
          const isOther = matched.length === 0;
          if (isOther && isClosed) return [];
          const own = isOther ? (others === undefined ? [] : [others]) : matched.map((one) => one.values);
          const all = schemas.allOf([values, ...own]);
          if (all.fit.some(({ schema }) => schema === false)) return [];
          const left = patterns.filter((one) => !matched.includes(one));
          regexes.budget.hold(100);
          const narrowed = isOther
            ? regexes.both(key, none)
            : regexes.both(key, ...matched.map((one) => one.key), ...left.map((one) => regexes.not(one.key)));
          return regexes.hasMatch(narrowed) ? [{ key: narrowed, values: all }] : [];
        }),
      );
    }
    return found;
  }
}

/** Subsets of at most `size` members, the empty one first. */
function subsets<T>(members: readonly T[], size: number): T[][] {
  let found: T[][] = [[]];
  for (const member of members) {
    found = [...found, ...found.filter((one) => one.length < size).map((one) => [...one, member])];
  }
  return found;
}
