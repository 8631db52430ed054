/*
 * A stand-in for CUDA's runtime library: memory of the "GPU" is an object of shared memory, whose name is the handle for
 * other processes. It checks what CUDA checks, so a wrong handle or device is an error and not a crash.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEVICES = 2, MOST = 256 };

typedef struct { char reserved[64]; } Handle;
typedef struct { char name[40]; char *at; size_t size; int owner; } Allocation;

static Allocation allocations[MOST];
static __thread int device;

static Allocation *find(const void *at) {
  for (int i = 0; i < MOST; i++) {
    char *start = allocations[i].at;
    if (start && (char *)at >= start && (char *)at < start + allocations[i].size) return &allocations[i];
  }
  return NULL;
}

static Allocation *unused(void) {
  for (int i = 0; i < MOST; i++) if (!allocations[i].at) return &allocations[i];
  return NULL;
}

static int map(Allocation *to, const char *name, size_t size, int owner) {
  int fd = shm_open(name, O_RDWR | (owner ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) return 400;
  struct stat state;
  if (owner && ftruncate(fd, size) != 0) { close(fd); return 2; }
  if (fstat(fd, &state) != 0) { close(fd); return 400; }
  char *at = mmap(NULL, state.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return 2;
  snprintf(to->name, sizeof to->name, "%s", name);
  to->at = at;
  to->size = state.st_size;
  to->owner = owner;
  return 0;
}

const char *cudaGetErrorString(int error) {
  switch (error) {
    case 0: return "no error";
    case 1: return "invalid argument";
    case 2: return "out of memory";
    case 101: return "invalid device ordinal";
    case 400: return "invalid resource handle";
    default: return "unknown error";
  }
}

int cudaGetDeviceCount(int *count) { *count = DEVICES; return 0; }

int cudaSetDevice(int wanted) {
  if (wanted < 0 || wanted >= DEVICES) return 101;
  device = wanted;
  return 0;
}

int cudaMalloc(void **to, size_t size) {
  static int count;
  char name[40];
  Allocation *free_one = unused();
  if (!free_one || size > (1ul << 30)) return 2;
  snprintf(name, sizeof name, "/cudart-%d-%d", (int)getpid(), count++);
  int error = map(free_one, name, size, 1);
  if (!error) *to = free_one->at;
  return error;
}

int cudaFree(void *at) {
  Allocation *found = find(at);
  if (!found) return 1;
  munmap(found->at, found->size);
  if (found->owner) shm_unlink(found->name);
  memset(found, 0, sizeof *found);
  return 0;
}

int cudaIpcGetMemHandle(Handle *to, void *at) {
  Allocation *found = find(at);
  if (!found) return 1;
  memset(to, 0, sizeof *to);
  memcpy(to->reserved, "CUDA", 4);
  memcpy(to->reserved + 4, found->name, sizeof found->name);
  return 0;
}

int cudaIpcOpenMemHandle(void **to, Handle handle, unsigned flags) {
  char name[41] = {0};
  Allocation *free_one = unused();
  if (flags != 1) return 1;
  if (memcmp(handle.reserved, "CUDA", 4) != 0) return 400;
  memcpy(name, handle.reserved + 4, 40);
  if (!free_one) return 2;
  int error = map(free_one, name, 0, 0);
  if (!error) *to = free_one->at;
  return error;
}

int cudaIpcCloseMemHandle(void *at) {
  Allocation *found = find(at);
  return found && !found->owner ? cudaFree(at) : 1;
}

int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  if (kind != 4) return 1;
  Allocation *ends[] = {find(to), find(from)};
  const char *at[] = {to, from};
  if (!ends[0] && !ends[1]) return 1;
  for (int i = 0; i < 2; i++)
    if (ends[i] && size > (size_t)(ends[i]->at + ends[i]->size - at[i])) return 1;
  memcpy(to, from, size);
  return 0;
}

int cudaHostAlloc(void **to, size_t size, unsigned flags) {
  (void)flags;
  if (size > (1ul << 30)) return 2;
  return posix_memalign(to, 4096, size) ? 2 : 0;
}

int cudaFreeHost(void *at) { free(at); return 0; }

/* The driver's function lies in the same file here. */
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t at) {
  Allocation *found = find((void *)at);
  if (!found) return 1;
  *base = (uint64_t)found->at;
  *size = found->size;
  return 0;
}
