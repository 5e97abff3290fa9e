# A Go program: allocating, sorting, hashing, and maps, in several goroutines.
prepare() {
    cat > main.go <<'END'
package main

import (
	"crypto/sha256"
	"sort"
	"strconv"
)

type tree struct{ left, right *tree }

func build(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{build(depth - 1), build(depth - 1)}
}

func work() {
	for {
		build(12)
		sha256.Sum256(make([]byte, 1<<16))
		words := make([]string, 2000)
		seen := map[string]int{}
		for i := range words {
			words[i] = strconv.Itoa(i * 7919 % 100003)
			seen[words[i]]++
		}
		sort.Strings(words)
	}
}

func main() {
	for i := 0; i < 3; i++ {
		go work()
	}
	work()
}
END
    printf 'module example.com/hot\n\ngo 1.18\n' > go.mod
    HOME=$PWD GOFLAGS=-mod=mod CGO_ENABLED=0 go build $BUILD_FLAGS -o hot .
}
work() { exec ./hot; }
