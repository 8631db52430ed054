/*
 * The inner loop of filter-banks.ts: log mel filter banks of frames, in double precision, two numbers at a time.
 * packages/backends/scripts/build-filter-banks.mjs compiles it.
 */
#include <stdint.h>
#include <wasm_simd128.h>

#define LEAST 1.1920928955078125e-07
#define LN2 0.6931471805599453

/** Tables in the memory of the module, and working memory. filter-banks.ts writes it. */
struct banks {
    int32_t length, hop, half, mels;
    /** Window of each sample. */
    const double *window;
    /** For each result of a pass of 4 but the first: cos twice, then -sin and sin. */
    const v128_t *twiddles;
    /** The same for the angles that join the halves of the spectrum. */
    const v128_t *turns;
    const int32_t *first, *end;
    const double *weights;
    /** For each part of the numbers from 1 to 2: the reciprocal of its middle, and its logarithm. */
    const double *reciprocals, *logarithms;
    v128_t *values, *next;
    double *powers;
};

static inline v128_t swapped(v128_t x) { return wasm_i64x2_shuffle(x, x, 1, 0); }

/** A complex product. */
static inline v128_t turned(v128_t x, const v128_t *by) {
    return wasm_f64x2_add(wasm_f64x2_mul(x, by[0]), wasm_f64x2_mul(swapped(x), by[1]));
}

static inline v128_t pair(const float *at) { return wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(at)); }

/** Windowed samples of a frame without their mean, with pre-emphasis; then zeros. */
static void fill(const struct banks *b, const float *signal) {
    int32_t length = b->length, i = 0;
    v128_t sum = wasm_f64x2_splat(0), other = sum;
    for (; i + 3 < length; i += 4) {
        sum = wasm_f64x2_add(sum, pair(signal + i));
        other = wasm_f64x2_add(other, pair(signal + i + 2));
    }
    sum = wasm_f64x2_add(sum, other);
    double total = wasm_f64x2_extract_lane(sum, 0) + wasm_f64x2_extract_lane(sum, 1);
    for (; i < length; i++) total += signal[i];
    double share = (1 - 0.97) * total / length;
    double *values = (double *)b->values;
    const double *window = b->window;
    values[0] = (signal[0] - 0.97 * signal[0] - share) * window[0];
    v128_t shares = wasm_f64x2_splat(share), emphasis = wasm_f64x2_splat(0.97);
    for (i = 1; i + 1 < length; i += 2) {
        v128_t before = wasm_f64x2_mul(emphasis, pair(signal + i - 1));
        v128_t value = wasm_f64x2_sub(wasm_f64x2_sub(pair(signal + i), before), shares);
        wasm_v128_store(values + i, wasm_f64x2_mul(value, wasm_v128_load(window + i)));
    }
    if (i < length) {
        values[i] = (signal[i] - 0.97 * signal[i - 1] - share) * window[i];
        i++;
    }
    for (; i < 2 * b->half; i++) values[i] = 0;
}

/** A Fourier transform by Stockham's method, as in fourier-transform.ts; returns where the result is. */
static const v128_t *transform(const struct banks *b) {
    v128_t *values = b->values, *next = b->next;
    const v128_t *by = b->twiddles;
    const v128_t minus = wasm_f64x2_make(0.0, -0.0);
    int32_t length = b->half, groups = 1;
    while (length >= 4) {
        length >>= 2;
        int32_t step = groups * length;
        const v128_t *from = values;
        v128_t *to = next;
        for (int32_t p = 0; p < length; p++, to += 3 * groups, by += 6) {
            for (int32_t group = 0; group < groups; group++, from++, to++) {
                v128_t a = from[0], c = from[step], e = from[2 * step], g = from[3 * step];
                v128_t even = wasm_f64x2_add(a, e), even2 = wasm_f64x2_sub(a, e);
                v128_t odd = wasm_f64x2_add(c, g);
                /* The difference of the odd values, turned by -90 degrees. */
                v128_t odd2 = wasm_v128_xor(swapped(wasm_f64x2_sub(c, g)), minus);
                to[0] = wasm_f64x2_add(even, odd);
                to[groups] = turned(wasm_f64x2_add(even2, odd2), by);
                to[2 * groups] = turned(wasm_f64x2_sub(even, odd), by + 2);
                to[3 * groups] = turned(wasm_f64x2_sub(even2, odd2), by + 4);
            }
        }
        groups <<= 2;
        v128_t *result = next;
        next = values;
        values = result;
    }
    if (length == 2) {
        for (int32_t group = 0; group < groups; group++) {
            next[group] = wasm_f64x2_add(values[group], values[group + groups]);
            next[group + groups] = wasm_f64x2_sub(values[group], values[group + groups]);
        }
        values = next;
    }
    return values;
}

