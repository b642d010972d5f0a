# Reads which process groups there are, a line each: `add MARK GROUP` and `del MARK`. When the input ends,
# because the program that wrote to it has, ends all of them. See keeper.rs.
trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-

# As " MARK=GROUP MARK=GROUP ".
groups=" $1 "
while read -r what mark group; do
    case $what in
    add) groups="$groups$mark=$group " ;;
    del)
        case $groups in
        *" $mark="*)
            rest=${groups#*" $mark="}
            groups="${groups%%" $mark="*} ${rest#* }"
            ;;
        esac
        ;;
    esac
done

marks=
for entry in $groups; do
    kill -9 "-${entry#*=}"
    marks="$marks -e ${entry%%=*}"
done
[ -n "$marks" ] && [ -r /proc/self/environ ] || exit 0

# Who has left its group is known by the mark in its environment. One that is just executing another
# program has none for a moment, and one that is found may just have started another: so this goes on
# until it has found nobody several times in a row, with a pause before each, but not for ever.
round=0
quiet=0
while [ "$quiet" -lt 3 ] && [ "$round" -lt 30 ]; do
    round=$((round + 1))
    quiet=$((quiet + 1))
    for environ in $(grep -lsF $marks /proc/[0-9]*/environ); do
        quiet=0
        process=${environ#/proc/}
        kill -9 "${process%/environ}"
    done
    # Some systems know whole seconds only.
    [ "$quiet" -eq 0 ] || sleep 0.1 || sleep 1
    # That long only something takes that hangs in the kernel.
    [ "$round" -lt 15 ] || sleep 1
done
