/* Delays fsync and fdatasync by NESTOR_LAB_SYNC_MICROS microseconds, as a slower disk would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void delay(void) {
    const char *text = getenv("NESTOR_LAB_SYNC_MICROS");
    long micros = text ? atol(text) : 0;
    struct timespec time = {micros / 1000000, micros % 1000000 * 1000};
    if (micros > 0) nanosleep(&time, 0);
}

#define SLOW(name)                                               \
    int name(int fd) {                                           \
        static int (*real)(int);                                 \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        delay();                                                 \
        return real(fd);                                         \
    }

SLOW(fsync)
SLOW(fdatasync)
