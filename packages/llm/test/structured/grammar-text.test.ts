import { expect, it } from "vitest";
import { Regexes } from "../../src/structured/byte-regex.js";
import { GrammarMachine } from "../../src/structured/grammar.js";
import { grammarOfText } from "../../src/structured/grammar-text.js";

function takes(grammar: string, text: string): boolean {
  const regexes = new Regexes();
  const machine = new GrammarMachine(regexes, grammarOfText(grammar, regexes));
  let state: ReturnType<GrammarMachine["step"]> = machine.start;
  for (const byte of new TextEncoder().encode(text)) {
    state = machine.step(state, byte);
    if (state === undefined) return false;
  }
  return state.mayEnd;
}

/** A grammar in the form of llama.cpp, with a rule that refers to itself in its middle. */
const ARITHMETIC = `
# expressions
root  ::= (expr "=" ws term "\\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \\t\\n]*
`;

const LARK_ARITHMETIC = `
?start: sum
?sum: product | sum "+" product -> add
    | sum "-" product -> sub
?product: atom
    | product "*" atom  // binds closer
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
`;

it.each<[string, string, readonly string[], readonly string[]]>([
  ["EBNF", 'root ::= "a" b? | "c"{2,3}\nb ::= [^a-y]', ["a", "az", "aé", "cc", "ccc"], ["ab", "c", "cccc"]],
  [
    "escapes of EBNF",
    'root ::= "\\x41\\u00e9\\n\\"" [\\]\\-\\\\]',
    ['Aé\n"]', 'Aé\n"-', 'Aé\n"\\'],
    ['Aé\n"a'],
  ],
  ["GBNF", ARITHMETIC, ["a=1\n", "(a +2)*b_1=x\ny=2\n"], ["a=", "(a=1\n", "a=1"]],
  ["a rule that begins with itself", 'root ::= root "x" | "y"', ["y", "yxx"], ["x", "yy"]],
  [
    "a repetition of a rule that recurs",
    'root ::= p{2}\np ::= "(" p* ")"',
    ["()()", "(())()"],
    ["()", "()()()"],
  ],
  ["Lark", LARK_ARITHMETIC, ["1", "a + (2*-b) - 3.5e2", " 1 "], ["1 +", "(1", "1 2"]],
  [
    "Lark's strings and ranges",
    'start: "yes"i | "a".."c" | /x\\/y/',
    ["YES", "yEs", "b", "x/y"],
    ["d", "no"],
  ],
  ["Lark's repetitions", 'start: A~2 "b"~1..3 ["c"]\nA: "a"', ["aab", "aabbbc"], ["ab", "aabbbb"]],
])("takes the texts of a grammar: %s", (_, grammar, good, bad) => {
  expect(good.filter((text) => !takes(grammar, text))).toEqual([]);
  expect(bad.filter((text) => takes(grammar, text))).toEqual([]);
});

it.each([
  ['root ::= "a', "line 1 of the grammar: expected a quotation mark, got its end"],
  ["root ::= x", "expected a rule named x, which root refers to, got none"],
  ['a ::= "b"', "expected a rule named root, got none"],
  ['root ::= "a"\nroot ::= "b"', "the rule root is given twice"],
  ['root ::= a\na ::= b "x"\nb ::= a | "y"', "the rule a begins with itself by way of another rule"],
  ['root ::= root "x"', "the rule root never ends"],
  ['root ::= "a" (="b")', "it looks ahead with (=, which is not held"],
  ['root ::= "a"{5,2}', "expected at most 2 as the smallest number of repetitions, got 5"],
  ['start: "a"~5..2', "expected at most 2 as the smallest number of repetitions, got 5"],
  ["root ::= [z-a]", "line 1 of the grammar: expected a range from a lower to a higher character"],
  ['start: "a"\n%import python.NAME', "line 2 of the grammar: expected %ignore, or %import of common"],
  ['start: "a"\n%import common.NAM', "expected a terminal of common, such as WS or NUMBER, got NAM"],
  ["start: /a/i", "a pattern with the flags i is not held"],
  ["start: /(a)\\1/", "cannot hold a pattern with \\1, which refers to an earlier part"],
  ["hello", 'line 1 of the grammar: expected a rule such as start: ..., got "hello"'],
])("names what is wrong in %j", (grammar, message) => {
  expect(() => takes(grammar, "a")).toThrow(message);
});
