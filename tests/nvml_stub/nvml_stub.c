/*
 * A stub of libnvidia-ml.so.1 for tests: no driver, no GPU. It answers what the file says that the
 * environment's NVML_STUB_STATE names; the file is read at each call, and so may change meanwhile:
 *
 *   driver VERSION
 *   session N                                    another N: the driver was restarted
 *   gpu UUID MINOR TOTAL_MIB USED_MIB UTIL_PCT MIG NAME
 *   mig UUID GPU_INSTANCE COMPUTE_INSTANCE TOTAL_MIB USED_MIB NAME       of the gpu above
 *   process Compute|Graphics|MPSCompute PID MIB  of the gpu or mig above; -1 MiB: not available
 *   sample PID SM_PCT TIME_US                    of the gpu above
 *   fault FUNCTION|* NVMLRETURN [UUID]           UUID "*" or none: whatever it is called for
 *
 * GPUs have NVML's indexes in the order of the file. OLD=1 leaves out what drivers have got last of
 * what Pliant calls, OLD=2 more. Structures and numbers: NVML API Reference.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OLD
#define OLD 0
#endif

enum { GO_ON = -1, SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3,
       ALREADY_INITIALIZED = 5, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { DEVICES = 16, MOST = 32 };

struct process { char kind[16]; unsigned int pid; long long mib; };
struct process_info { unsigned int pid; unsigned long long bytes; unsigned int gpu, compute; };
struct sample { unsigned int pid; unsigned long long time_us; unsigned int sm, mem, enc, dec; };
struct memory { unsigned long long total, free, used; };
struct utilization { unsigned int gpu, memory; };
struct fault { char function[64]; int code; char uuid[64]; };

struct device {
    char uuid[64], name[96];
    unsigned int minor, util, mig_mode, gpu_instance, compute_instance;
    unsigned long long total_mib, used_mib;
    struct device *parent; /* of a MIG device */
    struct process processes[MOST];
    struct sample samples[MOST];
    unsigned int process_count, sample_count;
};

static struct device devices[DEVICES];
static struct fault faults[MOST];
static unsigned int device_count, fault_count;
static char driver[64];
static int session, opened = -1;

static void read_line(const char *line)
{
    static struct device *gpu;
    struct device *last = device_count ? &devices[device_count - 1] : NULL;
    struct device new = { .parent = NULL };
    struct process process;
    struct sample sample = { .pid = 0 };
    struct fault fault = { .uuid = "*" };

    if (sscanf(line, "driver %63s", driver) == 1 || sscanf(line, "session %d", &session) == 1)
        return;
    if (device_count < DEVICES &&
        sscanf(line, "gpu %63s %u %llu %llu %u %u %95[^\n]", new.uuid, &new.minor, &new.total_mib,
               &new.used_mib, &new.util, &new.mig_mode, new.name) == 7) {
        gpu = &devices[device_count++];
        *gpu = new;
    } else if (device_count && device_count < DEVICES &&
               sscanf(line, "mig %63s %u %u %llu %llu %95[^\n]", new.uuid, &new.gpu_instance,
                      &new.compute_instance, &new.total_mib, &new.used_mib, new.name) == 6) {
        new.parent = gpu;
        devices[device_count++] = new;
    } else if (last && last->process_count < MOST &&
               sscanf(line, "process %15s %u %lld", process.kind, &process.pid, &process.mib) == 3) {
        last->processes[last->process_count++] = process;
    } else if (last && last->sample_count < MOST &&
               sscanf(line, "sample %u %u %llu", &sample.pid, &sample.sm, &sample.time_us) == 3) {
        last->samples[last->sample_count++] = sample;
    } else if (fault_count < MOST &&
               sscanf(line, "fault %63s %d %63s", fault.function, &fault.code, fault.uuid) >= 2) {
        faults[fault_count++] = fault;
    } else {
        fprintf(stderr, "nvml stub: not understood: %s", line);
        abort();
    }
}

