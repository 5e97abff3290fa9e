# git: packing and reading a history that it imports first.
prepare() {
    git init -q -b main history
    awk 'BEGIN {
        for (i = 1; i <= 1500; i++) {
            print "commit refs/heads/main\nmark :" i
            print "committer A U Thor <author@example.com> " 1000000000 + i * 60 " +0000"
            print "data 6\nchange"
            for (f = i % 7; f < 40; f += 7) {
                body = ""
                for (l = 0; l < 60; l++) body = body "line " l " of " f ", as of " (l % 9 == i % 9 ? i : int(i / 50)) "\n"
                print "M 100644 inline folder" f % 5 "/file" f "\ndata " length(body)
                printf "%s\n", body
            }
            print ""
        }
    }' | git -C history fast-import --quiet
}
work() {
    cd history
    while :; do
        git repack -adfq --depth=50 --window=50
        git log -p --stat main
        git blame main -- folder1/file1
        git fsck
    done
}
