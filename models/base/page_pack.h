/* Pages of simulated memory in few bytes, for those that nobody has used for long: what goes on
 * from the line before, as most bulk payload does (models/base/payload.h), costs a bit a line. */
#ifndef MODELS_BASE_PAGE_PACK_H
#define MODELS_BASE_PAGE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_PACKED_BYTES_MAX 1024u /* a page of which more is left stays as it is */

/* Packs the 4096 bytes of a page; false: they do not fit. *packed: to be freed with free(), NULL if
 * the page is all zeros; *bytes: its size. */
bool page_pack(const uint8_t *page, uint8_t **packed, size_t *bytes);
/* Writes what was packed into a page of zeros; returns the size that page_pack() gave. */
size_t page_unpack(const uint8_t *packed, uint8_t *page);

#endif
