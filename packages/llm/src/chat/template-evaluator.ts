import { allParts, type Parts } from "../turns.js";
import {
  compare,
  contains,
  isCallable,
  isDict,
  isEqual,
  isNumeric,
  isTrue,
  iterated,
  JoinFault,
  Members,
  printed,
  TemplateFault,
  type TemplateFunction,
  Tuple,
  toNumber,
  typeName,
  type Value,
} from "./python-values.js";
import { countBytes, countSteps, currentBudget, type RenderBudget } from "./render-budget.js";
import { filterNamed, methodOf, testNamed } from "./template-methods.js";

/**
 * A node of the tree into which `@huggingface/jinja` parses a template. Its own interpreter prints and compares as
 * JavaScript does, so the tree is evaluated here as jinja2 evaluates it.
 */
export interface TemplateNode {
  readonly type: string;
}

type Body = readonly TemplateNode[];

interface Nodes {
  Program: { body: Body };
  If: { test: TemplateNode; body: Body; alternate: Body };
  For: { loopvar: TemplateNode; iterable: TemplateNode; body: Body; defaultBlock: Body };
  Set: { assignee: TemplateNode; value: TemplateNode | null; body: Body };
  Macro: { name: { value: string }; args: Body; body: Body };
  MemberExpression: { object: TemplateNode; property: TemplateNode; computed: boolean };
  CallExpression: { callee: TemplateNode; args: Body };
  Identifier: { value: string };
  Literal: { value: Value };
  List: { value: Body };
  ObjectLiteral: { value: ReadonlyMap<TemplateNode, TemplateNode> };
  BinaryExpression: { operator: { value: string }; left: TemplateNode; right: TemplateNode };
  FilterExpression: { operand: TemplateNode; filter: TemplateNode };
  FilterStatement: { filter: TemplateNode; body: Body };
  SelectExpression: { lhs: TemplateNode; test: TemplateNode };
  TestExpression: { operand: TemplateNode; negate: boolean; test: { value: string } };
  UnaryExpression: { operator: { value: string }; argument: TemplateNode };
  SliceExpression: { start?: TemplateNode; stop?: TemplateNode; step?: TemplateNode };
  KeywordArgumentExpression: { key: { value: string }; value: TemplateNode };
  SpreadExpression: { argument: TemplateNode };
  CallStatement: { call: TemplateNode; callerArgs: Body | null; body: Body };
  Ternary: { condition: TemplateNode; trueExpr: TemplateNode; falseExpr: TemplateNode };
}

const as = <K extends keyof Nodes>(node: TemplateNode, _kind: K): Nodes[K] => node as unknown as Nodes[K];

/** Variables of a part of a template, and of the parts around it. */
class Scope {
  readonly #values = new Map<string, Value>();

  constructor(private readonly outer?: Scope) {}

