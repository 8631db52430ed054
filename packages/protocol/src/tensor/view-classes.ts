import ndarray, { type NdArray } from "ndarray";
import type { Elements } from "./data-type.js";
import { interpretedView } from "./interpreted-view.js";
import type { Shape } from "./shape.js";

/** A class of the `ndarray` package, which makes one for each kind of elements and number of dimensions. */
type ViewClass = new (elements: Elements, ...numbers: number[]) => NdArray<Elements>;

/**
 * The classes by the constructor of their elements, then by number of dimensions; null if the class does not make the
 * expected array. `ndarray()` determines the kind of its elements at each call, which takes ten times as long as making
 * the array.
 */
const classes = new Map<unknown, (ViewClass | null)[]>();
for (const name of ["Int8", "Int16", "Int32", "Uint8", "Uint16", "Uint32", "Float32", "Float64"] as const) {
  classes.set(globalThis[`${name}Array`], []);
}
classes.set(BigInt64Array, []);
classes.set(BigUint64Array, []);

/** An ndarray over all elements, in row-major order. */
export function viewOf(elements: Elements, shape: Shape): NdArray<Elements> {
  const known = classes.get(elements.constructor);
  if (known === undefined) return byPackage(elements, shape);
  const View = known[shape.length];
  if (View) return make(View, elements, shape);
  const view = byPackage(elements, shape);
  if (View === undefined) known[shape.length] = classOf(view);
  return view;
}

/** Makes an ndarray with the package. Where generated code is forbidden, makes an array without it. */
export function byPackage(elements: Elements, shape: Shape): NdArray<Elements> {
  try {
    return ndarray<Elements>(elements, shape as number[]);
  } catch (error) {
    if (error instanceof EvalError) return interpretedView(elements, shape);
    throw error;
  }
}

function make(View: ViewClass, elements: Elements, shape: Shape): NdArray<Elements> {
  if (shape.length === 1) return new View(elements, shape[0]!, 1, 0);
  if (shape.length === 2) return new View(elements, shape[0]!, shape[1]!, shape[1]!, 1, 0);
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return new View(elements, ...shape, ...strides, 0);
}

/** The class of an ndarray, if it makes another ndarray with equal members. */
function classOf(view: NdArray<Elements>): ViewClass | null {
  const View = view.constructor as ViewClass;
  const { data, shape, stride, offset } = view;
  try {
    const other = make(View, data, shape);
    const isSame =
      other.data === data &&
      other.offset === offset &&
      same(other.shape, shape) &&
      same(other.stride, stride);
    return isSame ? View : null;
  } catch {
    return null;
  }
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((number, i) => number === b[i]);
}
