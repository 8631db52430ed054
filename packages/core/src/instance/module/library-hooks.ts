/*
 * Hooks of Node's loader of modules. A module that does not find the library's packages gets those that run it.
 */

/** What the next hook, or Node itself, says about a specifier. */
type NextResolve<R> = (specifier: string, context: { readonly parentURL?: string | undefined }) => R;

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

const LIBRARY = /^@tritonjs\/(core|protocol)(\/|$)/;

/** For `register`: runs on a thread of its own. */
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

/** For `registerHooks`. */
export function resolveNow<R>(specifier: string, context: ResolveContext, next: NextResolve<R>): R {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!LIBRARY.test(specifier)) throw error;
    return next(specifier, ownContext(context));
  }
}

/** A package finds itself by its own name, and its dependencies. */
function ownContext(context: ResolveContext): ResolveContext {
  return { ...context, parentURL: import.meta.url };
}
