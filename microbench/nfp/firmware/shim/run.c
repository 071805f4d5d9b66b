/*
 * Runs a plugin over packets and prints what it did, one line a kind of command:
 * ARRAY COMMAND BYTES COUNT, then "value X" and "overlaps N".
 *
 * Usage: run CONTEXTS PACKETS FLOWS ELEMENTS [WORD...]: each of CONTEXTS threads
 * runs PACKETS packets, whose flows go round; WORDs are the table's.
 */
#include <pthread.h>
#include "plugin.c"
#include "arrays.h"

int shim_narrays = sizeof(shim_arrays) / sizeof(shim_arrays[0]);
__thread int shim_ctx;
uint64_t shim_counts[sizeof(shim_arrays) / sizeof(shim_arrays[0])][COMMANDS][33];
uint64_t shim_overlaps;

static const char *names[COMMANDS] = {
    "mem_read32", "mem_write32", "mem_read_atomic", "mem_write_atomic", "mem_incr32", "mem_add32",
    "mem_add64", "mem_test_set", "mem_test_add", "cls_read", "cls_write", "cls_add",
};

static uint32_t packets, flows, elements, value;
static pthread_barrier_t start;

static void *context(void *arg)
{
    shim_ctx = (int)(intptr_t)arg;
    pthread_barrier_wait(&start);
    for (uint32_t n = 0; n < packets; n++) {
        uint32_t flow = (n + (uint32_t)shim_ctx) % flows;
        PIF_PLUGIN_ipv4_T ip = { flow, flow % elements };

        if (pif_plugin_prof((uint32_t *)&ip, NULL) != PIF_PLUGIN_RETURN_FORWARD)
            exit(4);
    }
#ifdef STATELESS
    if (shim_ctx == 0)
        value = prof_value;
#endif
    return NULL;
}

int main(int argc, char **argv)
{
    int contexts = atoi(argv[1]);
    pthread_t t[64];

    packets = (uint32_t)atoi(argv[2]);
    flows = (uint32_t)atoi(argv[3]);
    elements = (uint32_t)atoi(argv[4]);
#ifdef WORDS
    for (int i = 5; i < argc; i++)
        prof_table[i - 5] = (uint32_t)strtoul(argv[i], NULL, 0);
    EXTRACTED_HEADERS_T stray[2] = { 0, 0 };
    pif_plugin_prof(stray, NULL); /* before the table is ready: does nothing */
    prof_table[15] = 1;
#endif
    pthread_barrier_init(&start, NULL, (unsigned)contexts);
    for (int i = 0; i < contexts; i++)
        pthread_create(&t[i], NULL, context, (void *)(intptr_t)i);
    for (int i = 0; i < contexts; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < shim_narrays; i++)
        for (int c = 0; c < COMMANDS; c++)
            for (int w = 0; w < 33; w++)
                if (shim_counts[i][c][w])
                    printf("%s %s %d %llu\n", shim_arrays[i].name, names[c], 4 * w, (unsigned long long)shim_counts[i][c][w]);
    printf("value %u\noverlaps %llu\n", value, (unsigned long long)shim_overlaps);
    return 0;
}
