/*
 * contend KIND CPU...
 *
 * One thread on each CPU, all at one cache line. KIND:
 *   fetch-add       atomic addition of 1 to one word
 *   spin, ticket    a lock around an addition to a plain counter, released by a
 *                   sequentially consistent store; a waiter polls some thousand
 *                   times before it looks whether to do something else, as ours
 *   spin-tight, ticket-tight   the same, released by a release store and with
 *                   endless polls
 *   mutex           pthread_mutex
 *
 * On standard input:
 *   run NS    answers with operations a second of all threads together, those
 *             of the slowest and of the fastest thread, the part of the time in
 *             which a thread was not on its processor, and the operations done
 *             and counted, which differ if a lock let two in
 *
 * All threads work before the window of NS nanoseconds begins and after it
 * ends; only whole batches inside it count.
 */
#define _GNU_SOURCE
#include "peer.h"

#define ALONE __attribute__((aligned(256)))
enum { MAX = 1024, BATCH = 2048, LEAD = 2000000, TAIL = 1000000 };

/*
 * Each run takes other words of many: how fast a line moves between two cores
 * depends on its address, since that decides which slice of the last cache it
 * goes through.
 */
enum { WORDS = 1024 };
static struct { ALONE uint32_t held; } spins[WORDS], *spin;
static struct { ALONE uint32_t next; uint32_t serving; } tickets[WORDS], *ticket; /* both in one line, as in Go */
static struct { ALONE pthread_mutex_t mutex; } sleepers[WORDS], *sleeper;
static struct { ALONE uint64_t n; } counters[WORDS], *counter;
static struct { ALONE int threads; int ready; int64_t begin, window; } run;

static struct worker {
	ALONE pthread_t thread;
	int cpu;
	int64_t ops, first, last, all; /* counted in the window, its ends, and done in all */
	int64_t wall, busy;
	uint64_t found;
} worker[MAX];

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

static uint64_t fetch_add(int64_t n)
{
	uint64_t *word = &counter->n, sum = 0;

	for (; n >= 4; n -= 4) { /* four a step, as ours; batches are multiples of it */
		sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
		sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
		sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
		sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	}
	return sum;
}

/* await polls a word until it holds value, or some thousand times. */
static __attribute__((noinline)) void await(uint32_t *word, uint32_t value)
{
	for (int polls = 1000; __atomic_load_n(word, __ATOMIC_SEQ_CST) != value; relax())
		if (--polls == 0)
			return;
}

static uint64_t with_spin(int64_t n)
{
	uint32_t *held = &spin->held;
	uint64_t *word = &counter->n;

	for (; n > 0; n--) {
		while (__atomic_exchange_n(held, 1, __ATOMIC_SEQ_CST))
			do
				await(held, 0);
			while (__atomic_load_n(held, __ATOMIC_SEQ_CST));
		++*word;
		__atomic_store_n(held, 0, __ATOMIC_SEQ_CST);
	}
	return 0;
}

static uint64_t with_spin_tight(int64_t n)
{
	uint32_t *held = &spin->held;
	uint64_t *word = &counter->n;

	for (; n > 0; n--) {
		while (__atomic_exchange_n(held, 1, __ATOMIC_SEQ_CST))
			while (__atomic_load_n(held, __ATOMIC_SEQ_CST))
				relax();
		++*word;
		__atomic_store_n(held, 0, __ATOMIC_RELEASE);
	}
	return 0;
}

static uint64_t with_ticket(int64_t n)
{
	uint32_t *next = &ticket->next, *serving = &ticket->serving;
	uint64_t *word = &counter->n;

	for (; n > 0; n--) {
		uint32_t mine = __atomic_fetch_add(next, 1, __ATOMIC_SEQ_CST);

		while (__atomic_load_n(serving, __ATOMIC_SEQ_CST) != mine)
			await(serving, mine);
		++*word;
		__atomic_store_n(serving, *serving + 1, __ATOMIC_SEQ_CST);
	}
	return 0;
}

