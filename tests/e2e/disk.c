/* Slows the disk of one process down, for tests: each sync takes as many milliseconds longer as the file says that NESTOR_TEST_DISK names.
   The file is read at each sync. Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *path = getenv("NESTOR_TEST_DISK");
    FILE *file = path ? fopen(path, "r") : NULL;
    long delay_ms = 0;
    if (!file)
        return;
    if (fscanf(file, "%ld", &delay_ms) == 1 && delay_ms > 0)
        usleep((useconds_t)delay_ms * 1000);
    fclose(file);
}

static int slow(const char *name, int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    wait_for_disk();
    return real(file);
}

int fsync(int file)
{
    return slow("fsync", file);
}

int fdatasync(int file)
{
    return slow("fdatasync", file);
}
