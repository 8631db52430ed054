import type { GrammarBudget } from "./grammar-budget.js";
import { isSchema, type Schema } from "./schema-keywords.js";

/** A schema that has a URI of its own, with the schemas inside it that have names. */
interface Resource {
  readonly uri: string;
  readonly schema: unknown;
  /** Schemas by `$anchor`, `$dynamicAnchor`, or an identifier of the older form `#name`. */
  readonly anchors: Map<string, unknown>;
  /** Schemas by `$dynamicAnchor`. */
  readonly dynamic: Map<string, unknown>;
}

/** Target of a reference. */
interface Referred {
  readonly schema: unknown;
  /** False if another schema takes its place in some calls, which a grammar cannot know. */
  readonly isCertain: boolean;
}

/** URI of a document without one. */
const NAMELESS = "schema://document/";
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;
const ONE_SCHEMA = [
  ...["additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"],
  ...["propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"],
];
const LISTS_OF_SCHEMAS = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const NAMED_SCHEMAS = [
  ...["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"],
];

/** Resolves `$ref`, `$dynamicRef` and `$recursiveRef` of a document. Other documents are never fetched. */
export class SchemaReferences {
  #root: Resource;
  readonly #resources = new Map<string, Resource>();
  /** The resource that each schema belongs to. */
  readonly #homes = new Map<unknown, Resource>();
  /** Up to draft 4, identifiers are in `id`. */
  readonly #isOld: boolean;
  /** Up to draft 7, nothing beside `$ref` counts. */
  readonly #refStandsAlone: boolean;

  /** @param budget counts the work with references */
  constructor(
    document: unknown,
    private readonly budget: GrammarBudget,
  ) {
    const draft = isSchema(document) ? String(document.$schema ?? "") : "";
    this.#isOld = draft === "" || /draft-0[1-4]\b/.test(draft);
    this.#refStandsAlone = /draft-0[1-7]\b/.test(draft);
    this.#root = this.#resource(NAMELESS, document);
    this.#visit(document, this.#root);
  }

  /** Targets of a schema's references, with their texts; undefined for a reference that leads nowhere. */
  *of(schema: Schema): Iterable<readonly [reference: string, found: Referred | undefined]> {
    const home = this.#homes.get(schema) ?? this.#root;
    for (const keyword of REFERENCES) {
      const reference = schema[keyword];
      if (reference === undefined) continue;
      const text = String(reference);
      if (keyword === "$recursiveRef") yield [text, this.#recursive(home)];
      else yield [text, this.#find(text, home, keyword === "$dynamicRef")];
    }
  }

  #find(reference: string, home: Resource, isDynamic: boolean): Referred | undefined {
    const [uri, fragment] = this.#resolved(reference, home.uri) ?? [];
    const resource = this.#resources.get(uri ?? "");
    if (resource === undefined || fragment === undefined) return undefined;
    if (fragment === "") return { schema: resource.schema, isCertain: true };
    if (fragment.startsWith("/")) return this.#at(resource, fragment.slice(1).split("/"));
    const schema = resource.anchors.get(fragment);
    if (schema === undefined) return undefined;
    if (!isDynamic || !resource.dynamic.has(fragment)) return { schema, isCertain: true };
    return this.#outermost(schema, ({ dynamic }) => dynamic.get(fragment));
  }

  #recursive(home: Resource): Referred {
    const anchored = ({ schema }: Resource) =>
      isSchema(schema) && schema.$recursiveAnchor === true ? schema : undefined;
    const { schema } = home;
    return anchored(home) === undefined ? { schema, isCertain: true } : this.#outermost(schema, anchored);
  }

  /** Every evaluation begins in the root, so that its anchor comes before all others. */
  #outermost(schema: unknown, anchored: (resource: Resource) => unknown): Referred {
    const first = anchored(this.#root);
    if (first !== undefined) return { schema: first, isCertain: true };
    this.budget.spend(this.#resources.size);
    const all = new Set([...this.#resources.values()].map(anchored).filter((one) => one !== undefined));
    return { schema, isCertain: all.size === 1 };
  }

  /** The value at a JSON pointer. */
  #at(resource: Resource, pointer: readonly string[]): Referred | undefined {
    let schema = resource.schema;
    let home = resource;
    this.budget.spend(pointer.length);
    for (const part of pointer) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof schema !== "object" || schema === null || !Object.hasOwn(schema, name)) return undefined;
      schema = schema[name as keyof typeof schema];
      home = this.#homes.get(schema) ?? home;
    }
    this.#visit(schema, home);
    return { schema, isCertain: true };
  }

  /** Names a schema and those inside it. Only keywords of schemas are followed: an `$id` in an `enum` is data. */
  #visit(from: unknown, within: Resource): void {
    const open: [unknown, Resource][] = [[from, within]];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [schema, outer] = next;
      this.budget.spend(1);
      if (!isSchema(schema) || this.#homes.has(schema)) continue;
      const home = this.#named(schema, outer);
      this.#homes.set(schema, home);
      for (const name of ONE_SCHEMA) open.push([schema[name], home]);
      for (const name of LISTS_OF_SCHEMAS) {
        const list = schema[name];
        if (Array.isArray(list)) for (const one of list) open.push([one, home]);
      }
      for (const name of NAMED_SCHEMAS) {
        const named = schema[name];
        if (isSchema(named)) for (const one of Object.values(named)) open.push([one, home]);
      }
    }
  }

  /** The resource of a schema: that around it, or its own if it has a URI. */
  #named(schema: Schema, outer: Resource): Resource {
    const id = schema.$id ?? (this.#isOld ? schema.id : undefined);
    let home = outer;
    if (typeof id === "string" && !(this.#refStandsAlone && schema.$ref !== undefined)) {
      const [uri, fragment] = this.#resolved(id, outer.uri) ?? [outer.uri, ""];
      if (uri !== outer.uri && (fragment === "" || fragment.startsWith("/")))
        home = this.#resource(uri, schema);
      else if (fragment !== "") outer.anchors.set(fragment, schema);
      if (schema === this.#root.schema) this.#root = home;
    }
    if (typeof schema.$anchor === "string") home.anchors.set(schema.$anchor, schema);
    if (typeof schema.$dynamicAnchor === "string") {
      home.anchors.set(schema.$dynamicAnchor, schema);
      home.dynamic.set(schema.$dynamicAnchor, schema);
    }
    return home;
  }

  #resolved(reference: string, base: string): ReturnType<typeof resolved> {
    this.budget.spend(4 + ((reference.length + base.length) >> 5));
    return resolved(reference, base);
  }

  #resource(uri: string, schema: unknown): Resource {
    this.budget.hold(400 + uri.length);
    const resource = { uri, schema, anchors: new Map(), dynamic: new Map() };
    if (!this.#resources.has(uri)) this.#resources.set(uri, resource);
    return resource;
  }
}

/** Splits a reference into its URI and its fragment. Undefined if the reference is not a URI. */
function resolved(reference: string, base: string): readonly [uri: string, fragment: string] | undefined {
  try {
    const url = new URL(reference, base);
    const fragment = decodeURIComponent(url.hash.slice(1));
    url.hash = "";
    return [url.href, fragment];
  } catch {
    return undefined;
  }
}
