/*
 * A meaning for the intrinsics that the generated plugins use, so that they
 * compile with gcc, run on this machine, and what they do can be counted. The
 * names and argument orders are those of flowenv, the library of Netronome's
 * SDK; the bodies are nicprof's.
 *
 * A command is counted by (array, intrinsic, bytes); arrays are those that the
 * test registers. One that a card would refuse (bytes beyond the command's
 * largest, an address that is not aligned or not in an array) ends the program.
 */
#ifndef SHIM_NFP_H
#define SHIM_NFP_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Micro-C's places and address sizes mean nothing here but one: local memory
 * is a context's own. */
#define __declspec(x)
#define __xread
#define __xwrite
#define __xrw
#define __mem40
#define __cls
#define __lmem __thread

struct shim_array {
    const char *name;
    uint8_t *from;
    uint64_t bytes;
    bool guarded; /* by a lock: counts entries that were not alone */
    uint32_t inside;
};

enum shim_command {
    MEM_READ32, MEM_WRITE32, MEM_READ_ATOMIC, MEM_WRITE_ATOMIC, MEM_INCR32, MEM_ADD32,
    MEM_ADD64, MEM_TEST_SET, MEM_TEST_ADD, CLS_READ, CLS_WRITE, CLS_ADD, COMMANDS
};

extern struct shim_array shim_arrays[];
extern int shim_narrays, shim_context;
extern __thread int shim_ctx;
extern uint64_t shim_counts[][COMMANDS][33]; /* by array, command and words */
extern uint64_t shim_overlaps;

/* Fields of the packet under way. */
extern __thread uint32_t shim_src, shim_dst;

static inline int __ctx(void) { return shim_ctx; }
static inline int __ME(void) { return 0; }

static inline void sleep(unsigned cycles)
{
    if (cycles >= 1u << 20) {
        fprintf(stderr, "sleep(%u): the counter has 20 bits\n", cycles);
        exit(3);
    }
    sched_yield();
}

/* shim_count counts a command and returns its array. */
static inline struct shim_array *shim_count(int command, const void *at, size_t bytes, size_t most, size_t align)
{
    for (int i = 0; i < shim_narrays; i++) {
        struct shim_array *a = &shim_arrays[i];
        uint64_t off = (uint64_t)((const uint8_t *)at - a->from);

        if ((const uint8_t *)at < a->from || off + bytes > a->bytes)
            continue;
        if (bytes == 0 || bytes > most || bytes % align || off % align) {
            fprintf(stderr, "command %d: %zu bytes at %s + %llu; at most %zu, aligned to %zu\n",
                    command, bytes, a->name, (unsigned long long)off, most, align);
            exit(3);
        }
        __atomic_fetch_add(&shim_counts[i][command][bytes / 4], 1, __ATOMIC_RELAXED);
        return a;
    }
    fprintf(stderr, "command %d: %zu bytes at an address that no array holds\n", command, bytes);
    exit(3);
}

static inline void shim_enter(struct shim_array *a)
{
    if (!a->guarded)
        return;
    if (__atomic_fetch_add(&a->inside, 1, __ATOMIC_SEQ_CST) != 0)
        __atomic_fetch_add(&shim_overlaps, 1, __ATOMIC_RELAXED);
    sched_yield();
}

static inline void shim_leave(struct shim_array *a)
{
    if (a->guarded)
        __atomic_fetch_sub(&a->inside, 1, __ATOMIC_SEQ_CST);
}

#define SHIM_MOVE(name, command, most, align, to, from)                        \
    static inline void name(void *data, void *addr, size_t size)               \
    {                                                                          \
        struct shim_array *a = shim_count(command, addr, size, most, align);   \
                                                                               \
        shim_enter(a);                                                         \
        memcpy(to, from, size);                                                \
        shim_leave(a);                                                         \
    }

SHIM_MOVE(mem_read32, MEM_READ32, 128, 4, data, addr)
SHIM_MOVE(mem_write32, MEM_WRITE32, 128, 4, addr, data)
SHIM_MOVE(cls_read, CLS_READ, 64, 4, data, addr)
SHIM_MOVE(cls_write, CLS_WRITE, 64, 4, addr, data)

#define SHIM_WORDS(name, command, most, type, statement)                       \
    static inline void name(void *data, void *addr, size_t size)               \
    {                                                                          \
        struct shim_array *a = shim_count(command, addr, size, most, sizeof(type)); \
        type *word = addr, *value = data;                                      \
                                                                               \
        shim_enter(a);                                                         \
        for (size_t i = 0; i < size / sizeof(type); i++)                       \
            statement;                                                         \
        shim_leave(a);                                                         \
    }

SHIM_WORDS(mem_read_atomic, MEM_READ_ATOMIC, 32, uint32_t, value[i] = __atomic_load_n(&word[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(mem_write_atomic, MEM_WRITE_ATOMIC, 32, uint32_t, __atomic_store_n(&word[i], value[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(mem_add32, MEM_ADD32, 16, uint32_t, __atomic_fetch_add(&word[i], value[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(mem_add64, MEM_ADD64, 32, uint64_t, __atomic_fetch_add(&word[i], value[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(mem_test_set, MEM_TEST_SET, 32, uint32_t, value[i] = __atomic_fetch_or(&word[i], value[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(mem_test_add, MEM_TEST_ADD, 16, uint32_t, value[i] = __atomic_fetch_add(&word[i], value[i], __ATOMIC_SEQ_CST))
SHIM_WORDS(cls_add, CLS_ADD, 16, uint32_t, __atomic_fetch_add(&word[i], value[i], __ATOMIC_SEQ_CST))

static inline void mem_incr32(void *addr)
{
    struct shim_array *a = shim_count(MEM_INCR32, addr, 4, 4, 4);

    shim_enter(a);
    __atomic_fetch_add((uint32_t *)addr, 1, __ATOMIC_SEQ_CST);
    shim_leave(a);
}

#endif
