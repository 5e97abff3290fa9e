// A Go program that calls C, which calls Go, which calls C, each on a stack of its own, and threads of C that call Go.
//
// It says `ready` and works until it is killed.
package main

/*
#include <stdint.h>
#include <pthread.h>

extern void backInGo(int);

static volatile uint64_t sink;

static __attribute__((noinline)) void c_spin(int n) {
	for (int i = 0; i < n; i++)
		sink += i;
}

static __attribute__((noinline)) void c_outer(int n) {
	c_spin(100000);
	backInGo(n);
	sink++;
}

static void *c_thread(void *argument) {
	for (;;)
		backInGo(0);
	return argument;
}

static void c_begin(void) {
	pthread_t thread;
	pthread_create(&thread, 0, c_thread, 0);
}
*/
import "C"

import "fmt"

var total int

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

//export backInGo
func backInGo(n C.int) {
	total += inner(100000)
	if n > 0 {
		C.c_outer(n - 1)
		total++
	}
}

func work() {
	for {
		C.c_outer(2)
		total += inner(100000)
	}
}

func main() {
	C.c_begin()
	go work()
	fmt.Println("ready")
	work()
}