static uint64_t with_ticket_tight(int64_t n)
{
	uint32_t *next = &ticket->next, *serving = &ticket->serving;
	uint64_t *word = &counter->n;

	for (; n > 0; n--) {
		uint32_t mine = __atomic_fetch_add(next, 1, __ATOMIC_SEQ_CST);

		while (__atomic_load_n(serving, __ATOMIC_SEQ_CST) != mine)
			relax();
		++*word;
		__atomic_store_n(serving, *serving + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

static uint64_t with_mutex(int64_t n)
{
	for (; n > 0; n--) {
		pthread_mutex_lock(&sleeper->mutex);
		counter->n++;
		pthread_mutex_unlock(&sleeper->mutex);
	}
	return 0;
}

static const struct { const char *name; uint64_t (*batch)(int64_t n); } kinds[] = {
	{"fetch-add", fetch_add}, {"mutex", with_mutex},
	{"spin", with_spin}, {"spin-tight", with_spin_tight},
	{"ticket", with_ticket}, {"ticket-tight", with_ticket_tight},
};
static uint64_t (*batch)(int64_t n);

static void *work(void *arg)
{
	struct worker *w = arg;
	int64_t begin, end, t, from;

	pin(w->cpu);
	w->ops = w->first = w->last = w->all = 0;
	if (__atomic_add_fetch(&run.ready, 1, __ATOMIC_SEQ_CST) == run.threads)
		__atomic_store_n(&run.begin, now() + LEAD, __ATOMIC_SEQ_CST);
	while (!(begin = __atomic_load_n(&run.begin, __ATOMIC_SEQ_CST)))
		relax();
	end = begin + run.window;
	w->busy = -cpu_time();
	from = t = now();
	while (t < end + TAIL) {
		int64_t start = t;

		w->found += batch(BATCH);
		t = now();
		w->all += BATCH;
		if (start >= begin && t <= end) {
			if (!w->ops)
				w->first = start;
			w->ops += BATCH;
			w->last = t;
		}
	}
	w->wall = t - from;
	w->busy += cpu_time();
	return NULL;
}

int main(int argc, char **argv)
{
	char word[16];

	if (argc < 3 || argc - 2 > MAX) {
		fprintf(stderr, "usage: contend KIND CPU...\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (!strcmp(argv[1], kinds[i].name))
			batch = kinds[i].batch;
	if (!batch) {
		fprintf(stderr, "no kind %s\n", argv[1]);
		return 2;
	}
	run.threads = argc - 2;
	for (int i = 0; i < WORDS; i++)
		pthread_mutex_init(&sleepers[i].mutex, NULL);
	for (int i = 0; i < run.threads; i++)
		worker[i].cpu = atoi(argv[i + 2]);

	while (command(word, &run.window)) {
		double rate = 0, slowest = 0, fastest = 0, lost = 0;
		int64_t all = 0;

		if (strcmp(word, "run")) {
			fprintf(stderr, "no command %s\n", word);
			return 2;
		}
		spin = &spins[random() % WORDS];
		ticket = &tickets[random() % WORDS];
		sleeper = &sleepers[random() % WORDS];
		counter = &counters[random() % WORDS];
		counter->n = 0;
		run.ready = 0;
		run.begin = 0;
		for (int i = 0; i < run.threads; i++)
			if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
				die("pthread_create");
		for (int i = 0; i < run.threads; i++) {
			struct worker *w = &worker[i];

			pthread_join(w->thread, NULL);
			double own = w->ops ? w->ops * 1e9 / (w->last - w->first) : 0;
			double away = 1 - (double)w->busy / w->wall;
			rate += own;
			all += w->all;
			if (i == 0 || own < slowest)
				slowest = own;
			if (own > fastest)
				fastest = own;
			if (away > lost)
				lost = away;
		}
		printf("%.1f %.1f %.1f %.6f %ld %lu\n", rate, slowest, fastest, lost, all, (unsigned long)counter->n);
		fflush(stdout);
	}
	return 0;
}