static void read_state(void)
{
    const char *path = getenv("NVML_STUB_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];

    if (!file) {
        fprintf(stderr, "nvml stub: NVML_STUB_STATE names no file\n");
        abort();
    }
    device_count = fault_count = 0;
    while (fgets(line, sizeof line, file))
        read_line(line);
    fclose(file);
}

/* What a call returns at once, GO_ON if nothing stands against it. */
static int enter(const char *function, const struct device *device)
{
    read_state();
    for (unsigned int i = 0; i < fault_count; i++)
        if ((strcmp(faults[i].function, "*") == 0 || strcmp(faults[i].function, function) == 0) &&
            (strcmp(faults[i].uuid, "*") == 0 ||
             (device && strcmp(faults[i].uuid, device->uuid) == 0)))
            return faults[i].code;
    return opened == session || strcmp(function, "nvmlInitWithFlags") == 0 ? GO_ON : UNINITIALIZED;
}

/* The n-th GPU, or the n-th MIG device of one. */
static struct device *nth(const struct device *parent, unsigned int n)
{
    for (unsigned int i = 0; i < device_count; i++)
        if (devices[i].parent == parent && n-- == 0)
            return &devices[i];
    return NULL;
}

static int text(char *to, unsigned int length, const char *from)
{
    return snprintf(to, length, "%s", from) < (int)length ? SUCCESS : INSUFFICIENT_SIZE;
}

/* A function of the library: with the prototype that a header would have. */
#define NVML(name, ...)                                                                            \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)
#define ENTER(device)                                                                              \
    do {                                                                                           \
        int code_ = enter(__func__, device);                                                       \
        if (code_ != GO_ON)                                                                      \
            return code_;                                                                          \
    } while (0)

NVML(nvmlInitWithFlags, unsigned int flags)
{
    (void)flags;
    ENTER(NULL);
    if (opened == session) /* NVML counts sessions; Pliant is to have one */
        return ALREADY_INITIALIZED;
    opened = session;
    return SUCCESS;
}

NVML(nvmlShutdown, void)
{
    ENTER(NULL);
    opened = -1;
    return SUCCESS;
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
    return code == 42 ? "the stub's own error" : "an error of the stub";
}

NVML(nvmlSystemGetDriverVersion, char *version, unsigned int length)
{
    ENTER(NULL);
    return text(version, length, driver);
}

NVML(nvmlDeviceGetCount_v2, unsigned int *count)
{
    ENTER(NULL);
    for (*count = 0; nth(NULL, *count);)
        ++*count;
    return SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int index, struct device **device)
{
    read_state();
    *device = nth(NULL, index);
    ENTER(*device);
    return *device ? SUCCESS : INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetUUID, struct device *device, char *uuid, unsigned int length)
{
    ENTER(device);
    return text(uuid, length, device->uuid);
}

NVML(nvmlDeviceGetName, struct device *device, char *name, unsigned int length)
{
    ENTER(device);
    return text(name, length, device->name);
}

NVML(nvmlDeviceGetMinorNumber, struct device *device, unsigned int *minor)
{
    ENTER(device);
    *minor = device->minor;
    return device->parent ? NOT_SUPPORTED : SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo, struct device *device, struct memory *memory)
{
    ENTER(device);
    memory->total = device->total_mib << 20;
    memory->used = device->used_mib << 20;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

NVML(nvmlDeviceGetUtilizationRates, struct device *device, struct utilization *utilization)
{
    ENTER(device);
    *utilization = (struct utilization){ .gpu = device->util };
    return device->parent || device->mig_mode ? NOT_SUPPORTED : SUCCESS;
}

#if OLD < 2
static int list(const char *function, const char *kind, struct device *device,
                unsigned int *count, struct process_info *infos)
{
    unsigned int room = *count;
    int code = enter(function, device);

    if (code != GO_ON)
        return code;
    *count = 0;
    for (unsigned int i = 0; i < device->process_count; i++) {
        const struct process *one = &device->processes[i];
        if (strcmp(one->kind, kind) != 0)
            continue;
        if (infos && *count < room)
            infos[*count] = (struct process_info){
                .pid = one->pid,
                .bytes = one->mib < 0 ? ~0ULL : (unsigned long long)one->mib << 20,
                .gpu = device->parent ? device->gpu_instance : ~0U,
                .compute = device->parent ? device->compute_instance : ~0U,
            };
        ++*count;
    }
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#define LIST(kind, version)                                                                        \
    NVML(nvmlDeviceGet##kind##RunningProcesses_v##version, struct device *device,                  \
         unsigned int *count, struct process_info *infos)                                          \
    {                                                                                              \
        return list(__func__, #kind, device, count, infos);                                        \
    }

#if OLD < 1
LIST(Compute, 3)
LIST(Graphics, 3)
LIST(MPSCompute, 3)
#endif

LIST(Compute, 2)
LIST(Graphics, 2)
LIST(MPSCompute, 2)

/*
 * A process's samples that are newer, as one: their mean, and when the newest was taken. So does
 * driver 580.159 on an H200; one that is listed more than once has its answer where it is first.
 */
static bool mean_since(const struct device *device, const struct process *process,
                       unsigned long long since_us, struct sample *mean)
{
    unsigned int sum = 0, number = 0;

    for (const struct process *other = device->processes; other < process; other++)
        if (other->pid == process->pid)
            return false;
    *mean = (struct sample){ .pid = process->pid };
    for (unsigned int i = 0; i < device->sample_count; i++) {
        const struct sample *one = &device->samples[i];
        if (one->pid != process->pid || one->time_us <= since_us)
            continue;
        sum += one->sm;
        number++;
        if (one->time_us > mean->time_us)
            mean->time_us = one->time_us;
    }
    mean->sm = number ? sum / number : 0;
    return number > 0;
}

NVML(nvmlDeviceGetProcessUtilization, struct device *device, struct sample *samples,
     unsigned int *count, unsigned long long since_us)
{
    struct sample mean;
    unsigned int room = *count, newer = 0;

    ENTER(device);
    if (device->parent || device->mig_mode)
        return NOT_SUPPORTED;
    for (unsigned int i = 0; i < device->process_count; i++)
        if (mean_since(device, &device->processes[i], since_us, &mean)) {
            if (samples && newer < room)
                samples[newer] = mean;
            newer++;
        }
    *count = newer;
    if (newer == 0)
        return NOT_FOUND;
    return newer > room ? INSUFFICIENT_SIZE : SUCCESS;
}

NVML(nvmlDeviceGetMigMode, struct device *device, unsigned int *now, unsigned int *pending)
{
    ENTER(device);
    *now = *pending = device->mig_mode;
    return SUCCESS;
}

NVML(nvmlDeviceGetMaxMigDeviceCount, struct device *device, unsigned int *count)
{
    ENTER(device);
    *count = device->mig_mode ? 7 : 0; /* as on an A100: there need not be so many */
    return SUCCESS;
}

NVML(nvmlDeviceGetMigDeviceHandleByIndex, struct device *device, unsigned int index,
     struct device **mig)
{
    ENTER(device);
    *mig = nth(device, index);
    return *mig ? SUCCESS : NOT_FOUND;
}

NVML(nvmlDeviceGetGpuInstanceId, struct device *device, unsigned int *id)
{
    ENTER(device);
    *id = device->gpu_instance;
    return device->parent ? SUCCESS : INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetComputeInstanceId, struct device *device, unsigned int *id)
{
    ENTER(device);
    *id = device->compute_instance;
    return device->parent ? SUCCESS : INVALID_ARGUMENT;
}
#endif
