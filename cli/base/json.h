#ifndef CLI_BASE_JSON_H
#define CLI_BASE_JSON_H

#include <stdio.h>

/* In quotes, escaped; what is no UTF-8 is replaced. NULL is "". */
void json_text(FILE *out, const char *text);
/* A member of an object, after `before` ("{ ", ", "): "name": "text". */
void json_member(FILE *out, const char *before, const char *name, const char *text);

#endif
