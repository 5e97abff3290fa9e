# Guile 3.0, which compiles to machine code as it runs: lists, strings, tables and recursion.
prepare() {
    cat > work.scm <<'END'
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (tree depth) (if (zero? depth) '() (cons (tree (- depth 1)) (tree (- depth 1)))))
(define (count tree) (if (null? tree) 1 (+ (count (car tree)) (count (cdr tree)))))
(define (words n)
  (let ((seen (make-hash-table)))
    (do ((i 0 (+ i 1))) ((= i n) (hash-count (const #t) seen))
      (hash-set! seen (number->string (modulo (* i 7919) 1009)) i))))
(let loop ()
  (fib 20)
  (count (tree 12))
  (words 2000)
  (sort (map (lambda (i) (modulo (* i 7919) 10007)) (iota 2000)) <)
  (loop))
END
}
work() { exec guile -q work.scm; }
