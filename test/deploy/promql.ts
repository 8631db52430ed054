import { parser } from "@prometheus-io/lezer-promql";

/** What a query asks of a metric. */
export interface AskedSeries {
  readonly metric: string;
  /** Labels that its matchers name. */
  readonly labels: readonly string[];
}

export interface AskedNames {
  readonly series: readonly AskedSeries[];
  /** Labels by which the query groups or joins. */
  readonly grouping: readonly string[];
}

/**
 * Reads the metrics and labels of a PromQL query.
 *
 * @throws Error for an invalid query
 */
export function namesOfQuery(query: string): AskedNames {
  const series: { metric: string; labels: string[] }[] = [];
  const grouping: string[] = [];
  const tree = parser.parse(query);
  tree.iterate({
    enter({ type, from, to, node }) {
      const text = query.slice(from, to);
      if (type.isError) throw new Error(`invalid PromQL at '${query.slice(from, from + 20)}': ${query}`);
      if (type.name === "VectorSelector") {
        const metric = node.getChild("Identifier");
        if (metric === null) throw new Error(`a selector without a metric: ${query}`);
        series.push({ metric: query.slice(metric.from, metric.to), labels: [] });
      }
      if (type.name === "LabelName") {
        const isGrouping = node.parent?.type.name === "GroupingLabels";
        if (isGrouping) grouping.push(text);
        else series.at(-1)!.labels.push(text);
      }
    },
  });
  return { series, grouping };
}

/** A value with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Values of all series at one time, in seconds, with the metric's name as the label `__name__`. */
export interface Scrape {
  readonly time: number;
  readonly samples: readonly Sample[];
}

/** The samples of a page of metrics, with further labels, as a scrape of Prometheus adds them. */
export function samplesOfPage(page: string, target: Readonly<Record<string, string>>): Sample[] {
  return [...page.matchAll(/^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = "", labels = "", value]) => ({
      labels: {
        __name__: name,
        ...target,
        ...Object.fromEntries(
          [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]),
        ),
      },
      value: Number(value),
    }),
  );
}

type Value = number | readonly Sample[];

/**
 * Evaluates the part of PromQL that the queries of `deploy` consist of: selectors, `rate`, `sum by` and `max by`, arithmetic
 * and comparisons between series of the same labels, `or`.
 *
 * @param scrapes oldest first; the query is evaluated at the time of the last
 * @throws Error for anything else
 */
