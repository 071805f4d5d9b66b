/* What the C peers share: clocks, pinning, and the commands on standard input. */
#ifndef PEER_H
#define PEER_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }
static inline int64_t cpu_time(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* pin keeps the calling thread on one processor. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		die("sched_setaffinity");
}

/* command reads "word [number]" and says whether there was a line. */
static inline int command(char word[16], int64_t *number)
{
	char line[64];

	if (!fgets(line, sizeof line, stdin))
		return 0;
	*number = 0;
	if (sscanf(line, "%15s %ld", word, number) < 1)
		word[0] = 0;
	return 1;
}

#endif
