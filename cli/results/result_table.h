/* Result sets as tables: what nudma run and nudma results print. */
#ifndef CLI_RESULTS_RESULT_TABLE_H
#define CLI_RESULTS_RESULT_TABLE_H

#include "cli/results/result_set.h"

/* Which axes make rows and columns: lists ("op,cache"), NULL-terminated or NULL. */
struct result_table_choice {
    char **rows, **columns;
    int width;           /* of lines; 0: as long as they are */
    const char *title;   /* behind the scenario's name; NULL: none */
    bool with_valueless; /* points without any value are shown, too */
};

struct result_layout;

/* Lays out a set, which has to outlive the layout. Mistakes in the names of axes go to errors. */
struct result_layout *result_layout_new(const struct result_set *set,
                                        const struct result_table_choice *choice,
                                        struct sim_error_list *errors);
void result_layout_free(struct result_layout *layout);
/* Prints to standard output; the values of the set must have been read. first: no blank line
 * above. */
void result_layout_print(const struct result_layout *layout, bool first);
/* Prints a line for each of the first points of the set whose runs had not settled, and how many
 * more there are. False if the database cannot be read: that is said. */
bool result_not_settled_print(const struct result_set *set, struct results_db *db);

#endif
