import type { serialization, Tensor } from "@tensorflow/tfjs";
import type { Tf } from "./tensorflow-runtime.js";

/** Class of a GRU whose reset gate comes after the product with the state: the default of Keras since TensorFlow 2. */
export const RESET_AFTER_GRU = "ResetAfterGRU";

/** Class of its cell, for layers of the class `RNN`. */
export const RESET_AFTER_CELL = "ResetAfterGRUCell";

type CellOptions = serialization.ConfigDict & {
  readonly units: number;
  readonly activation?: string;
  readonly recurrentActivation?: string;
  readonly useBias?: boolean;
};

const ready = new WeakSet<Tf>();

/**
 * Gives TensorFlow.js the two classes, because its own GRU computes only the older form. With the kernel W, the recurrent
 * kernel U and a bias b for each, a step computes:
 *
 *     z = sigmoid(x Wz + bz + h Uz + cz)
 *     r = sigmoid(x Wr + br + h Ur + cr)
 *     h' = z h + (1 - z) tanh(x Wh + bh + r (h Uh + ch))
 */
export function registerResetAfterGru(tf: Tf): void {
  if (ready.has(tf)) return;
  ready.add(tf);

  class Cell extends tf.layers.Layer {
    static className = RESET_AFTER_CELL;
    readonly stateSize: number;
    readonly #options: CellOptions;
    readonly #activate: (values: Tensor) => Tensor;
    readonly #gate: (values: Tensor) => Tensor;

    constructor(options: CellOptions) {
      super(options as object);
      this.#options = options;
      this.stateSize = options.units;
      this.#activate = activation(tf, options.activation ?? "tanh");
      this.#gate = activation(tf, options.recurrentActivation ?? "sigmoid");
    }

    override build(shape: (number | null)[]): void {
      const width = 3 * this.stateSize;
      const zeros = tf.initializers.zeros();
      this.addWeight("kernel", [shape.at(-1)!, width], undefined, zeros);
      this.addWeight("recurrent_kernel", [this.stateSize, width], undefined, zeros);
      if (this.#options.useBias !== false) this.addWeight("bias", [2, width], undefined, zeros);
      this.built = true;
    }

    override call(inputs: Tensor | Tensor[]): Tensor[] {
      return tf.tidy(() => {
        const [input, state] = inputs as [Tensor, Tensor];
        const [kernel, recurrent, bias] = this.weights.map((weight) => weight.read());
        let [given, kept] = [tf.dot(input, kernel!), tf.dot(state, recurrent!)];
        if (bias !== undefined) {
          const [first, second] = tf.unstack(bias);
          [given, kept] = [tf.add(given, first!), tf.add(kept, second!)];
        }
        const [z, r, h] = tf.split(given, 3, -1);
        const [oldZ, oldR, oldH] = tf.split(kept, 3, -1);
        const update = this.#gate(tf.add(z!, oldZ!));
        const reset = this.#gate(tf.add(r!, oldR!));
        const made = this.#activate(tf.add(h!, tf.mul(reset, oldH!)));
        const next = tf.add(made, tf.mul(update, tf.sub(state, made)));
        return [next, next];
      });
    }

    override getConfig(): serialization.ConfigDict {
      return { ...super.getConfig(), ...this.#options };
    }
  }

  class Layer extends tf.RNN {
    static override className = RESET_AFTER_GRU;
    readonly #options: CellOptions;

    constructor(options: CellOptions) {
      super({ ...options, cell: new Cell({ ...options, name: `${String(options.name)}_cell` }) as never });
      this.#options = options;
    }

    override getConfig(): serialization.ConfigDict {
      return { ...this.#options, ...super.getConfig() };
    }

    static override fromConfig<T extends serialization.Serializable>(
      cls: serialization.SerializableConstructor<T>,
      config: serialization.ConfigDict,
    ): T {
      return new cls(config);
    }
  }

  tf.serialization.registerClass(Cell as never);
  tf.serialization.registerClass(Layer as never);
}

function activation(tf: Tf, name: string): (values: Tensor) => Tensor {
  const layer = tf.layers.activation({ activation: name as never });
  return (values) => layer.apply(values) as Tensor;
}
