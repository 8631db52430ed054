/*
 * `node packages/backends/scripts/write-tree-kernel.mjs [file]` assembles the loop that follows rows through trees, and
 * writes it to src/trees/kernel-bytes.ts. src/trees/forest.ts has the layout of the memory.
 *
 * Eight places are followed at a time: those of eight rows in a tree, or those of a row in eight trees. The processor
 * overlaps their loads, and a step has no branch that it could mispredict.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import wabt from "wabt";

const LANES = [0, 1, 2, 3, 4, 5, 6, 7];
const each = (write) => LANES.map(write).join("\n");
const joined = (operation, write) => LANES.map(write).reduce((one, next) => `(${operation} ${one} ${next})`);

/** Field of the node of a lane: position 0, limit 4, first child 8, leaf 12. */
const field = (k, offset) => `(i32.load offset=${offset} (local.get $place${k}))`;

/** Key of a lane's row at the position of its node. In a block, the key of the next row follows. */
const key = (k, inRows) =>
  `(i32.load offset=${inRows ? 4 * k : 0} (i32.add (local.get $row) ${field(k, 0)}))`;

/** Goes to the first child if $second is 0, else to the second one, 16 bytes on. */
const move = (k, second) =>
  `(local.set $place${k} (i32.add ${field(k, 8)} (i32.shl ${second} (i32.const 4))))`;

/** A row goes to the first child if its key is below the limit. */
const numericStep = (inRows) => (k) => move(k, `(i32.ge_s ${key(k, inRows)} ${field(k, 4)})`);

/**
 * A step of a model with categories. In a node with a set, $size is that of the set, and the limit is its address: an odd
 * one of a list, else one of bits. Other nodes test a bit of address 0 for nothing.
 */
const categoryStep = (inRows) => (k) =>
  `
  (local.set $key ${key(k, inRows)})
  (local.set $limit ${field(k, 4)})
  (local.set $size (i32.sub (i32.const -1) ${field(k, 12)}))
  (local.set $isSet (i32.gt_s (local.get $size) (i32.const 0)))
  (if (i32.and (local.get $isSet) (local.get $limit))
    (then (local.set $second (i32.eqz (call $isListed (local.get $limit) (local.get $size) (local.get $key)))))
    (else
      (local.set $bit (select (local.get $key) (i32.const 1)
        (i32.and (local.get $isSet) (i32.lt_u (local.get $key) (local.get $size)))))
      (local.set $second (select
        (i32.eqz (i32.and (i32.const 1) (i32.shr_u
          (i32.load8_u (i32.add (i32.mul (local.get $isSet) (local.get $limit)) (i32.shr_u (local.get $bit) (i32.const 3))))
          (i32.and (local.get $bit) (i32.const 7)))))
        (i32.ge_s (local.get $key) (local.get $limit))
        (local.get $isSet)))))
  ${move(k, "(local.get $second)")}`;

/** Takes $steps steps, then two at a time until all lanes are at leaves, which lead to themselves. */
const follow = (step) => `
  (block $found
    (loop $more
      (local.set $depth (i32.sub (local.get $depth) (local.get $steps)))
      (if (local.get $steps) (then
        (loop $next
          ${each(step)}
          (br_if $next (local.tee $steps (i32.sub (local.get $steps) (i32.const 1)))))))
      (br_if $found (i32.le_s (local.get $depth) (i32.const 0)))
      (br_if $found (i32.ge_s ${joined("i32.or", (k) => field(k, 12))} (i32.const 0)))
      (local.set $steps (select (local.get $depth) (i32.const 2) (i32.lt_s (local.get $depth) (i32.const 2))))
      (br $more)))`;

const followAny = (inRows) => `
  (if (i32.load (i32.const 20)) (then ${follow(categoryStep(inRows))}) (else ${follow(numericStep(inRows))}))`;

const LOCALS = `
  (local $trees i32) (local $end i32) (local $steps i32) (local $depth i32)
  (local $key i32) (local $limit i32) (local $size i32) (local $isSet i32) (local $bit i32) (local $second i32)
  ${each((k) => `(local $place${k} i32)`)}`;

/** Adds a value of a leaf to a sum, in single precision if the model does. */
const addValue = (sum, value) => `
  (local.set $value (f64.add (f64.load ${sum}) (f64.load (i32.add (local.get $leaves) ${value}))))
  (if (local.get $single) (then (local.set $value (f64.promote_f32 (f32.demote_f64 (local.get $value))))))
  (f64.store ${sum} (local.get $value))`;

