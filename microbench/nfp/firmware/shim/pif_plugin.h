/* What the P4 compiler's generated headers give a plugin, as far as the
 * generated plugins use it. */
#ifndef SHIM_PIF_PLUGIN_H
#define SHIM_PIF_PLUGIN_H

#include <nfp.h>

#define EXTRACTED_HEADERS_T uint32_t
#define MATCH_DATA_T uint32_t
#define PIF_PLUGIN_RETURN_FORWARD 0

typedef struct {
    uint32_t src, dst;
} PIF_PLUGIN_ipv4_T;

static inline PIF_PLUGIN_ipv4_T *pif_plugin_hdr_readonly_get_ipv4(EXTRACTED_HEADERS_T *headers)
{
    return (PIF_PLUGIN_ipv4_T *)headers;
}

#define PIF_HEADER_GET_ipv4___srcAddr(ip) ((ip)->src)
#define PIF_HEADER_GET_ipv4___dstAddr(ip) ((ip)->dst)

#endif
