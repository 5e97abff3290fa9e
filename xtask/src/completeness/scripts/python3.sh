# Python: JSON, regular expressions, sorting, big numbers, compression.
prepare() {
    cat > work.py <<'END'
import json, re, zlib, hashlib, random, decimal, collections
random.seed(1)
things = [{"id": i, "name": "".join(random.choices("abcdefgh", k=9)), "of": list(range(i % 20))} for i in range(2000)]

def depth(n):
    return 1 + depth(n - 1) if n else 0

while True:
    text = json.dumps(things)
    back = json.loads(text)
    back.sort(key=lambda thing: thing["name"])
    names = re.findall(r'"name": "([a-d]+)', text)
    collections.Counter(names)
    zlib.compress(text.encode())
    hashlib.sha256(text.encode()).hexdigest()
    decimal.getcontext().prec = 200
    sum(decimal.Decimal(1) / i for i in range(1, 500))
    pow(3, 20000) % 1000007
    depth(200)
END
}
work() { exec python3 work.py; }
