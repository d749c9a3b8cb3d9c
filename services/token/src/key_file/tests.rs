use proptest::prelude::*;

use super::*;
use crate::tests::secret_key;

const SEED: &str = "0000000000000000000000000000000000000000000000000000000000000001";

/// The seed `00…01` as `sigsum-key generate` writes it: no comment, lines of 64 characters.
const OF_SIGSUM: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz
c2gtZWQyNTUxOQAAACBMtav2rXn79au8yvzCadhc0mUe1LiFtYafJBrt8KW6KQAA
AIgBAgMEAQIDBAAAAAtzc2gtZWQyNTUxOQAAACBMtav2rXn79au8yvzCadhc0mUe
1LiFtYafJBrt8KW6KQAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AUy1q/atefv1q7zK/MJp2FzSZR7UuIW1hp8kGu3wpbopAAAAAAECAwQF
-----END OPENSSH PRIVATE KEY-----
";

/// From `ssh-keygen -t ed25519 -N '' -C somebody@example`; it was never used.
const OF_OPENSSH: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACAxKM2AvWpM/1VkCrkR6g8Kp+R/N2ldnAYn5YJMesvcuAAAAJiHUIJph1CC
aQAAAAtzc2gtZWQyNTUxOQAAACAxKM2AvWpM/1VkCrkR6g8Kp+R/N2ldnAYn5YJMesvcuA
AAAEDL5qkk8KvophiXRAtWaYQonQllGE3MnFyVVm0aa29HbTEozYC9akz/VWQKuRHqDwqn
5H83aV2cBiflgkx6y9y4AAAAEHNvbWVib2R5QGV4YW1wbGUBAgMEBQ==
-----END OPENSSH PRIVATE KEY-----
";
const PUBLIC_OF_OPENSSH: &str = "3128cd80bd6a4cff55640ab911ea0f0aa7e47f37695d9c0627e5824c7acbdcb8";

/// From `ssh-keygen -t ed25519 -N secret`.
const ENCRYPTED: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDJpM0l0f
3auA9x6ApHE7nYAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIDt4shRX2Dwixbnq
GDnk5ysw0h89dj7n9kCSWoB19Dl/AAAAkHuVeyh+nnLM9BO7GwcUJ2s6TFwc26P184q8U5
/ZT8YxEw/w22i2B1P/AA6ri8RFflGsGLLoq00QLBtN8LxFx6XeQKhqjM5xejX4Rc/8+lnj
vSDFJ4PSob3TRujdimx9m6rKFjm+cuR7OkQsviWAcMjXktwKqn4p1g0aM7KnNoOj3eCDsE
28xqtiTq4Ln3WnPA==
-----END OPENSSH PRIVATE KEY-----
";

const ECDSA: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQScnqPBfCMPZBQh8wFBfEzN3B4LHyfQ
CzJuJCD/vtS6g84H1+hKsORg0cnpUzj7qeODL+tzhg6MQ6k0VYYw2C3BAAAAoH/+0GZ//t
BmAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJyeo8F8Iw9kFCHz
AUF8TM3cHgsfJ9ALMm4kIP++1LqDzgfX6Eqw5GDRyelTOPup44Mv63OGDoxDqTRVhjDYLc
EAAAAhAMeceQ/HmB6v6C9MwK2xGclwolBqKVX1PVeLJii39CR6AAAAAXgBAgMEBQY=
-----END OPENSSH PRIVATE KEY-----
";

