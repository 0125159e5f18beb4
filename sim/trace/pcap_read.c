/* Sources: draft-ietf-opsawg-pcap, section 4 and 5 (file and packet headers);
 * draft-ietf-opsawg-pcapng, sections 3.1 (blocks), 4.1 to 4.4 (section, interface, enhanced and
 * simple packet), 4.2 (if_tsresol). */
#include "sim/trace/pcap_read.h"

#include <math.h>
#include <string.h>

#include "sim/trace/file_read.h"

enum { BLOCK_INTERFACE = 1, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6 };
enum { OPTION_END = 0, OPTION_RESOLUTION = 9 };

#define SECTION_MAGIC      0x0a0d0d0au
#define BYTE_ORDER_MAGIC   0x1a2b3c4du
#define MICROSECONDS_MAGIC 0xa1b2c3d4u
#define NANOSECONDS_MAGIC  0xa1b23c4du
#define LINK_TYPE_ETHERNET 1u
#define FILE_HEADER_BYTES  24u
#define FRAME_HEADER_BYTES 16u
#define BLOCK_BYTES_MIN    12u
#define FRAME_BYTES_MAX    262144u /* as libpcap's MAXIMUM_SNAPLEN */

struct interface {
    uint32_t link_type;
    double unit_ps; /* of its time stamps */
};

struct reader {
    struct pcap_capture *capture;
    size_t at;
    bool swapped, any;
    GArray *interfaces;      /* struct interface, of this section */
    unsigned __int128 first; /* stamp of the first frame, in ps */
    char **message;
};

static bool wrong(struct reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
static bool wrong(struct reader *r, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, arguments);
    va_end(arguments);
    *r->message = g_strdup_printf("byte %zu: %s", r->at, text);
    return false;
}

static const uint8_t *byte_at(const struct reader *r, size_t at)
{
    return (const uint8_t *)r->capture->contents + at;
}

static uint32_t get16(const struct reader *r, size_t at)
{
    uint16_t value;
    memcpy(&value, byte_at(r, at), sizeof(value));
    if (r->swapped)
        value = GUINT16_SWAP_LE_BE(value);
    return value;
}

static uint32_t get32(const struct reader *r, size_t at)
{
    uint32_t value;
    memcpy(&value, byte_at(r, at), sizeof(value));
    return r->swapped ? GUINT32_SWAP_LE_BE(value) : value;
}

static bool add_frame(struct reader *r, unsigned __int128 stamp_ps, size_t data, uint32_t bytes,
                      uint32_t wire_bytes)
{
    if (!r->any)
        r->first = stamp_ps;
    r->any = true;
    const unsigned __int128 since = stamp_ps > r->first ? stamp_ps - r->first : 0;
    if (since > UINT64_MAX / 2)
        return wrong(r, "a time stamp months after the first");
    const struct pcap_frame frame = { .at_ps = (sim_time)since,
                                      .wire_bytes = MAX(wire_bytes, bytes),
                                      .bytes = bytes,
                                      .data = byte_at(r, data) };
    g_array_append_val(r->capture->frames, frame);
    return true;
}

/* ---- pcap ------------------------------------------------------------------------------------ */

static bool read_pcap(struct reader *r, bool nanoseconds)
{
    const size_t n_bytes = r->capture->n_bytes;
    if (n_bytes < FILE_HEADER_BYTES)
        return wrong(r, "the file ends within its header");
    const uint32_t link_type = get32(r, 20) & 0xffffu;
    if (link_type != LINK_TYPE_ETHERNET)
        return wrong(r, "frames of link type %u, expected 1, Ethernet", link_type);
    for (r->at = FILE_HEADER_BYTES; r->at < n_bytes;) {
        if (n_bytes - r->at < FRAME_HEADER_BYTES)
            return wrong(r, "the file ends within the header of a frame");
        const uint32_t bytes = get32(r, r->at + 8), wire_bytes = get32(r, r->at + 12);
        if (bytes > FRAME_BYTES_MAX || wire_bytes > FRAME_BYTES_MAX)
            return wrong(r, "a frame of %u bytes", MAX(bytes, wire_bytes));
        if (n_bytes - r->at - FRAME_HEADER_BYTES < bytes)
            return wrong(r, "the file ends within a frame");
        const unsigned __int128 stamp_ps = (unsigned __int128)get32(r, r->at) * SIM_PS_PER_S +
                                           (unsigned __int128)get32(r, r->at + 4) *
                                               (nanoseconds ? 1000u : 1000000u);
        if (!add_frame(r, stamp_ps, r->at + FRAME_HEADER_BYTES, bytes, wire_bytes))
            return false;
        r->at += FRAME_HEADER_BYTES + bytes;
    }
    return true;
}

/* ---- pcapng ---------------------------------------------------------------------------------- */

/* 6: 10^-6 s; with the highest bit set, a power of two. */
static double unit_of(uint8_t resolution)
{
    const double base = resolution & 0x80 ? 2.0 : 10.0;
    double unit_ps = 1e12; /* a second; divided so that units of up to 1 ps are whole */
    for (unsigned i = 0; i < (resolution & 0x7fu); i++)
        unit_ps /= base;
    return unit_ps;
}

