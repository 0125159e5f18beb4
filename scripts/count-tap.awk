# Counts the cases of one test from what it printed (TAP) and how it ended.
#   awk -v status=EXIT_STATUS -v kind=program|script [-v cases=FILE] -f scripts/count-tap.awk OUTPUT
# prints "passed failed why"; why is a failure of the test as a whole, counted as one more. FILE gets
# a line for each case that ran: its name, and which one of that name it is.

function case_ran(name) {
    if (cases != "") print name "#" ++named[name] >cases
}

/^[0-9]+\.\.[0-9]+/ { # the plan; a program with several groups prints several
    split($1, range, /\.\./)
    plan += range[2] - range[1] + 1
    next
}
/^(not )?ok .*# *[Ss][Kk][Ii][Pp]/ { skipped++; next } # cmocka says "not ok 3 # SKIP name"
/^Bail out!/ { bailed = 1 }
/^(not )?ok( |$)/ {
    if ($1 == "ok") passed++
    else failed++
    name = $0
    sub(/^(not )?ok *[0-9]* *(- *)?/, "", name)
    case_ran(name)
}

END {
    n = passed + failed + skipped
    if (status == 124) why = "ran into its time limit"
    else if (status == 137) why = "was killed: time limit or memory"
    else if (status > 128) why = "died of signal " status - 128
    else if (status != 0 && failed == 0) why = "ended with status " status
    else if (bailed) why = "bailed out"
    else if (n < plan) why = "ended after " n " of " plan " cases"
    else if (n > 0 && plan == 0) why = "ended without a plan"
    else if (n == 0 && kind == "program") why = "has run no case"
    if (why != "") failed++
    else if (n == 0) passed++
    if (n == 0 && kind == "script") case_ran("as a whole")
    failed += skipped # what has not run has not passed
    if (why == "" && skipped) why = "skipped " skipped
    print passed + 0, failed + 0, why
}
