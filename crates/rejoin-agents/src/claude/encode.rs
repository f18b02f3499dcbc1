//! Name of the folder in which the CLI stores the sessions of a working folder.

/// Maximum length of the name. Longer names are cut here and get a hash (2.1.197, 2.1.325).
const LONGEST: usize = 200;

/// Encodes a path as the CLI does in JavaScript: every UTF-16 unit that is not an ASCII letter or
/// digit becomes a dash. `a.b`, `a_b` and `a b` share a folder; the CLI really mixes their
/// sessions.
pub(super) fn folder(path: &str) -> String {
    let name: String = path
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
            Ok(_) | Err(_) => '-',
        })
        .collect();
    // All characters are ASCII now, so bytes are UTF-16 units.
    match name.get(..LONGEST) {
        Some(start) if name.len() > LONGEST => format!("{start}-{}", base36(hash(path))),
        Some(_) | None => name,
    }
}

/// Computes Java's string hash of the path.
fn hash(path: &str) -> u32 {
    let step = |h: i32, unit: u16| {
        h.wrapping_shl(5)
            .wrapping_sub(h)
            .wrapping_add(i32::from(unit))
    };
    path.encode_utf16().fold(0, step).unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_measured() {
        for (path, name) in [
            ("/srv/enc/a.b", "-srv-enc-a-b"),
            ("/srv/enc/a_b", "-srv-enc-a-b"),
            ("/srv/enc/a b", "-srv-enc-a-b"),
            ("/srv/enc/ünï-日本", "-srv-enc--n----"),
            ("/srv/Ab/😀", "-srv-Ab---"),
            (
                "/tmp/agents/ünï-日本😀/a.b c_d",
                "-tmp-agents--n-------a-b-c-d",
            ),
            ("/", "-"),
        ] {
            assert_eq!(folder(path), name, "{path}");
        }
    }

    #[test]
    fn long_paths_are_cut_and_hashed() {
        let measured = format!("/tmp/agents/{}/{}", "long-".repeat(38), "ü".repeat(30));
        assert_eq!(
            folder(&measured),
            format!("-tmp-agents-{}lon-z2ms97", "long-".repeat(37))
        );
        let at_limit = format!("/{}", "a".repeat(199));
        assert_eq!(folder(&at_limit).len(), 200);
        let beyond = format!("/{}", "a".repeat(200));
        let name = folder(&beyond);
        assert!(
            name.starts_with(&format!("-{}-", "a".repeat(199))),
            "{name}"
        );
        assert_ne!(name, folder(&format!("/{}", "b".repeat(200))));
    }

    #[test]
    fn the_hash_is_javas() {
        assert_eq!(hash("hello"), 99_162_322);
        assert_eq!(base36(0), "0");
        assert_eq!(base36(99_162_322), "1n1e4y");
        // "polygenelubricants" hashes to i32::MIN.
        assert_eq!(hash("polygenelubricants"), 2_147_483_648);
    }
}
