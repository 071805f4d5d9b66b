/*
 * chase BYTES ORDER LINE PAGE HUGE CPU SEED
 *
 * Latency of dependent loads. On standard input:
 *   place     maps BYTES anew and links their lines into one random cycle, in
 *             ORDER lines, page-local or pages (as package kernel of nicprof
 *             defines them); answers with the number of lines
 *   run NS    warms up (at most a lap), then follows the cycle for NS nanoseconds; answers with
 *             nanoseconds a step, and the wall and CPU nanoseconds of the run
 */
#define _GNU_SOURCE
#include "peer.h"
#include <sys/mman.h>

#define WARM_NEW 5000000000  /* most nanoseconds of a first lap in new memory */
#define WARM_AGAIN 100000000 /* and of the lap before each other run */
enum { CHUNK = 32768 };      /* steps between two looks at the clock */

static uint64_t state;

/* below returns a random number below n, by splitmix64. */
static uint64_t below(uint64_t n)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint64_t)((unsigned __int128)(z ^ (z >> 31)) * n >> 64);
}

static void shuffle(uint32_t *a, int64_t n)
{
	for (int64_t i = n - 1; i > 0; i--) {
		int64_t k = below(i + 1);
		uint32_t t = a[i];

		a[i] = a[k];
		a[k] = t;
	}
}

/* order_lines returns the lines of a lap in their order. */
static uint32_t *order_lines(const char *order, int64_t lines, int64_t per_page, int64_t *visited)
{
	int64_t pages = (lines + per_page - 1) / per_page, n = 0;
	uint32_t *page = malloc(pages * sizeof *page), *line = malloc(lines * sizeof *line);

	if (!page || !line)
		die("malloc");
	for (int64_t i = 0; i < pages; i++)
		page[i] = i;
	if (!strcmp(order, "lines")) {
		for (n = 0; n < lines; n++)
			line[n] = n;
		shuffle(line, n);
	} else if (!strcmp(order, "page-local")) {
		shuffle(page, pages);
		for (int64_t p = 0; p < pages; p++) {
			int64_t first = page[p] * per_page, begin = n;

			for (int64_t i = first; i < first + per_page && i < lines; i++)
				line[n++] = i;
			shuffle(line + begin, n - begin);
		}
	} else if (!strcmp(order, "pages")) {
		for (int64_t p = 0; p < pages; p++) {
			int64_t first = p * per_page, have = lines - first;

			line[n++] = first + p % (have < per_page ? have : per_page);
		}
		shuffle(line, n);
	} else {
		fprintf(stderr, "no order %s\n", order);
		exit(2);
	}
	free(page);
	*visited = n;
	return line;
}

static __attribute__((noinline)) void **chase(void **p, int64_t steps)
{
	for (; steps > 0; steps--)
		p = (void **)*p;
	return p;
}

int main(int argc, char **argv)
{
	enum { HUGE_PAGE = 2 << 20 };
	char *mapped = NULL, word[16];
	void **start = NULL;
	int64_t lines = 0, number, warm = 0;

	if (argc != 8) {
		fprintf(stderr, "usage: chase BYTES ORDER LINE PAGE HUGE CPU SEED\n");
		return 2;
	}
	int64_t bytes = atoll(argv[1]), line = atoll(argv[3]), page = atoll(argv[4]);
	int64_t length = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE;
	int huge = atoi(argv[5]);
	pin(atoi(argv[6]));
	state = strtoull(argv[7], NULL, 10);

	while (command(word, &number)) {
		if (!strcmp(word, "place")) {
			char *old = mapped;

			mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (mapped == MAP_FAILED)
				die("mmap");
			char *mem = (char *)(((uintptr_t)mapped + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
			madvise(mem, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
			uint32_t *order = order_lines(argv[2], bytes / line, page / line, &lines);
			for (int64_t k = 0; k < lines; k++)
				*(void **)(mem + order[k] * line) = mem + order[k + 1 < lines ? k + 1 : 0] * line;
			start = (void **)(mem + order[0] * line);
			free(order);
			if (old) /* only now, so that the new pages are others */
				munmap(old, length);
			warm = WARM_NEW;
			printf("%ld\n", lines);
		} else if (!strcmp(word, "run") && start) {
			void **p = start;
			int64_t begin = now();

			for (int64_t n = 0; n < lines && now() - begin < warm; n += CHUNK)
				p = chase(p, CHUNK);
			warm = WARM_AGAIN;
			int64_t cpu = cpu_time(), steps = 0, elapsed;
			begin = now();
			do {
				p = chase(p, CHUNK);
				steps += CHUNK;
				elapsed = now() - begin;
			} while (elapsed < number);
			cpu = cpu_time() - cpu;
			start = p; /* the next run goes on from here: every load counts */
			printf("%.6f %ld %ld\n", (double)elapsed / steps, elapsed, cpu);
		} else {
			fprintf(stderr, "no command %s\n", word);
			return 2;
		}
		fflush(stdout);
	}
	return 0;
}
