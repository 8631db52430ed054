/*
 * The inner loop of filter-banks.ts: log mel filter banks, of two frames at a time. Each vector has a number of one
 * frame beside that of the other, so that no step moves numbers between lanes, and a frame's values do not depend on
 * its neighbour. Double precision up to the powers: with single precision, bands that hold almost no energy beside a
 * tone are wrong by 2e-3. Powers, their sums and logarithms are in single precision, and two bands share a vector.
 * packages/backends/scripts/build-filter-banks.mjs compiles it.
 */
#include <stdint.h>
#include <wasm_simd128.h>

#define LEAST 1.1920928955078125e-07f
#define LN2 0.693147180559945f
/** Powers are at most this, so that sums of samples that no microphone makes are finite. */
#define MOST 1e30

/** Tables in the memory of the module, and working memory. filter-banks.ts writes it. */
struct banks {
    int32_t length, hop, half, mels;
    /** Window of each sample, halved: `join` adds where it should take means. */
    const double *window;
    /** For each result of a pass of 4 but the first: cos and sin. */
    const double *twiddles;
    /** The same for the angles that join the halves of the spectrum. */
    const double *turns;
    /** For each band: its first bin, and its number of pairs of bins. */
    const int32_t *first, *pairs;
    /** For each pair of bins: the weight of the first twice, then that of the second twice. */
    const v128_t *weights;
    v128_t *values, *next;
    /** Of each bin below half the rate, and zeros for one more. */
    float *powers;
};

typedef struct {
    v128_t real, imaginary;
} complex;

static inline v128_t add(v128_t a, v128_t b) { return wasm_f64x2_add(a, b); }
static inline v128_t subtract(v128_t a, v128_t b) { return wasm_f64x2_sub(a, b); }
static inline v128_t multiply(v128_t a, v128_t b) { return wasm_f64x2_mul(a, b); }
static inline complex plus(complex a, complex b) {
    return (complex){add(a.real, b.real), add(a.imaginary, b.imaginary)};
}
static inline complex minus(complex a, complex b) {
    return (complex){subtract(a.real, b.real), subtract(a.imaginary, b.imaginary)};
}
static inline complex product(complex a, complex b) {
    return (complex){subtract(multiply(a.real, b.real), multiply(a.imaginary, b.imaginary)),
                     add(multiply(a.real, b.imaginary), multiply(a.imaginary, b.real))};
}
/** A factor for both frames. */
static inline complex factor(const double *at) {
    return (complex){wasm_v128_load64_splat(at), wasm_v128_load64_splat(at + 1)};
}
/** A product with -i. */
static inline complex quarter(complex x) { return (complex){x.imaginary, wasm_f64x2_neg(x.real)}; }

/** Windowed samples of two frames without their means, with pre-emphasis; then zeros. */
static void fill(const struct banks *b, const float *one, const float *other) {
    v128_t *values = b->values, sums[4] = {};
    int32_t length = b->length, i = 0;
    for (; i + 3 < length; i += 4) {
        v128_t left = wasm_v128_load(one + i), right = wasm_v128_load(other + i);
        v128_t low = wasm_i32x4_shuffle(left, right, 0, 4, 1, 5), high = wasm_i32x4_shuffle(left, right, 2, 6, 3, 7);
        v128_t samples[4] = {low, wasm_i64x2_shuffle(low, low, 1, 1), high, wasm_i64x2_shuffle(high, high, 1, 1)};
        for (int32_t k = 0; k < 4; k++) {
            values[i + k] = wasm_f64x2_promote_low_f32x4(samples[k]);
            sums[k] = add(sums[k], values[i + k]);
        }
    }
    for (; i < length; i++) {
        values[i] = wasm_f64x2_make(one[i], other[i]);
        sums[0] = add(sums[0], values[i]);
    }
    v128_t emphasis = wasm_f64x2_splat(0.97), before = values[0];
    v128_t total = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
    v128_t share = multiply(total, wasm_f64x2_splat((1 - 0.97) / length));
    for (i = 0; i < length; i++) {
        v128_t sample = values[i], value = subtract(subtract(sample, multiply(emphasis, before)), share);
        values[i] = multiply(value, wasm_v128_load64_splat(b->window + i));
        before = sample;
    }
    for (; i < 2 * b->half; i++) values[i] = wasm_f64x2_splat(0);
}

/** The results of the p-th values of a pass, which have factors but for p = 0. */
static inline void pass(const complex *from, complex *to, int32_t step, int32_t groups, const double *by) {
    complex factors[3];
    for (int32_t k = 0; by && k < 3; k++) factors[k] = factor(by + 2 * k);
    for (int32_t group = 0; group < groups; group++, from++, to++) {
        complex a = from[0], c = from[step], e = from[2 * step], g = from[3 * step];
        complex even = plus(a, e), even2 = minus(a, e), odd = plus(c, g), odd2 = quarter(minus(c, g));
        to[0] = plus(even, odd);
        complex results[3] = {plus(even2, odd2), minus(even, odd), minus(even2, odd2)};
        for (int32_t k = 0; k < 3; k++) to[(k + 1) * groups] = by ? product(results[k], factors[k]) : results[k];
    }
}

