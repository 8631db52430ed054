/*
 * What Debian's C++ library asks of glibc, for a root with musl: nothing else of glibc is in it. Alpine has a C++ library
 * of its own and needs none of this. Built without headers, as the library that glibc's loader would be.
 */

extern unsigned long strftime_l(char *text, unsigned long size, const char *form, const void *time, void *locale);
extern long getrandom(void *bytes, unsigned long size, unsigned flags);

unsigned long __strftime_l(char *text, unsigned long size, const char *form, const void *time, void *locale) {
  return strftime_l(text, size, form, time, locale);
}

unsigned arc4random(void) {
  unsigned value = 0;
  getrandom(&value, sizeof value, 0);
  return value;
}

/* "There may be several threads." */
char __libc_single_threaded = 0;

/* "Not found": the unwinder then asks dl_iterate_phdr. */
int _dl_find_object(void *address, void *result) { return -1; }

/* Objects of a thread are not destroyed when it ends. */
int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library) { return 0; }

int __cpu_indicator_init(void) { return 0; }
unsigned __cpu_model[4];