/// From `ssh-keygen -t rsa -b 1024 -N ''`.
const RSA: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAlwAAAAdzc2gtcn
NhAAAAAwEAAQAAAIEAve8qB36LeTWnXuxXYvYEFVpM3jTYxUV1iPw6YMS3EA9ILXeRg5IS
5dydlvI40PwGk+nXopRxVFqMpiT/cUSX2wlG5J6nRdmceyW8vzRHGbTqKqNZyqyyd8irwa
JZ0isduvcEqwPmoAem5HWo3/jTMaf08zpuNwi3oewEFN/vlDsAAAH4gX/3QIF/90AAAAAH
c3NoLXJzYQAAAIEAve8qB36LeTWnXuxXYvYEFVpM3jTYxUV1iPw6YMS3EA9ILXeRg5IS5d
ydlvI40PwGk+nXopRxVFqMpiT/cUSX2wlG5J6nRdmceyW8vzRHGbTqKqNZyqyyd8irwaJZ
0isduvcEqwPmoAem5HWo3/jTMaf08zpuNwi3oewEFN/vlDsAAAADAQABAAAAgBURwNHQAd
zSTNzEzvTVYaKUv84ugpVvnRgzEq7FY6FOcK1KhEPaImqJTJoACLl2G6yw1hDc8q1u1gdg
N03zU/zxPGsfcyP/ajX3ACRdNy46iOU2kouTmojV5wOLkVY85mOOTeCB12KuYOWkIVP7KG
PUUDgOaDGqQxFcJceQGhZhAAAAQQCNL2P2ldffh8vwhZsw8mC7PBlUh31KaIy0ID7Rz43+
5G4p5p6xAWYY3F+NFXuMT0BCYGDVCxKyelKMjOjSqRkoAAAAQQDt31c9cJ5daV+QT49gNN
bSHELRt1AWNRhnl2YRfjWXm7ANGMrBm+iGPXpmo2milSp2n2LMnWeSk+ACb42GSAKjAAAA
QQDMaJiVCb3cdxdQwcqT7czKd7Zl9hHbyRDEmOttMOekdWuVthyx2eAUVgvcxe8H2DooG0
77FQ0Ri4JGSqleztmJAAAAAAEC
-----END OPENSSH PRIVATE KEY-----
";

fn public(content: &str) -> Result<String, KeyFileError> {
    parse(content.as_bytes()).map(|key| key.public().to_string())
}

#[test]
fn keys_of_sigsums_and_of_opensshs_tools_are_read() {
    let known = Ok(secret_key().public().to_string());
    assert_eq!(public(OF_SIGSUM), known);
    assert_eq!(public(OF_OPENSSH), Ok(PUBLIC_OF_OPENSSH.to_owned()));
    for content in [OF_SIGSUM, OF_OPENSSH] {
        let with_cr = content.replace('\n', "\r\n");
        assert_eq!(public(&with_cr), public(content));
        assert_eq!(public(content.trim_end()), public(content));
    }
}

#[test]
fn a_seed_in_hex_is_read() {
    let known = Ok(secret_key().public().to_string());
    assert_eq!(public(SEED), known);
    assert_eq!(public(&format!(" {SEED}\r\n")), known);
    let other = "AB".repeat(32);
    assert_eq!(public(&other), public(&other.to_lowercase()));
    let shorter = SEED.split_at(2).1;
    for wrong in [shorter, &format!("{SEED}00"), &format!("{SEED}\n{SEED}")] {
        assert_eq!(public(wrong), Err(KeyFileError::Malformed), "{wrong}");
    }
}

#[test]
fn what_holds_no_usable_key_is_refused_with_its_reason() {
    use KeyFileError::{Encrypted, Halves, Malformed, OtherKind, Public, TooLong};
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDEozYC9akz/VWQKuRHqDwqn5H83aV2cBiflgkx6y9y4 x";
    for (content, expect) in [
        ("", Malformed),
        (
            "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
            Malformed,
        ),
        (&format!("{BEGIN}{END}"), Malformed),
        (BEGIN, Malformed),
        (&OF_OPENSSH.replace("b3B", "c3B"), Malformed),
        (&OF_OPENSSH.replace("UBAgMEBQ==", "U="), Malformed),
        (&OF_OPENSSH.replace("b3B", "b%B"), Malformed),
        (&format!("{OF_OPENSSH}{OF_OPENSSH}"), Malformed),
        (&OF_SIGSUM.replace("AUy1q", "Aky1q"), Halves),
        (line, Public),
        (ENCRYPTED, Encrypted),
        (ECDSA, OtherKind),
        (RSA, OtherKind),
        (&" ".repeat(FILE_BYTES_MAX + 1), TooLong),
    ] {
        assert_eq!(public(content), Err(expect), "{content:.600}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(seed in any::<[u8; 32]>()) {
        let key = SecretKey::from_seed(&seed);
        let content = render(&key).unwrap();
        prop_assert!(content.ends_with("-----END OPENSSH PRIVATE KEY-----\n"));
        prop_assert_eq!(public(&content), Ok(key.public().to_string()));
    }

    #[test]
    fn a_key_file_with_one_byte_changed_is_refused_or_the_same_key(
        place in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut content = OF_SIGSUM.as_bytes().to_vec();
        if let Some(changed) = content.get_mut(place.index(OF_SIGSUM.len())) {
            *changed = byte;
        }
        if let Ok(key) = parse(&content) {
            prop_assert_eq!(key.public(), secret_key().public());
        }
    }
}
