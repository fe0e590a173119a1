/* SPDX-License-Identifier: Apache-2.0
 * Vectors: FIPS 180-4 examples (NIST, "SHA-256 Example"), and the million 'a' of FIPS 180-2. */
#include <criterion/criterion.h>
#include <string.h>
#include "core/hash.h"

Test(hash, published_vectors)
{
    const struct {
        const char *text, *hex;
    } vectors[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                   {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                   {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    char hex[TP_SHA256_HEX_BYTES];
    for (size_t i = 0; i < 3; i++) {
        tp_sha256_hex(vectors[i].text, strlen(vectors[i].text), hex);
        cr_assert_str_eq(hex, vectors[i].hex);
    }
}

Test(hash, pieces_of_any_size_give_the_same)
{
    for (size_t piece = 1; piece < 200; piece += 7) {
        static char bytes[1000000];
        memset(bytes, 'a', sizeof bytes);
        tp_sha256 hash;
        char hex[TP_SHA256_HEX_BYTES];
        tp_sha256_init(&hash);
        for (size_t done = 0; done < sizeof bytes; done += piece)
            tp_sha256_update(&hash, bytes,
                             piece < sizeof bytes - done ? piece : sizeof bytes - done);
        tp_sha256_finish_hex(&hash, hex);
        cr_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}
