/* Fields of CSV after RFC 4180. */
#ifndef CLI_BASE_CSV_H
#define CLI_BASE_CSV_H

#include <stdio.h>

/* In quotes if it has to be. */
void csv_text(FILE *out, const char *text);
/* With as many digits as it takes to read back the same double. */
void csv_number(FILE *out, double value);

#endif
