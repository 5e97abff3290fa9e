"""Burns on one line, called from another, until it is killed."""


def burn():
    total = 0
    while True:
        total = (total + 1) ^ (total & 7) ^ (total >> 3) ^ (total % 1000003) ^ (total & 1023)


print("ready", flush=True)
burn()
