import { type AsciiSet, complement, matching } from "./ascii-set.js";

/** POSIX classes, which are used inside brackets: `[[:alpha:]]`. */
const POSIX: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  ascii: /[\s\S]/,
  blank: /[\t ]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class is these characters.
  cntrl: /[\x00-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t\n\v\f\r ]/,
  upper: /[A-Z]/,
  word: /[0-9A-Za-z_]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** Perl classes by their letter. The capital letter is the complement. `\s` does not include the vertical tab. */
const PERL: Readonly<Record<string, RegExp>> = { d: /[0-9]/, s: /[\t\n\f\r ]/, w: /[0-9A-Za-z_]/ };

/** The POSIX class of a name such as `alpha` or `^alpha`; undefined for an unknown one. */
export function posixSet(name: string): AsciiSet | undefined {
  return signed(name, (plain) => (Object.hasOwn(POSIX, plain) ? matching(POSIX[plain]!) : undefined));
}

/** The Perl class of a letter; undefined for a letter without one. */
export function perlSet(letter: string): AsciiSet | undefined {
  const lower = letter.toLowerCase();
  if (!Object.hasOwn(PERL, lower)) return undefined;
  const set = matching(PERL[lower]!);
  return letter === lower ? set : complement(set);
}

/** The characters of a Unicode category or script, such as `L`, `Lu` or `Greek`; undefined for an unknown one. */
export function unicodeSet(name: string): AsciiSet | undefined {
  return signed(name, (plain) => {
    if (!/^\w+$/.test(plain)) return undefined;
    for (const property of [`General_Category=${plain}`, `Script=${plain}`, plain]) {
      try {
        return matching(new RegExp(`\\p{${property}}`, "u"));
      } catch {
        // The name is not a property of this kind.
      }
    }
    return undefined;
  });
}

function signed(name: string, find: (plain: string) => AsciiSet | undefined): AsciiSet | undefined {
  if (!name.startsWith("^")) return find(name);
  const set = find(name.slice(1));
  return set === undefined ? undefined : complement(set);
}
