/* Moves the clock of the day of one process, for tests: it is as many seconds off as the file says that NESTOR_TEST_CLOCK names.
   The file is read again every now and then. Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
static _Atomic long off;
static _Atomic long looked;

int clock_gettime(clockid_t which, struct timespec *now)
{
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, now);
    if (which != CLOCK_REALTIME || result != 0)
        return result;
    if (looked != now->tv_sec) {
        looked = now->tv_sec;
        const char *path = getenv("NESTOR_TEST_CLOCK");
        FILE *file = path ? fopen(path, "r") : NULL;
        long read;
        if (file) {
            if (fscanf(file, "%ld", &read) == 1)
                off = read;
            fclose(file);
        }
    }
    now->tv_sec += off;
    return result;
}
