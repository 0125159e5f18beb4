#ifndef CLI_BASE_JSON_H
#define CLI_BASE_JSON_H

#include <stdio.h>

/* Prints a string in quotes, escaped; invalid UTF-8 is replaced. NULL prints "". */
void json_text(FILE *out, const char *text);
/* null if it is not finite. */
void json_number(FILE *out, double value);
/* Prints `before` ("{ ", ", "), then a member of an object: "name": "text". */
void json_member(FILE *out, const char *before, const char *name, const char *text);

#endif