/** A Fourier transform by Stockham's method, as in fourier-transform.ts; returns where the result is. */
static const complex *transform(const struct banks *b) {
    complex *values = (complex *)b->values, *next = (complex *)b->next;
    const double *by = b->twiddles;
    int32_t length = b->half, groups = 1;
    while (length >= 4) {
        length >>= 2;
        int32_t step = groups * length;
        pass(values, next, step, groups, 0);
        for (int32_t p = 1; p < length; p++, by += 6) {
            pass(values + p * groups, next + 4 * p * groups, step, groups, by);
        }
        groups <<= 2;
        complex *result = next;
        next = values;
        values = result;
    }
    if (length == 2) {
        for (int32_t group = 0; group < groups; group++) {
            next[group] = plus(values[group], values[group + groups]);
            next[group + groups] = minus(values[group], values[group + groups]);
        }
        values = next;
    }
    return values;
}

static inline void power(const struct banks *b, int32_t bin, complex x, double scale) {
    v128_t square = add(multiply(x.real, x.real), multiply(x.imaginary, x.imaginary));
    if (scale != 1) square = multiply(square, wasm_f64x2_splat(scale));
    square = wasm_f64x2_pmin(square, wasm_f64x2_splat(MOST));
    wasm_v128_store64_lane(b->powers + 2 * bin, wasm_f32x4_demote_f64x2_zero(square), 0);
}

/** The power of each bin below half the rate, from a transform of half the size: two mirrored bins at a time. */
static void join(const struct banks *b, const complex *values) {
    int32_t half = b->half;
    power(b, 0, (complex){add(values[0].real, values[0].imaginary), wasm_f64x2_splat(0)}, 4);
    if (half == 1) return;
    power(b, half / 2, values[half / 2], 4);
    for (int32_t bin = 1; bin < half / 2; bin++) {
        complex x = values[bin], y = {values[half - bin].real, wasm_f64x2_neg(values[half - bin].imaginary)};
        complex even = plus(x, y), far = product(quarter(minus(x, y)), factor(b->turns + 2 * bin));
        power(b, bin, plus(even, far), 1);
        power(b, half - bin, minus(even, far), 1);
    }
}

/** The natural logarithms of normal numbers above 0: of a power of two, and of a number from 0.7 to 1.4. */
static inline v128_t logarithm(v128_t x) {
    v128_t bits = wasm_i32x4_sub(x, wasm_i32x4_splat(0x3f3504f3));
    v128_t exponent = wasm_f32x4_convert_i32x4(wasm_i32x4_shr(bits, 23));
    v128_t mantissa = wasm_i32x4_add(wasm_v128_and(bits, wasm_i32x4_splat(0x7fffff)), wasm_i32x4_splat(0x3f3504f3));
    v128_t one = wasm_f32x4_splat(1);
    v128_t r = wasm_f32x4_div(wasm_f32x4_sub(mantissa, one), wasm_f32x4_add(mantissa, one));
    v128_t square = wasm_f32x4_mul(r, r), series = wasm_f32x4_splat(2.0f / 7);
    const float terms[3] = {2.0f / 5, 2.0f / 3, 2};
    for (int32_t k = 0; k < 3; k++) {
        series = wasm_f32x4_add(wasm_f32x4_mul(series, square), wasm_f32x4_splat(terms[k]));
    }
    return wasm_f32x4_add(wasm_f32x4_mul(exponent, wasm_f32x4_splat(LN2)), wasm_f32x4_mul(series, r));
}

/** The energy of a band: of one frame in the lanes 0 and 2, of the other in the lanes 1 and 3. */
static inline v128_t energy(const struct banks *b, int32_t mel, const v128_t **weights) {
    const float *powers = b->powers + 2 * b->first[mel];
    v128_t total = wasm_f32x4_splat(0);
    for (int32_t pair = b->pairs[mel]; pair > 0; pair--, powers += 4) {
        total = wasm_f32x4_add(total, wasm_f32x4_mul(*(*weights)++, wasm_v128_load(powers)));
    }
    return total;
}

static void sum(const struct banks *b, float *one, float *other) {
    const v128_t *weights = b->weights;
    for (int32_t mel = 0; mel < b->mels; mel += 2) {
        int32_t both = mel + 1 < b->mels;
        v128_t first = energy(b, mel, &weights), second = both ? energy(b, mel + 1, &weights) : first;
        v128_t total = wasm_f32x4_add(wasm_i32x4_shuffle(first, second, 0, 4, 1, 5),
                                      wasm_i32x4_shuffle(first, second, 2, 6, 3, 7));
        v128_t bands = logarithm(wasm_f32x4_pmax(wasm_f32x4_splat(LEAST), total));
        if (both) {
            wasm_v128_store64_lane(one + mel, bands, 0);
            wasm_v128_store64_lane(other + mel, bands, 1);
        } else {
            one[mel] = wasm_f32x4_extract_lane(bands, 0);
            other[mel] = wasm_f32x4_extract_lane(bands, 2);
        }
    }
}

__attribute__((export_name("compute"))) void compute(
    const struct banks *b, const float *signal, int32_t frames, float *target) {
    for (int32_t frame = 0; frame < frames; frame += 2) {
        /* An odd frame at the end is computed twice. */
        int32_t other = frame + 1 < frames ? frame + 1 : frame;
        fill(b, signal + frame * b->hop, signal + other * b->hop);
        join(b, transform(b));
        sum(b, target + frame * b->mels, target + other * b->mels);
    }
}
