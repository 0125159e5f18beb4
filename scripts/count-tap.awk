# Counts the cases of one test from what it printed (TAP) and how it ended.
#   awk -v status=EXIT_STATUS -v kind=program|script -f scripts/count-tap.awk OUTPUT
# prints "passed failed skipped why"; why is a failure of the test as a whole, counted as one more.

/^[0-9]+\.\.[0-9]+/ { # the plan; a program with several groups prints several
    split($1, range, /\.\./)
    plan += range[2] - range[1] + 1
    next
}
/^(not )?ok .*# *[Ss][Kk][Ii][Pp]/ { skipped++; next } # cmocka says "not ok 3 # SKIP name"
/^ok / { passed++ }
/^not ok / { failed++ }

END {
    cases = passed + failed + skipped
    if (status == 124) why = "ran into its time limit"
    else if (status == 137) why = "was killed: time limit or memory"
    else if (status > 128) why = "died of signal " status - 128
    else if (status != 0 && failed == 0) why = "ended with status " status
    else if (cases < plan) why = "ended after " cases " of " plan " cases"
    else if (cases == 0 && kind == "program") why = "has run no case"
    if (why != "") failed++
    else if (cases == 0) passed++
    print passed + 0, failed + 0, skipped + 0, why
}