static inline double power(v128_t x) {
    v128_t squares = wasm_f64x2_mul(x, x);
    return wasm_f64x2_extract_lane(squares, 0) + wasm_f64x2_extract_lane(squares, 1);
}

/** The power of each bin below half the rate, from a transform of half the size: two mirrored bins at a time. */
static void join(const struct banks *b, const v128_t *values) {
    const v128_t minus = wasm_f64x2_make(0.0, -0.0), halves = wasm_f64x2_splat(0.5);
    double *powers = b->powers;
    int32_t half = b->half;
    double first = wasm_f64x2_extract_lane(values[0], 0) + wasm_f64x2_extract_lane(values[0], 1);
    powers[0] = first * first;
    if (half == 1) return;
    powers[half / 2] = power(values[half / 2]);
    for (int32_t bin = 1; bin < half / 2; bin++) {
        v128_t x = values[bin], y = wasm_v128_xor(values[half - bin], minus);
        v128_t even = wasm_f64x2_mul(wasm_f64x2_add(x, y), halves);
        v128_t odd = wasm_f64x2_mul(wasm_v128_xor(swapped(wasm_f64x2_sub(x, y)), minus), halves);
        v128_t far = turned(odd, b->turns + 2 * bin);
        powers[bin] = power(wasm_f64x2_add(even, far));
        powers[half - bin] = power(wasm_f64x2_sub(even, far));
    }
}

/** The natural logarithm of a normal number above 0: of its power of two, of a number close to it, and of the rest. */
static inline double logarithm(const struct banks *b, double x) {
    int64_t bits;
    __builtin_memcpy(&bits, &x, 8);
    int32_t exponent = (int32_t)(bits >> 52) - 1023, row = (int32_t)(bits >> 45) & 127;
    bits = (bits & 0xfffffffffffffll) | 0x3ff0000000000000ll;
    double mantissa;
    __builtin_memcpy(&mantissa, &bits, 8);
    double r = mantissa * b->reciprocals[row] - 1;
    double series = r * (1 - r * (0.5 - r * (1.0 / 3 - r * (0.25 - 0.2 * r))));
    return exponent * LN2 + b->logarithms[row] + series;
}

static void sum(const struct banks *b, float *target) {
    const double *weights = b->weights;
    for (int32_t mel = 0; mel < b->mels; mel++) {
        int32_t bin = b->first[mel], end = b->end[mel];
        v128_t total = wasm_f64x2_splat(0);
        for (; bin + 1 < end; bin += 2, weights += 2) {
            v128_t product = wasm_f64x2_mul(wasm_v128_load(weights), wasm_v128_load(b->powers + bin));
            total = wasm_f64x2_add(total, product);
        }
        double band = wasm_f64x2_extract_lane(total, 0) + wasm_f64x2_extract_lane(total, 1);
        if (bin < end) band += *weights++ * b->powers[bin];
        target[mel] = (float)logarithm(b, band > LEAST ? band : LEAST);
    }
}

__attribute__((export_name("compute"))) void compute(
    const struct banks *b, const float *signal, int32_t frames, float *target) {
    for (int32_t frame = 0; frame < frames; frame++) {
        fill(b, signal + frame * b->hop);
        join(b, transform(b));
        sum(b, target + frame * b->mels);
    }
}
