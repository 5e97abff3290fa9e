# OpenSSL: ciphers, digests and signatures, most of them in assembly.
prepare() { :; }
work() {
    while :; do
        openssl speed -seconds 1 -bytes 8192 -evp aes-256-gcm
        openssl speed -seconds 1 -bytes 8192 -evp chacha20-poly1305
        openssl speed -seconds 1 rsa2048 ecdsap256 ed25519
        openssl speed -seconds 1 -bytes 8192 sha256 sha512 aes-256-cbc md5
    done
}
