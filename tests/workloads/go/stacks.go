// A Go program of which every stack is known: functions that compute, allocate, wait and ask the kernel, in several goroutines.
//
// It says `ready` and works until it is killed.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

type tree struct{ left, right *tree }

//go:noinline
func spin(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i ^ sum
	}
	return sum
}

//go:noinline
func inner(n int) int { return spin(n) + 1 }

// The frame is larger than a page.
//
//go:noinline
func outer(n int) int {
	var room [1000]int
	room[n%1000] = inner(n)
	return room[n%7] + room[n%1000]
}

//go:noinline
func allocate(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{allocate(depth - 1), allocate(depth - 1)}
}

// Each level takes 2 KiB of a stack that begins with 8.
//
//go:noinline
func grow(n int) int {
	var room [256]int
	if n == 0 {
		return spin(1000)
	}
	room[n%256] = grow(n - 1)
	return room[n%256] + 1
}

//go:noinline
func ask() {
	for i := 0; i < 20; i++ {
		file, err := os.Open("/proc/self/stat")
		if err == nil {
			file.Close()
		}
		time.Now()
	}
}

func work(requests, answers chan int) {
	kept := allocate(10)
	for {
		outer(100000)
		kept.left = allocate(10)
		ask()
		done := make(chan int)
		go func() { done <- grow(30) }()
		<-done
		requests <- 1
		<-answers
	}
}

func answer(requests, answers chan int) {
	for n := range requests {
		runtime.Gosched()
		answers <- n
	}
}

func main() {
	requests, answers := make(chan int), make(chan int)
	go answer(requests, answers)
	go work(requests, answers)
	fmt.Println("ready")
	work(requests, answers)
}
