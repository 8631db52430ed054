/*
 * Methods decorated with TypeScript's `experimentalDecorators`. Such a decorator gets the prototype, the name and the
 * property descriptor of the method. It cannot run code for each object. So it replaces the method by an accessor that
 * binds the method when it is read from an object.
 */

/** Arguments of a classic method decorator: the prototype, or the class of a static method, then name and property. */
export type ClassicArguments = readonly [
  target: object,
  name: string | symbol,
  descriptor: PropertyDescriptor | undefined,
];

/** A decorated method that is not bound to an object yet. */
export interface UnboundMethod {
  readonly method: object;
  readonly boundTo: (owner: object) => object;
}

/** Key under which an accessor keeps its method, for the next decorator. Copies of the library share it. */
const methodKey = Symbol.for("tritonjs.classicMethod");

/** The method of a property, before or after other decorators; undefined for a property that is not a method. */
export function methodOf({ value, get }: PropertyDescriptor): unknown {
  return get === undefined ? value : (get as { readonly [methodKey]?: unknown })[methodKey];
}

/** The property of a decorated method. Each object gets its own bound method, which stays the same. */
export function accessorOf(name: string | symbol, { method, boundTo }: UnboundMethod): PropertyDescriptor {
  const methods = new WeakMap<object, object>();
  function get(this: object): object {
    if (isPrototype(this)) return method;
    let own = methods.get(this);
    if (own === undefined) {
      own = boundTo(this);
      methods.set(this, own);
    }
    return own;
  }
  Object.defineProperty(get, methodKey, { value: method });
  return {
    configurable: true,
    enumerable: false,
    get,
    // Methods can be replaced, for example by the spies of test runners.
    set(this: object, value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}

function isPrototype(owner: object): boolean {
  return Object.hasOwn(owner, "constructor") && owner.constructor.prototype === owner;
}