static bool read_interface(struct reader *r, size_t end)
{
    if (end - r->at < 8 + 8)
        return wrong(r, "an interface block that is too short");
    struct interface interface = { .link_type = get16(r, r->at + 8), .unit_ps = unit_of(6) };
    for (size_t at = r->at + 16; at + 4 <= end;) {
        const uint32_t code = get16(r, at), bytes = get16(r, at + 2);
        if (code == OPTION_END || bytes > end - at - 4)
            break;
        if (code == OPTION_RESOLUTION && bytes >= 1)
            interface.unit_ps = unit_of(*byte_at(r, at + 4));
        at += 4 + (bytes + 3u) / 4u * 4u;
    }
    g_array_append_val(r->interfaces, interface);
    return true;
}

static bool read_packet(struct reader *r, size_t end)
{
    if (end - r->at < 8 + 20)
        return wrong(r, "a packet block that is too short");
    const uint32_t index = get32(r, r->at + 8), bytes = get32(r, r->at + 20);
    const uint32_t wire_bytes = get32(r, r->at + 24);
    const uint64_t stamp = (uint64_t)get32(r, r->at + 12) << 32 | get32(r, r->at + 16);
    if (index >= r->interfaces->len)
        return wrong(r, "a packet of interface %u, of which there is no block", index);
    if (bytes > end - r->at - 28 || SIM_MAX(bytes, wire_bytes) > FRAME_BYTES_MAX)
        return wrong(r, "a packet of %u bytes in a block of %zu", bytes, end + 4 - r->at);
    const struct interface *interface = &g_array_index(r->interfaces, struct interface, index);
    if (interface->link_type != LINK_TYPE_ETHERNET)
        return wrong(r, "frames of link type %u, expected 1, Ethernet", interface->link_type);
    /* units of up to 1 ns are whole numbers of ps; those of powers of two are rounded */
    const double unit = interface->unit_ps;
    const unsigned __int128 stamp_ps =
        unit >= 1.0 && floor(unit) == unit
            ? (unsigned __int128)stamp * (uint64_t)unit
            : (unsigned __int128)((long double)stamp * (long double)unit);
    return add_frame(r, stamp_ps, r->at + 28, bytes, wire_bytes);
}

static bool begin_section(struct reader *r)
{
    r->swapped = false;
    if (r->capture->n_bytes - r->at < 28)
        return wrong(r, "the file ends within the header of a section");
    if (get32(r, r->at + 8) == BYTE_ORDER_MAGIC) {
        g_array_set_size(r->interfaces, 0);
        return true;
    }
    r->swapped = true;
    g_array_set_size(r->interfaces, 0);
    return get32(r, r->at + 8) == BYTE_ORDER_MAGIC || wrong(r, "no byte-order magic in a section");
}

static bool read_pcapng(struct reader *r)
{
    while (r->at < r->capture->n_bytes) {
        const size_t left = r->capture->n_bytes - r->at;
        if (left < BLOCK_BYTES_MIN)
            return wrong(r, "the file ends within a block");
        if (get32(r, r->at) == SECTION_MAGIC && !begin_section(r))
            return false;
        const uint32_t type = get32(r, r->at), bytes = get32(r, r->at + 4);
        if (bytes < BLOCK_BYTES_MIN || bytes % 4 != 0)
            return wrong(r, "a block of %u bytes", bytes);
        if (bytes > left)
            return wrong(r, "the file ends within a block of %u bytes", bytes);
        const size_t end = r->at + bytes - 4;
        if (get32(r, end) != bytes)
            return wrong(r, "a block of %u bytes that says %u at its end", bytes, get32(r, end));
        if (type == BLOCK_SIMPLE)
            return wrong(r, "simple packet blocks have no time stamps");
        if (type == BLOCK_INTERFACE && !read_interface(r, end))
            return false;
        if (type == BLOCK_PACKET && !read_packet(r, end))
            return false;
        r->at += bytes;
    }
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static bool read_any(struct reader *r)
{
    if (r->capture->n_bytes < 4)
        return wrong(r, "neither pcap nor pcapng");
    for (int swapped = 0; swapped <= 1; swapped++) {
        r->swapped = swapped == 1;
        const uint32_t magic = get32(r, 0);
        if (magic == SECTION_MAGIC)
            return read_pcapng(r);
        if (magic == MICROSECONDS_MAGIC || magic == NANOSECONDS_MAGIC)
            return read_pcap(r, magic == NANOSECONDS_MAGIC);
    }
    return wrong(r, "neither pcap nor pcapng");
}

struct pcap_capture *pcap_read_memory(char *contents, size_t n_bytes, char **message)
{
    struct pcap_capture *capture = g_new0(struct pcap_capture, 1);
    capture->contents = contents;
    capture->n_bytes = n_bytes;
    capture->frames = g_array_new(FALSE, FALSE, sizeof(struct pcap_frame));
    g_autoptr(GArray) interfaces = g_array_new(FALSE, FALSE, sizeof(struct interface));
    struct reader reader = { .capture = capture, .interfaces = interfaces, .message = message };
    *message = NULL;
    if (read_any(&reader))
        return capture;
    pcap_free(capture);
    return NULL;
}

struct pcap_capture *pcap_read(const char *path, char **message)
{
    size_t n_bytes = 0;
    const char *why = NULL;
    char *contents = file_read_trace(path, &n_bytes, &why);
    if (contents != NULL)
        return pcap_read_memory(contents, n_bytes, message);
    *message = g_strdup_printf("%s: %s", path, why);
    return NULL;
}

void pcap_free(struct pcap_capture *capture)
{
    if (capture == NULL)
        return;
    g_array_free(capture->frames, TRUE);
    g_free(capture->contents);
    g_free(capture);
}
