/* SPDX-License-Identifier: Apache-2.0
 * A misbehaving OpenCL: forwards to the real one and, as told by a specification, fails chosen
 * calls, hides or breaks platforms, shrinks limits, or gives wrong results. It counts calls and
 * living objects.
 *
 * Two forms of one source:
 *   in a test       fake_cl_install("fail=clFinish:3:-5") replaces tpucl's table of entry points
 *   for a command   TPUCL_OPENCL_LIBRARY=.../libfake_cl.so FAKE_CL="corrupt=mxu" tpucl verify
 *
 * Specification: items separated by commas
 *   fail=CALL:N:CODE     the N-th call (from 1) of CALL ("clCreateBuffer") fails with CODE; N 0:
 *                        every one
 *   platforms=WHAT       none (loader error -1001), zero (success, no platform), empty (one more
 *                        platform without devices), broken (one more whose devices cannot be
 *                        listed), nameless (one more that does not tell its name); the extra
 *                        platform comes first
 *   devices=broken       the devices do not answer when asked anything
 *   max_alloc=BYTES      CL_DEVICE_MAX_MEM_ALLOC_SIZE, and larger buffers fail
 *   max_group=N          CL_DEVICE_MAX_WORK_GROUP_SIZE and per-kernel limits, and larger launches
 *                        fail
 *   align_bits=N         CL_DEVICE_MEM_BASE_ADDR_ALIGN
 *   driver=TEXT          CL_DRIVER_VERSION
 *   version=TEXT         CL_DEVICE_VERSION
 *   corrupt=TEXT         after each launch of a kernel whose name contains TEXT ("*": any), the
 *                        lowest bit of the first 32-bit word that the launch changed is flipped
 *   corrupt_every=N      only every N-th such launch, default 1
 *   corrupt_reads=1      the lowest bit of the first byte of everything read back is flipped
 *   refuse_binaries=1    clCreateProgramWithBinary fails with CL_INVALID_BINARY
 */
#ifndef TPUCL_TESTS_FAKE_CL_H
#define TPUCL_TESTS_FAKE_CL_H

/* Replaces the table; counters start at zero. Aborts on a malformed specification or without
 * OpenCL: this is a test's own mistake. Install before anything is opened. */
void fake_cl_install(const char *specification);

/* Another specification for the installed table, counters kept at zero again. */
void fake_cl_configure(const char *specification);

/* Back to the real table. */
void fake_cl_remove(void);

/* Calls of "clFinish" since installing or configuring. */
int fake_cl_calls(const char *call);

/* Number of entry points, and their names, for loops over all of them. */
int fake_cl_entry_count(void);
const char *fake_cl_entry_name(int index);

/* Contexts, queues, buffers, programs, kernels, events and sub-devices created and not yet
 * released. */
int fake_cl_living_objects(void);

/* How often `fail` and `corrupt` have struck. */
int fake_cl_strikes(void);

#endif
