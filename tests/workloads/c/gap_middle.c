/* The middle of `gap`'s chain. Keeps numbers, and no addresses, in every register that outlives a call. */
unsigned long middle(unsigned long turns, unsigned long (*next)(unsigned long));

__attribute__((noipa)) unsigned long middle(unsigned long turns, unsigned long (*next)(unsigned long))
{
    unsigned long a = turns * 3, b = turns * 5, c = turns * 7, d = turns * 11, e = turns * 13, f = turns * 17;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    return next(turns) + (a ^ b ^ c ^ d ^ e ^ f);
}