export function evaluate(query: string, scrapes: readonly Scrape[]): readonly Sample[] {
  type Node = ReturnType<typeof parser.parse>["topNode"];
  const textOf = ({ from, to }: Node) => query.slice(from, to);
  const unquoted = (node: Node) => textOf(node).slice(1, -1);
  const now = scrapes.at(-1)!.time;

  const matches = (selector: Node) => {
    const name = textOf(selector.getChild("Identifier")!);
    const matchers = (selector.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? []).map(
      (matcher) => {
        const label = textOf(matcher.getChild("LabelName")!);
        const operator = textOf(matcher.getChild("MatchOp")!);
        const value = unquoted(matcher.getChild("StringLiteral")!);
        return ({ labels }: Sample) => {
          if (operator === "=") return (labels[label] ?? "") === value;
          if (operator === "!=") return (labels[label] ?? "") !== value;
          throw new Error(`a matcher that is not supported: ${textOf(matcher)}`);
        };
      },
    );
    return (sample: Sample) =>
      sample.labels.__name__ === name && matchers.every((matcher) => matcher(sample));
  };
  const keyOf = (
    labels: Sample["labels"],
    names = Object.keys(labels).filter((name) => name !== "__name__"),
  ) => JSON.stringify([...names].sort().map((name) => [name, labels[name] ?? ""]));

  function rate(matrix: Node): Sample[] {
    const minutes = /^(\d+)m$/.exec(textOf(matrix.getChild("DurationExpr")!));
    const isWanted = matches(matrix.getChild("VectorSelector")!);
    const since = now - 60 * Number(minutes![1]);
    const series = new Map<
      string,
      { first: number; last: number; labels: Sample["labels"]; times: number[] }
    >();
    for (const { time, samples } of scrapes.filter(({ time }) => time >= since)) {
      for (const sample of samples.filter(isWanted)) {
        const { __name__: _, ...labels } = sample.labels;
        const known = series.get(keyOf(labels));
        if (known === undefined) {
          series.set(keyOf(labels), { first: sample.value, last: sample.value, labels, times: [time] });
        } else {
          known.last = sample.value;
          known.times.push(time);
        }
      }
    }
    return [...series.values()]
      .filter(({ times }) => times.length > 1)
      .map(({ first, last, labels, times }) => ({
        labels,
        value: (last - first) / (times.at(-1)! - times[0]!),
      }));
  }

  function aggregate(node: Node): Sample[] {
    const operator = textOf(node.getChild("AggregateOp")!);
    const names = (
      node.getChild("AggregateModifier")?.getChild("GroupingLabels")?.getChildren("LabelName") ?? []
    ).map(textOf);
    const values = valueIn(node.getChild("FunctionCallBody")!.firstChild!) as readonly Sample[];
    const groups = new Map<string, { labels: Sample["labels"]; values: number[] }>();
    for (const { labels, value } of values) {
      const key = keyOf(labels, names);
      const kept = Object.fromEntries(
        names.filter((name) => name in labels).map((name) => [name, labels[name]!]),
      );
      const group = groups.get(key) ?? { labels: kept, values: [] };
      groups.set(key, group);
      group.values.push(value);
    }
    const joined: Readonly<Record<string, (values: readonly number[]) => number>> = {
      sum: (values) => values.reduce((total, value) => total + value, 0),
      max: (values) => Math.max(...values),
    };
    return [...groups.values()].map(({ labels, values }) => ({ labels, value: joined[operator]!(values) }));
  }

  const OPERATORS: Readonly<Record<string, (a: number, b: number) => number | undefined>> = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    ">": (a, b) => (a > b ? a : undefined),
    "> bool": (a, b) => (a > b ? 1 : 0),
  };

  function binary(node: Node): Value {
    const children: Node[] = [];
    for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
    const [left, ...rest] = children;
    const right = rest.pop()!;
    const operator = rest.map(textOf).join(" ").trim();
    const a = valueIn(left!);
    const b = valueIn(right);
    if (operator === "or") {
      const known = new Set((a as readonly Sample[]).map(({ labels }) => keyOf(labels)));
      return [
        ...(a as readonly Sample[]),
        ...(b as readonly Sample[]).filter(({ labels }) => !known.has(keyOf(labels))),
      ];
    }
    const apply = OPERATORS[operator];
    if (apply === undefined) throw new Error(`an operator that is not supported: ${textOf(node)}`);
    if (typeof a === "number" && typeof b === "number") return apply(a, b)!;
    if (typeof a === "number") return kept(b as readonly Sample[], (value) => apply(a, value));
    if (typeof b === "number") return kept(a, (value) => apply(value, b));
    const others = new Map(b.map(({ labels, value }) => [keyOf(labels), value]));
    return a.flatMap(({ labels, value }) => {
      const other = others.get(keyOf(labels));
      const result = other === undefined ? undefined : apply(value, other);
      return result === undefined ? [] : [{ labels, value: result }];
    });
  }
  const kept = (samples: readonly Sample[], apply: (value: number) => number | undefined) =>
    samples.flatMap(({ labels, value }) => {
      const result = apply(value);
      return result === undefined ? [] : [{ labels, value: result }];
    });

  function valueIn(node: Node): Value {
    switch (node.type.name) {
      case "NumberDurationLiteral":
        return Number(textOf(node));
      case "ParenExpr":
        return valueIn(node.firstChild!);
      case "VectorSelector":
        return scrapes
          .at(-1)!
          .samples.filter(matches(node))
          .map(({ labels: { __name__: _, ...labels }, value }) => ({ labels, value }));
      case "AggregateExpr":
        return aggregate(node);
      case "BinaryExpr":
        return binary(node);
      case "FunctionCall":
        if (textOf(node.getChild("FunctionIdentifier")!) === "rate") {
          return rate(node.getChild("FunctionCallBody")!.getChild("MatrixSelector")!);
        }
    }
    throw new Error(`an expression that is not supported, ${node.type.name}: ${textOf(node)}`);
  }

  const value = valueIn(parser.parse(query).topNode.firstChild!);
  return typeof value === "number" ? [{ labels: {}, value }] : value;
}
