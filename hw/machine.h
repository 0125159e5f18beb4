/*
 * The real machine that nudma is built for: 64-bit, little endian. Devices and drivers exchange
 * structures of registers, descriptors and tables as bytes in simulated memory, and read and write
 * their fields, which are little endian, as they are (static asserts have their sizes and offsets).
 * Addresses in the memory of the real machine need more than 32 bits. `make` compiles this file
 * first.
 */
#ifndef HW_MACHINE_H
#define HW_MACHINE_H

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error \
    "nudma does not run on 32-bit machines: the memory of the hosts that it simulates does not fit in their addresses."
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error \
    "nudma does not run on big-endian machines: registers and descriptors are little endian, as devices have them."
#endif

#endif
