/* Hooks of Node's module loader. A module that cannot resolve the library's packages gets those that these hooks belong to. */

/** The next hook, or Node's own resolution of a specifier. */
type NextResolve<R> = (specifier: string, context: { readonly parentURL?: string | undefined }) => R;

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

const LIBRARY = /^@tritonjs\/(core|protocol)(\/|$)/;

/** Hook for `register`, which runs it on a thread of its own. */
export async function resolve<R>(
  specifier: string,
  context: ResolveContext,
  next: NextResolve<Promise<R>>,
): Promise<R> {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (!LIBRARY.test(specifier)) throw error;
    return next(specifier, ownContext(context));
  }
}

export function resolveNow<R>(specifier: string, context: ResolveContext, next: NextResolve<R>): R {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!LIBRARY.test(specifier)) throw error;
    return next(specifier, ownContext(context));
  }
}

/** Context of this package, which can resolve itself by its own name, and its dependencies. */
function ownContext(context: ResolveContext): ResolveContext {
  return { ...context, parentURL: import.meta.url };
}