  get(name: string): Value {
    let scope: Scope | undefined = this;
    let distance = 0;
    for (; scope !== undefined; scope = scope.outer) {
      if (scope.#values.has(name)) break;
      distance++;
    }
    countSteps(distance / 16);
    return scope === undefined ? undefined : scope.#values.get(name);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }
}

/** Ends or continues the loop around it. */
class LoopJump {
  constructor(readonly ends: boolean) {}
}

/**
 * Renders a template in parts of about a millisecond each.
 *
 * @param variables values as templates have them: objects are maps
 * @throws TemplateFault for what fails in Python, too; BudgetFault for a render of more steps or bytes than the budget
 */
export function* renderInParts(
  program: TemplateNode,
  variables: Readonly<Record<string, Value>>,
  budget: RenderBudget,
): Parts<string> {
  const scope = new Scope();
  for (const [name, value] of Object.entries({ ...GLOBALS, ...variables })) scope.set(name, value);
  const parts = render(as(program, "Program").body, scope);
  for (;;) {
    const { done, value } = budget.run(() => parts.next());
    if (done) return value;
    yield;
  }
}

/** Longest range, as in jinja2's sandbox. */
const LONGEST_RANGE = 100_000;

const GLOBALS: Readonly<Record<string, Value>> = {
  range: ((args) => {
    const [start, stop, step] = args.length === 1 ? [0, toNumber(args[0]), 1] : [...args.map(toNumber), 1];
    if (step === 0) throw new TemplateFault("range() arg 3 must not be zero");
    const length = Math.max(0, Math.ceil((stop! - start!) / step!));
    if (length > LONGEST_RANGE)
      throw new TemplateFault(`Range too big. The sandbox blocks ranges larger than ${LONGEST_RANGE}.`);
    countBytes(8 * length);
    return Array.from({ length }, (_, i) => start! + i * step!);
  }) satisfies TemplateFunction,
  dict: ((args, named) =>
    new Map<Value, Value>([...membersOf(args[0]), ...named])) satisfies TemplateFunction,
  namespace: ((args, named) => {
    const given = membersOf(args[0]).map(([key, value]) => [printed(key), value] as const);
    return new Members(new Map([...given, ...named]), true);
  }) satisfies TemplateFunction,
};

function membersOf(value: Value): [Value, Value][] {
  if (!isDict(value)) return [];
  countBytes(32 * value.size);
  return [...value];
}

function* render(body: Body, scope: Scope): Parts<string> {
  let text = "";
  for (const node of body) {
    try {
      text += yield* statement(node, scope);
      if (currentBudget()?.takePause()) yield;
    } catch (jump) {
      // What was written before the loop goes on is part of the text.
      if (jump instanceof RenderedJump) throw new RenderedJump(jump.jump, text + jump.text);
      throw jump;
    }
  }
  return text;
}

/** A jump on its way to its loop, with the text that was written before. */
class RenderedJump {
  constructor(
    readonly jump: LoopJump,
    readonly text: string,
  ) {}
}

function* statement(node: TemplateNode, scope: Scope): Parts<string> {
  countSteps();
  switch (node.type) {
    case "If": {
      const { test, body, alternate } = as(node, "If");
      return yield* render(isTrue(evaluate(test, scope)) ? body : alternate, scope);
    }
    case "For":
      return yield* renderLoop(as(node, "For"), scope);
    case "Break":
      throw new RenderedJump(new LoopJump(true), "");
    case "Continue":
      throw new RenderedJump(new LoopJump(false), "");
    case "Set": {
      const { assignee, value, body } = as(node, "Set");
      const made =
        value === null ? yield* render(body, new Scope(scope)) : yield* evaluateInParts(value, scope);
      assign(assignee, made, scope);
      return "";
    }
    case "Macro": {
      const { name, args, body } = as(node, "Macro");
      scope.set(name.value, macro(args, body, scope));
      return "";
    }
    case "Comment":
      return "";
    case "FilterStatement": {
      const { filter, body } = as(node, "FilterStatement");
      return printed(applyFilter(filter, yield* render(body, new Scope(scope)), scope));
    }
    case "CallStatement": {
      const { call, callerArgs, body } = as(node, "CallStatement");
      const { callee, args } = as(call, "CallExpression");
      const [given, named] = callArguments(args, scope);
      named.set("caller", macro(callerArgs ?? [], body, scope));
      return printed(yield* callInParts(evaluate(callee, scope), given, named, callee));
    }
    default: {
      const text = printed(yield* evaluateInParts(node, scope));
      countBytes(text.length);
      return text;
    }
  }
}

/** Evaluates an expression, and pauses within the macros that it calls itself. */
function* evaluateInParts(node: TemplateNode, scope: Scope): Parts<Value> {
  if (node.type === "CallExpression") {
    countSteps();
    const { callee, args } = as(node, "CallExpression");
    return yield* callInParts(evaluate(callee, scope), ...callArguments(args, scope), callee);
  }
  if (node.type === "FilterExpression") {
    countSteps();
    const { operand, filter } = as(node, "FilterExpression");
    return applyFilter(filter, yield* evaluateInParts(operand, scope), scope);
  }
  return evaluate(node, scope);
}

function* callInParts(
  callee: Value,
  args: readonly Value[],
  named: ReadonlyMap<string, Value>,
  node: TemplateNode,
): Parts<Value> {
  const inParts = isCallable(callee) ? macros.get(callee) : undefined;
  return inParts === undefined ? callValue(callee, args, named, node) : yield* inParts(args, named);
}

/** Steps for the variables of each turn of a loop. */
const STEPS_OF_LOOP = 10;

function* renderLoop({ loopvar, iterable, body, defaultBlock }: Nodes["For"], scope: Scope): Parts<string> {
  const isFiltered = iterable.type === "SelectExpression";
  const source = isFiltered ? as(iterable, "SelectExpression").lhs : iterable;
  const items = iterated(evaluate(source, scope)).filter((item) => {
    if (!isFiltered) return true;
    countSteps();
    const inner = new Scope(scope);
    assign(loopvar, item, inner);
    return isTrue(evaluate(as(iterable, "SelectExpression").test, inner));
  });
  if (items.length === 0) return yield* render(defaultBlock, scope);
  let text = "";
  let last: Value;
  for (const [index, item] of items.entries()) {
    countSteps(STEPS_OF_LOOP);
    const inner = new Scope(scope);
    assign(loopvar, item, inner);
    const values = {
      index: index + 1,
      index0: index,
      revindex: items.length - index,
      revindex0: items.length - index - 1,
      first: index === 0,
      last: index === items.length - 1,
      length: items.length,
      depth: 1,
      depth0: 0,
      previtem: items[index - 1],
      nextitem: items[index + 1],
      cycle: ((args) => args[index % args.length]) satisfies TemplateFunction,
      changed: ((args) => {
        const changes = last === undefined || !isEqual(last, args);
        last = args;
        return changes;
      }) satisfies TemplateFunction,
    };
    inner.set("loop", new Members(new Map(Object.entries(values))));
    try {
      text += yield* render(body, inner);
    } catch (jump) {
      if (!(jump instanceof RenderedJump)) throw jump;
      text += jump.text;
      if (jump.jump.ends) break;
    }
  }
  return text;
}

function assign(target: TemplateNode, value: Value, scope: Scope): void {
  if (target.type === "Identifier") {
    scope.set(as(target, "Identifier").value, value);
    return;
  }
  if (target.type === "TupleLiteral") {
    const targets = as(target, "List").value;
    const values = iterated(value);
    if (values.length !== targets.length) {
      throw new TemplateFault(`cannot unpack: expected ${targets.length} values, got ${values.length}`);
    }
    for (const [i, one] of targets.entries()) assign(one, values[i], scope);
    return;
  }
  const { object, property } = as(target, "MemberExpression");
  const owner = evaluate(object, scope);
  if (!(owner instanceof Members) || !owner.isNamespace) {
    throw new TemplateFault("cannot assign attribute on non-namespace object");
  }
  owner.values.set(as(property, "Identifier").value, value);
}

/** Macros with the function that calls each of them in parts. */
const macros = new WeakMap<TemplateFunction, (...call: Parameters<TemplateFunction>) => Parts<string>>();

function macro(parameters: Body, body: Body, scope: Scope): TemplateFunction {
  function* call(...[args, named]: Parameters<TemplateFunction>): Parts<string> {
    const inner = new Scope(scope);
    for (const [i, parameter] of parameters.entries()) {
      const isNamed = parameter.type === "KeywordArgumentExpression";
      const name = isNamed
        ? as(parameter, "KeywordArgumentExpression").key.value
        : as(parameter, "Identifier").value;
      const given = i < args.length ? args[i] : named.get(name);
      const isGiven = i < args.length || named.has(name);
      const otherwise = () =>
        isNamed ? evaluate(as(parameter, "KeywordArgumentExpression").value, inner) : undefined;
      inner.set(name, isGiven ? given : otherwise());
    }
    if (named.has("caller")) inner.set("caller", named.get("caller"));
    const budget = currentBudget();
    budget?.enter();
    try {
      return yield* render(body, inner);
    } finally {
      budget?.leave();
    }
  }
  const whole: TemplateFunction = (...given) => allParts(call(...given));
  macros.set(whole, call);
  return whole;
}

const CONSTANTS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);

function evaluate(node: TemplateNode, scope: Scope): Value {
  countSteps();
  switch (node.type) {
    case "Identifier": {
      const name = as(node, "Identifier").value;
      return CONSTANTS.has(name) ? CONSTANTS.get(name) : scope.get(name);
    }
    case "IntegerLiteral":
    case "FloatLiteral":
    case "StringLiteral":
      return as(node, "Literal").value;
    case "ArrayLiteral":
      return as(node, "List").value.map((one) => evaluate(one, scope));
    case "TupleLiteral":
      return Tuple.from(as(node, "List").value.map((one) => evaluate(one, scope)));
    case "ObjectLiteral":
      return new Map(
        [...as(node, "ObjectLiteral").value].map(([key, value]) => [
          evaluate(key, scope),
          evaluate(value, scope),
        ]),
      );
    case "MemberExpression":
      return member(as(node, "MemberExpression"), scope);
    case "CallExpression": {
      const { callee, args } = as(node, "CallExpression");
      return callValue(evaluate(callee, scope), ...callArguments(args, scope), callee);
    }
    case "BinaryExpression":
      return binary(as(node, "BinaryExpression"), scope);
    case "UnaryExpression": {
      const { operator, argument } = as(node, "UnaryExpression");
      const value = evaluate(argument, scope);
      if (operator.value === "not") return !isTrue(value);
      return operator.value === "-" ? -numberOf(value, operator.value) : numberOf(value, operator.value);
    }
    case "FilterExpression": {
      const { operand, filter } = as(node, "FilterExpression");
      return applyFilter(filter, evaluate(operand, scope), scope);
    }
    case "TestExpression": {
      const { operand, negate, test } = as(node, "TestExpression");
      return testNamed(test.value)(evaluate(operand, scope), []) !== negate;
    }
    case "SelectExpression": {
      const { lhs, test } = as(node, "SelectExpression");
      return isTrue(evaluate(test, scope)) ? evaluate(lhs, scope) : undefined;
    }
    case "Ternary": {
      const { condition, trueExpr, falseExpr } = as(node, "Ternary");
      return evaluate(isTrue(evaluate(condition, scope)) ? trueExpr : falseExpr, scope);
    }
    default:
      throw new TemplateFault(`cannot evaluate '${node.type}'`);
  }
}

function member({ object, property, computed }: Nodes["MemberExpression"], scope: Scope): Value {
  const owner = evaluate(object, scope);
  if (computed && property.type === "SliceExpression")
    return slice(owner, as(property, "SliceExpression"), scope);
  const key = computed ? evaluate(property, scope) : as(property, "Identifier").value;
  if (owner === undefined) throw new TemplateFault(`'${nameOf(object)}' is undefined`);
  if (owner instanceof Members) return owner.values.get(printed(key));
  // A name after a dot is a method first, and one in brackets a member first.
  const method = typeof key === "string" ? () => methodOf(owner, key) : () => undefined;
  if (isDict(owner)) return computed && owner.has(key) ? owner.get(key) : (method() ?? owner.get(key));
  if (typeof key === "number" && (Array.isArray(owner) || typeof owner === "string")) {
    return (typeof owner === "string" ? iterated(owner) : owner).at(key);
  }
  return method();
}

function slice(owner: Value, { start, stop, step }: Nodes["SliceExpression"], scope: Scope): Value {
  const bound = (node: TemplateNode | undefined) => {
    const value = node && evaluate(node, scope);
    return value === null || value === undefined ? undefined : Math.trunc(toNumber(value)) || 0;
  };
  const items = iterated(owner);
  const by = bound(step) ?? 1;
  if (by === 0) throw new TemplateFault("slice step cannot be zero");
  const { length } = items;
  const clip = (value: number, low: number, high: number) =>
    Math.min(Math.max(value < 0 ? value + length : value, low), high);
  const [low, high] = by > 0 ? [0, length] : [-1, length - 1];
  const from = bound(start);
  const to = bound(stop);
  const first = from === undefined ? (by > 0 ? 0 : length - 1) : clip(from, low, high);
  const end = to === undefined ? (by > 0 ? length : -1) : clip(to, low, high);
  const taken: Value[] = [];
  countBytes(8 * Math.max(0, (end - first) / by));
  for (let i = first; by > 0 ? i < end : i > end; i += by) taken.push(items[i]);
  if (typeof owner === "string") return taken.join("");
  return owner instanceof Tuple ? Tuple.from(taken) : taken;
}

function callArguments(nodes: Body, scope: Scope): [Value[], Map<string, Value>] {
  const args: Value[] = [];
  const named = new Map<string, Value>();
  for (const node of nodes) {
    if (node.type === "KeywordArgumentExpression") {
      const { key, value } = as(node, "KeywordArgumentExpression");
      named.set(key.value, evaluate(value, scope));
    } else if (node.type === "SpreadExpression") {
      const given = iterated(evaluate(as(node, "SpreadExpression").argument, scope));
      countBytes(8 * given.length);
      for (const one of given) args.push(one);
    } else if (node.type === "KeywordSpreadExpression") {
      const given = evaluate(as(node, "SpreadExpression").argument, scope);
      if (isDict(given)) for (const [key, value] of given) named.set(printed(key), value);
    } else args.push(evaluate(node, scope));
  }
  return [args, named];
}

function callValue(
  callee: Value,
  args: readonly Value[],
  named: ReadonlyMap<string, Value>,
  node: TemplateNode,
): Value {
  if (isCallable(callee)) return callee(args, named);
  const what =
    callee === undefined ? "is undefined" : `is not callable: it is of the type ${typeName(callee)}`;
  throw new TemplateFault(`'${nameOf(node)}' ${what}`);
}

function nameOf(node: TemplateNode): string {
  if (node.type === "Identifier") return as(node, "Identifier").value;
  if (node.type !== "MemberExpression") return node.type;
  const { object, property } = as(node, "MemberExpression");
  return `${nameOf(object)}.${nameOf(property)}`;
}

function applyFilter(filter: TemplateNode, value: Value, scope: Scope): Value {
  if (filter.type === "Identifier") return filterNamed(as(filter, "Identifier").value)(value, [], new Map());
  const { callee, args } = as(filter, "CallExpression");
  return filterNamed(as(callee, "Identifier").value)(value, ...callArguments(args, scope));
}

function binary({ operator, left, right }: Nodes["BinaryExpression"], scope: Scope): Value {
  const a = evaluate(left, scope);
  if (operator.value === "and") return isTrue(a) ? evaluate(right, scope) : a;
  if (operator.value === "or") return isTrue(a) ? a : evaluate(right, scope);
  const b = evaluate(right, scope);
  switch (operator.value) {
    case "~":
      return appended(printed(a), printed(b));
    case "==":
      return isEqual(a, b);
    case "!=":
      return !isEqual(a, b);
    case "in":
      return contains(b, a);
    case "not in":
      return !contains(b, a);
    case "<":
      return compare(a, b) < 0;
    case "<=":
      return compare(a, b) <= 0;
    case ">":
      return compare(a, b) > 0;
    case ">=":
      return compare(a, b) >= 0;
    case "+":
      return sum(a, b);
    default:
      return product(operator.value, a, b);
  }
}

/** Joins two texts. The longer one is not copied, so a text that grows piece by piece costs its pieces. */
function appended(a: string, b: string): string {
  countBytes(Math.min(a.length, b.length) + 16);
  return a + b;
}

function sum(a: Value, b: Value): Value {
  if (typeof a === "string" && typeof b === "string") return appended(a, b);
  if (Array.isArray(a) && Array.isArray(b) && a instanceof Tuple === b instanceof Tuple) {
    countBytes(8 * (a.length + b.length));
    return a instanceof Tuple ? Tuple.from([...a, ...b]) : [...a, ...b];
  }
  if (isNumeric(a) && isNumeric(b)) return Number(a) + Number(b);
  if (typeof a === "string") throw new JoinFault(`can only concatenate str (not "${typeName(b)}") to str`);
  const types = `'${typeName(a)}' and '${typeName(b)}'`;
  throw new TemplateFault(`unsupported operand type(s) for +: ${types}`);
}

function product(operator: string, a: Value, b: Value): Value {
  if (operator === "*" && typeof b === "number" && (typeof a === "string" || Array.isArray(a))) {
    const times = a.length === 0 ? 0 : Math.max(0, Math.trunc(b) || 0);
    countBytes((typeof a === "string" ? 1 : 8) * a.length * times);
    return typeof a === "string" ? a.repeat(times) : Array.from({ length: times }, () => a).flat(1);
  }
  if (operator === "%" && typeof a === "string") {
    const values = b instanceof Tuple ? b : [b];
    let next = 0;
    countBytes(a.length);
    return a.replace(/%[sd%]/g, (one) => {
      const text = one === "%%" ? "%" : printed(values[next++]);
      countBytes(text.length);
      return text;
    });
  }
  const [x, y] = [numberOf(a, operator), numberOf(b, operator)];
  if (y === 0 && "/%".includes(operator.charAt(0))) throw new TemplateFault("division by zero");
  switch (operator) {
    case "-":
      return x - y;
    case "*":
      return x * y;
    case "/":
      return x / y;
    case "//":
      return Math.floor(x / y);
    case "%":
      return x - y * Math.floor(x / y);
    case "**":
      return x ** y;
    default:
      throw new TemplateFault(`unknown operator '${operator}'`);
  }
}

function numberOf(value: Value, operator: string): number {
  if (isNumeric(value)) return Number(value);
  throw new TemplateFault(`unsupported operand type for ${operator}: '${typeName(value)}'`);
}
