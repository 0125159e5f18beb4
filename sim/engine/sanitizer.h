/* What address sanitizer and valgrind must be told about pools and stacks; nothing without them.
 * Private to the engine. */
#ifndef SIM_ENGINE_SANITIZER_H
#define SIM_ENGINE_SANITIZER_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifndef SIM_ASAN
#define SIM_ASAN 0
#endif

#if SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIM_POISON(start, bytes)   __asan_poison_memory_region((start), (bytes))
#define SIM_UNPOISON(start, bytes) __asan_unpoison_memory_region((start), (bytes))
#else
#define SIM_POISON(start, bytes)   ((void)(start), (void)(bytes))
#define SIM_UNPOISON(start, bytes) ((void)(start), (void)(bytes))
#endif

/* About to leave for another stack; *fake_save is for the return, NULL: there will be none. */
static inline void sim_fiber_leave(void **fake_save, const void *to_base, size_t to_bytes)
{
#if SIM_ASAN
    __sanitizer_start_switch_fiber(fake_save, to_base, to_bytes);
#else
    (void)fake_save, (void)to_base, (void)to_bytes;
#endif
}

/* Arrived on this stack; tells the bounds of the one that was left (may be NULL). */
static inline void sim_fiber_arrive(void *fake_saved, const void **from_base, size_t *from_bytes)
{
#if SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_saved, from_base, from_bytes);
#else
    (void)fake_saved, (void)from_base, (void)from_bytes;
#endif
}

#ifdef __has_include
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(start, end) ((void)(start), (void)(end), 0u)
#define VALGRIND_STACK_DEREGISTER(id)       ((void)(id))
#endif

#endif
