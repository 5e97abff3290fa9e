# sort, which is stripped: lines in the order that their last digits give.
prepare() { seq 1 300000 | rev > lines; }
work() { while :; do sort lines; done; }