const TEXT = `(module
  (import "env" "memory" (memory 1 65536 shared))

  ;; Whether a code is in a sorted list, whose address has its lowest bit set.
  (func $isListed (param $list i32) (param $size i32) (param $code i32) (result i32)
    (local $half i32)
    (local.set $list (i32.sub (local.get $list) (i32.const 1)))
    (block $one
      (loop $halve
        (br_if $one (i32.le_s (local.get $size) (i32.const 1)))
        (local.set $half (i32.shr_u (local.get $size) (i32.const 1)))
        (local.set $list (i32.add (local.get $list) (i32.shl (i32.mul (local.get $half)
          (i32.le_s (i32.load (i32.add (local.get $list) (i32.shl (local.get $half) (i32.const 2)))) (local.get $code)))
          (i32.const 2))))
        (local.set $size (i32.sub (local.get $size) (local.get $half)))
        (br $halve)))
    (i32.eq (i32.load (local.get $list)) (local.get $code)))

  ;; Adds the values of a leaf to the sums of a row.
  (func $add (param $sum i32) (param $leaf i32) (param $values i32)
    (local $single i32) (local $leaves i32) (local $value f64)
    (local.set $leaves (i32.load (i32.const 8)))
    (local.set $single (i32.load (i32.const 16)))
    (loop $next
      ${addValue("(local.get $sum)", "(local.get $leaf)")}
      (local.set $sum (i32.add (local.get $sum) (i32.const 8)))
      (local.set $leaf (i32.add (local.get $leaf) (i32.const 8)))
      (br_if $next (local.tee $values (i32.sub (local.get $values) (i32.const 1))))))

  ;; Adds all trees to eight rows, and to the next eight up to $rows, a multiple of eight.
  (func (export "addRows") (param $keys i32) (param $sums i32) (param $rows i32)
    (local $row i32) (local $last i32) (local $sum i32) (local $stride i32) (local $values i32)
    (local $single i32) (local $leaves i32) (local $value f64) ${LOCALS}
    (local.set $leaves (i32.load (i32.const 8)))
    (local.set $single (i32.load (i32.const 16)))
    (local.set $trees (i32.load (i32.const 0)))
    (local.set $end (i32.load (i32.const 4)))
    (local.set $stride (i32.load (i32.const 12)))
    (local.set $last (i32.add (local.get $keys) (i32.shl (local.get $rows) (i32.const 2))))
    (loop $tree
      (local.set $row (local.get $keys))
      (local.set $sum (i32.add (local.get $sums) (i32.load offset=12 (local.get $trees))))
      (local.set $values (i32.load offset=16 (local.get $trees)))
      (loop $eight
        ${each((k) => `(local.set $place${k} (i32.load (local.get $trees)))`)}
        (local.set $steps (i32.load offset=4 (local.get $trees)))
        (local.set $depth (i32.load offset=8 (local.get $trees)))
        ${followAny(true)}
        ${each(
          (k) => `
        (if (i32.eq (local.get $values) (i32.const 1))
          (then ${addValue("(local.get $sum)", field(k, 12))})
          (else (call $add (local.get $sum) ${field(k, 12)} (local.get $values))))
        (local.set $sum (i32.add (local.get $sum) (local.get $stride)))`,
        )}
        (br_if $eight (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 32))) (local.get $last))))
      (br_if $tree (i32.lt_u (local.tee $trees (i32.add (local.get $trees) (i32.const 32))) (local.get $end)))))

  ;; Adds all trees to one row, eight trees at a time. The leaves are added in the order of the trees.
  (func (export "addRow") (param $row i32) (param $sums i32) ${LOCALS}
    (local.set $trees (i32.load (i32.const 0)))
    (local.set $end (i32.load (i32.const 4)))
    (loop $eight
      ${each((k) => `(local.set $place${k} (i32.load offset=${32 * k} (local.get $trees)))`)}
      (local.set $steps (i32.load offset=20 (local.get $trees)))
      (local.set $depth (i32.load offset=24 (local.get $trees)))
      ${followAny(false)}
      ${each(
        (k) => `
      (call $add (i32.add (local.get $sums) (i32.load offset=${32 * k + 12} (local.get $trees))) ${field(k, 12)}
        (i32.load offset=${32 * k + 16} (local.get $trees)))`,
      )}
      (br_if $eight (i32.lt_u (local.tee $trees (i32.add (local.get $trees) (i32.const 256))) (local.get $end)))))
)`;

const assembled = (await wabt()).parseWat("tree-kernel.wat", TEXT, { threads: true });
const bytes = Buffer.from(assembled.toBinary({}).buffer);
const target = process.argv[2] ?? fileURLToPath(new URL("../src/trees/kernel-bytes.ts", import.meta.url));
writeFileSync(
  target,
  `/** WebAssembly of packages/backends/scripts/write-tree-kernel.mjs, which writes this file. */
export const TREE_KERNEL: string =
  "${bytes.toString("base64")}";
`,
);
console.log(`${target}: ${bytes.length} bytes of WebAssembly`);
