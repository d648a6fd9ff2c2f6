/* A time of day that is off by what a file says. Preloaded into the processes of a drill; see clocks.py.
 *
 * The file is mapped and holds two numbers of nanoseconds: by how much all clocks are ahead, and by how much more this
 * one is if the variable DRILL_CLOCK_OF_ITS_OWN is set. Everything that is measured with the monotonic clock stays real,
 * sleeps and timeouts too. A wait until a time of day takes as long as it did when it began. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define TIME_OF_DAY 1000000000LL /* seconds: a later time is not one of the monotonic clock */

static const volatile int64_t *ahead;
static int is_own;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DRILL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, 2 * sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    is_own = getenv("DRILL_CLOCK_OF_ITS_OWN") != NULL;
    if (found != MAP_FAILED) ahead = found;
}

static int64_t off(void) { return ahead ? ahead[0] + (is_own ? ahead[1] : 0) : 0; }

static void move(struct timespec *at, int64_t by) {
    int64_t seconds = by / SECOND, rest = at->tv_nsec + by % SECOND;
    if (rest < 0) rest += SECOND, seconds--;
    if (rest >= SECOND) rest -= SECOND, seconds++;
    at->tv_sec += seconds;
    at->tv_nsec = rest;
}

static void *next(const char *name) {
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* of condition variables: dlsym may find an older one */
    return found ? found : dlsym(RTLD_NEXT, name);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = next("clock_gettime");
    int result = real ? real(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) move(at, off());
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
    if (base != TIME_UTC) return 0;
    return clock_gettime(CLOCK_REALTIME, at) ? 0 : base;
}

/* The real time, if `until` is a time of day. */
static const struct timespec *real_time(const struct timespec *until, struct timespec *kept) {
    if (!until || until->tv_sec < TIME_OF_DAY) return until;
    *kept = *until;
    move(kept, -off());
    return kept;
}

#define WAITS(name, parameters, ...)                             \
    int name parameters {                                        \
        static int(*real) parameters;                            \
        struct timespec kept;                                    \
        if (!real) real = next(#name);                           \
        return real(__VA_ARGS__);                                \
    }

WAITS(pthread_cond_timedwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict until),
      condition, mutex, real_time(until, &kept))
WAITS(pthread_cond_clockwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
       const struct timespec *restrict until),
      condition, mutex, clock, real_time(until, &kept))
WAITS(pthread_mutex_timedlock, (pthread_mutex_t *restrict mutex, const struct timespec *restrict until), mutex,
      real_time(until, &kept))
WAITS(sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict until), semaphore,
      real_time(until, &kept))
WAITS(sem_clockwait, (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until), semaphore,
      clock, real_time(until, &kept))
WAITS(cnd_timedwait, (cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until), condition,
      mutex, real_time(until, &kept))
WAITS(mtx_timedlock, (mtx_t *restrict mutex, const struct timespec *restrict until), mutex, real_time(until, &kept))
