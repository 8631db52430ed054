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
static int counts[6], failure, refusal;

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
    case 46: return "all CUDA-capable devices are busy or unavailable";
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
  if (refusal) return refusal;
  if (!free_one || size > (1ul << 30)) return 2;
  snprintf(name, sizeof name, "/cudart-%d-%d", (int)getpid(), count++);
  int error = map(free_one, name, size, 1);
  if (!error) *to = free_one->at;
  if (!error) counts[0]++;
  return error;
}

int cudaFree(void *at) {
  Allocation *found = find(at);
  if (!found) return 1;
  munmap(found->at, found->size);
  if (found->owner) shm_unlink(found->name), counts[0]--;
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
  counts[ends[0] && ends[1] ? 5 : 4]++;
  return 0;
}

int cudaDeviceSynchronize(void) { return 0; }

int cudaHostAlloc(void **to, size_t size, unsigned flags) {
  (void)flags;
  if (refusal) return refusal;
  if (size > (1ul << 30) || posix_memalign(to, 4096, size)) return 2;
  counts[1]++;
  return 0;
}

int cudaFreeHost(void *at) { free(at); if (at) counts[1]--; return 0; }

int cudaMemset(void *at, int value, size_t size) {
  Allocation *found = find(at);
  if (!found || size > (size_t)(found->at + found->size - (char *)at)) return 1;
  memset(at, value, size);
  return 0;
}

/* Streams copy at once. Their handles are numbers, so that a wrong one is an error. */
int cudaStreamCreateWithFlags(uintptr_t *to, unsigned flags) {
  if (flags != 1) return 1;
  *to = 0x5000 + ++counts[3];
  return 0;
}

int cudaStreamDestroy(uintptr_t stream) { return (stream & ~0xfffUL) == 0x5000 ? 0 : 400; }

int cudaStreamSynchronize(uintptr_t stream) {
  if ((stream & ~0xfffUL) != 0x5000) return 400;
  return failure;
}

int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, uintptr_t stream) {
  if ((stream & ~0xfffUL) != 0x5000) return 400;
  if (failure) return failure;
  counts[2]++;
  return cudaMemcpy(to, from, size, kind);
}

int cudaMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                      int kind, uintptr_t stream) {
  int error = to_pitch < width || from_pitch < width;
  for (size_t i = 0; i < height && !error; i++) {
    error = cudaMemcpyAsync(to + i * to_pitch, from + i * from_pitch, width, kind, stream);
    if (i > 0) counts[2]--;
  }
  return error;
}

int cudaMemsetAsync(void *at, int value, size_t size, uintptr_t stream) {
  if ((stream & ~0xfffUL) != 0x5000) return 400;
  return failure ? failure : cudaMemset(at, value, size);
}

/*
 * For tests: allocations of the GPU, pinned allocations, copies of streams, streams so far; copies that begin or end in
 * memory of the CPU, and copies on the GPU.
 */
int standInCount(int which) { return counts[which]; }

/* For tests: the error of all later copies, and of later allocations. */
void standInFail(int copies, int allocations_) { failure = copies; refusal = allocations_; }

/* The driver's function lies in the same file here. */
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t at) {
  Allocation *found = find((void *)at);
  if (!found) return 1;
  *base = (uint64_t)found->at;
  *size = found->size;
  return 0;
}
