/* SPDX-License-Identifier: Apache-2.0
 * What a launch costs: 1000 launches of a small kernel, enqueued one by one with an argument set for each, against
 * the same recorded once and replayed (cl_khr_command_buffer). For docs/decisions/0010.
 *
 *   bench_launches [ROUNDS]
 *
 * Medians of ROUNDS (default 15) alternating rounds, in microseconds of processor time a launch, on the first device.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAUNCHES = 1000, MOST_ROUNDS = 101 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* OpenCL calls end the program when they fail: there is nothing to measure then. */
static void expect(cl_int status, const char *what)
{
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "bench_launches: %s: OpenCL error %d\n", what, status);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

typedef struct setup {
    cl_platform_id platform;
    cl_device_id device;
    cl_command_queue queue;
    cl_kernel kernel;
} setup;

static setup open_device(void)
{
    static const char *source =
        "kernel void touch(global float *x, int n) { for (int i = 0; i < n; i++) x[i] += 1.0f; }";
    setup s = {0};
    cl_int status;
    expect(clGetPlatformIDs(1, &s.platform, NULL), "no platform");
    expect(clGetDeviceIDs(s.platform, CL_DEVICE_TYPE_ALL, 1, &s.device, NULL), "no device");
    cl_context context = clCreateContext(NULL, 1, &s.device, NULL, NULL, &status);
    expect(status, "clCreateContext");
    s.queue = clCreateCommandQueueWithProperties(context, s.device, NULL, &status);
    expect(status, "clCreateCommandQueueWithProperties");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    expect(status, "clCreateProgramWithSource");
    expect(clBuildProgram(program, 1, &s.device, "", NULL, NULL), "clBuildProgram");
    s.kernel = clCreateKernel(program, "touch", &status);
    expect(status, "clCreateKernel");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 16, NULL, &status);
    expect(status, "clCreateBuffer");
    expect(clSetKernelArg(s.kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
    return s;
}

static const size_t global_size = 2, local_size = 1;

static cl_command_buffer_khr record(setup *s)
{
#define FIND(name) name##_fn name = clGetExtensionFunctionAddressForPlatform(s->platform, #name)
    FIND(clCreateCommandBufferKHR);
    FIND(clCommandNDRangeKernelKHR);
    FIND(clFinalizeCommandBufferKHR);
    if (!clCreateCommandBufferKHR || !clCommandNDRangeKernelKHR || !clFinalizeCommandBufferKHR)
        return NULL;
    cl_int status;
    cl_command_buffer_khr buffer = clCreateCommandBufferKHR(1, &s->queue, NULL, &status);
    expect(status, "clCreateCommandBufferKHR");
    for (int i = 0; i < LAUNCHES; i++)
        expect(clCommandNDRangeKernelKHR(buffer, NULL, NULL, s->kernel, 1, NULL, &global_size,
                                         &local_size, 0, NULL, NULL, NULL),
               "clCommandNDRangeKernelKHR");
    expect(clFinalizeCommandBufferKHR(buffer), "clFinalizeCommandBufferKHR");
    return buffer;
}

static double run_one_by_one(setup *s, int elems)
{
    const double begin = now();
    for (int i = 0; i < LAUNCHES; i++) {
        expect(clSetKernelArg(s->kernel, 1, sizeof elems, &elems), "clSetKernelArg");
        expect(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &global_size, &local_size, 0,
                                      NULL, NULL),
               "clEnqueueNDRangeKernel");
    }
    expect(clFinish(s->queue), "clFinish");
    return (now() - begin) / LAUNCHES * 1e6;
}

static double run_recorded(setup *s, cl_command_buffer_khr buffer)
{
    FIND(clEnqueueCommandBufferKHR);
    const double begin = now();
    expect(clEnqueueCommandBufferKHR(0, NULL, buffer, 0, NULL, NULL), "clEnqueueCommandBufferKHR");
    expect(clFinish(s->queue), "clFinish");
    return (now() - begin) / LAUNCHES * 1e6;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 1000, 10000};
    const int wanted = argc > 1 ? atoi(argv[1]) : 15;
    const int rounds = wanted < 1 ? 1 : wanted > MOST_ROUNDS ? MOST_ROUNDS : wanted;
    setup s = open_device();
    printf("%-24s %12s %12s\n", "launch of 2 work-items", "one by one", "recorded");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double single[MOST_ROUNDS], replayed[MOST_ROUNDS];
        expect(clSetKernelArg(s.kernel, 1, sizeof sizes[i], &sizes[i]), "clSetKernelArg");
        cl_command_buffer_khr buffer = record(&s);
        run_one_by_one(&s, sizes[i]);
        for (int r = 0; r < rounds; r++) {
            single[r] = run_one_by_one(&s, sizes[i]);
            replayed[r] = buffer ? run_recorded(&s, buffer) : 0;
        }
        printf("%6d additions each   %9.2f us ", sizes[i], median(single, rounds));
        if (buffer)
            printf("%9.2f us\n", median(replayed, rounds));
        else
            printf("%12s\n", "not offered");
    }
    return 0;
}
