# SBCL: compiled Lisp, and the collector of its runtime.
prepare() {
    cat > work.lisp <<'END'
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun tree (depth) (if (zerop depth) nil (cons (tree (- depth 1)) (tree (- depth 1)))))
(defun size (tree) (if (null tree) 1 (+ (size (car tree)) (size (cdr tree)))))
(defun words (n)
  (let ((seen (make-hash-table :test 'equal)))
    (dotimes (i n (hash-table-count seen))
      (setf (gethash (format nil "~d" (mod (* i 7919) 1009)) seen) i))))
(loop
  (fib 20)
  (size (tree 14))
  (words 2000)
  (sort (loop for i below 2000 collect (mod (* i 7919) 10007)) #'<))
END
}
work() { exec sbcl --noinform --no-sysinit --no-userinit --load work.lisp; }
