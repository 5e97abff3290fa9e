# The Go toolchain: compiling the packages that a small program needs, and linking it.
prepare() {
    printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(1) }\n' > main.go
    printf 'module example.com/small\n\ngo 1.18\n' > go.mod
}
work() { while :; do HOME=$PWD GOFLAGS=-mod=mod CGO_ENABLED=0 go build -a -o small .; done; }
